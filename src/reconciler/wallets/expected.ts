/** SQL of what observations of wallets are compared with. */
import { asJson, type Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { type Expectation, POSSIBLE_MAX, type PossibleOperation } from './rule.ts';

/** An observation of a wallet, for which the expected balance is asked. */
interface ObservedAt {
  key: string;
  startedAt: Instant;
  endedAt: Instant;
  /** Whether the wallet has an opening. */
  opened: boolean;
}

export interface Expected extends Expectation {
  /** The ledger's balance, posting requests included, and the version of its account. */
  ledger: bigint;
  version: bigint;
  /** How many operations are possible. */
  possibleCount: number;
  /** How many required operations the ledger is about to post. */
  waiting: number;
  /** How many operations are unknown or undecided. */
  unsure: number;
  /** How many may have become known after observations that did not count them. */
  backdated: number;
  /** When the first possible operation without an outcome was sent, undecided ones apart. */
  openSince: Instant | null;
  /** When the last possible operation that was executed took effect. */
  executedUntil: Instant | null;
}

interface Row {
  key: string;
  ledger: bigint;
  version: bigint;
  unposted: bigint;
  late: bigint;
  possible: number;
  waiting: number;
  unsure: number;
  backdated: number;
  up: bigint;
  down: bigint;
  openSince: Instant | null;
  executedUntil: Instant | null;
  candidates: (Omit<PossibleOperation, 'effect'> & { effect: string })[];
}

/** What these wallets are expected to hold at these observations, by key, in one snapshot. */
export async function expectedBalances(
  db: Queryable,
  observed: readonly ObservedAt[],
  readLagMs: number,
): Promise<Map<string, Expected>> {
  const input = observed.map(({ key, startedAt, endedAt, opened }) => ({
    key,
    before: isoText(startedAt - readLagMs),
    ended: isoText(endedAt),
    opens: opened ? null : isoText(startedAt - readLagMs),
  }));
  const rows = await db.sql<Row[]>`
    select x.key, e.* from jsonb_to_recordset(${asJson(input)}::jsonb)
      as x(key text, before timestamptz, ended timestamptz, opens timestamptz)
    cross join lateral tallyhook.expected_balance('wallet:' || x.key, x.before, x.ended,
      x.opens) e`;
  return new Map(rows.map((row) => [row.key, expectedOf(row)]));
}

function expectedOf(row: Row): Expected {
  const { ledger, version, up, down, waiting, unsure, backdated } = row;
  const { openSince, executedUntil } = row;
  const possible = row.candidates.map((one) => ({
    ...one,
    effect: BigInt(one.effect),
    deadlineAt: Number(one.deadlineAt),
  }));
  return {
    ledger,
    version,
    up,
    down,
    waiting,
    unsure,
    backdated,
    openSince,
    executedUntil,
    base: ledger + row.unposted - row.late,
    possibleCount: row.possible,
    possible: row.possible <= POSSIBLE_MAX ? possible : undefined,
  };
}

/** The start of the first unsettled operation of a wallet; undefined without one. */
export async function firstUnsettledAt(db: Queryable, key: string): Promise<Instant | undefined> {
  const rows = await db.sql<{ at: Instant | null }[]>`
    select min(least(o.recorded_at, o.effective_at)) as at
    from tallyhook.operation_effects e join tallyhook.operations o on o.id = e.operation_id
    where lower(e.account) = ${`wallet:${key}`} and e.unsettled and e.phase <> 'queued'`;
  return rows[0]?.at ?? undefined;
}

/**
 * The executed operations on a wallet that an observation confirms, oldest first: it must include
 * them, and so did an observation of each of their other wallets that began after their outcome was
 * known. An open drift of the opposite amount on one of its wallets says that the service does not
 * show the operation. An operation settles after it is posted, so that what is unsettled contains
 * what is unposted.
 * @param before s − L
 */
export async function listConfirmed(
  db: Queryable,
  key: string,
  { before, readLagMs, limit }: { before: Instant; readLagMs: number; limit: number },
): Promise<string[]> {
  const account = `wallet:${key}`;
  const rows = await db.sql<{ id: string }[]>`
    select o.id from (
      select distinct operation_id from tallyhook.operation_effects
      where lower(account) = ${account} and unsettled and phase = 'executed') e
    join tallyhook.operations o on o.id = e.operation_id
    where coalesce(o.effective_at, o.answered_at, o.recorded_at) < ${isoText(before)}
      and not exists (select from tallyhook.due_postings d
        where d.operation_id = o.id and d.quarantine_reason is null)
      and not exists (select from (
          select substr(lower(account), 8) as wallet_key, sum(amount) as amount
          from tallyhook.operation_effects
          where operation_id = o.id and account like 'wallet:%' group by 1) f
        left join tallyhook.wallets w on w.key = f.wallet_key
        where f.wallet_key <> ${key} and (w.consistent_at is null
            or w.consistent_at - make_interval(secs => ${readLagMs / 1000}) <= coalesce(
              o.effective_at, o.answered_at, o.recorded_at)
            or exists (select from tallyhook.transitions t
              where t.operation_id = o.id and t.to_state in ('accepted', 'executed')
                and t.from_state is distinct from t.to_state and t.at >= w.consistent_at))
          or exists (select from tallyhook.drifts d
            where d.wallet_key = f.wallet_key and d.closed_at is null
              and d.opened_at >= o.recorded_at and d.amount = -f.amount))
    order by coalesce(o.effective_at, o.answered_at, o.recorded_at) limit ${limit}`;
  return rows.map(({ id }) => id);
}

/** The executed operations that took effect between two observations of a wallet, at most 100. */
export async function listExecutedBetween(
  db: Queryable,
  key: string,
  since: Instant,
  before: Instant,
): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`
    select distinct o.id from tallyhook.operation_effects e
    join tallyhook.operations o on o.id = e.operation_id
    where lower(e.account) = ${`wallet:${key}`} and e.unsettled and e.phase = 'executed'
      and coalesce(o.effective_at, o.answered_at, o.recorded_at) >= ${isoText(since)}
      and coalesce(o.effective_at, o.answered_at, o.recorded_at) < ${isoText(before)}
    order by o.id limit 100`;
  return rows.map(({ id }) => id);
}
