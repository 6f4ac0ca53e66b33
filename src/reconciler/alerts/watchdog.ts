/**
 * Conditions that need no rule of the configuration: late polls, stuck operations and vanished
 * wallets.
 */
import { asJson, type Db, type Queryable, type Tx } from '../../db/connect.ts';
import { decimalText } from '../../kernel/amounts.ts';
import {
  type Clock,
  DAY_MS,
  HOUR_MS,
  type Instant,
  isoText,
  isoTextOrNull,
} from '../../kernel/clock.ts';
import { countLate, type Observer } from '../../observer/observer.ts';
import {
  findOperations,
  type Kind,
  NFT_KINDS,
  operationFields,
  TOKEN_KINDS,
} from '../../operations/operations.ts';
import { listVanished } from '../wallets/wallet.ts';
import {
  type Alert,
  type Condition,
  type SettleTimes,
  type StuckSettings,
  stuckAfterMs,
} from './rule.ts';

export const LATE = 'observer.late';
export const STUCK = 'operation.stuck';
export const VANISHED = 'wallet.vanished';

/** How many times the guaranteed age. */
const LATE_FACTOR = 2;
/** Counting the targets may take at most this share of the time. */
const COUNT_SHARE = 0.01;
const COUNT_MIN_MS = 5_000;

/**
 * Finds whether targets were not polled within twice the guaranteed age: its condition, null if
 * none is late, or undefined if it is not due or the service has not been available for so long.
 */
export function makeLateCheck(deps: { db: Db; clock: Clock; observer: Pick<Observer, 'pricing'> }) {
  const { db, clock, observer } = deps;
  let dueAt = Number.NEGATIVE_INFINITY;
  let cached: Condition | null | undefined;
  return async (now: Instant, availableSince: Instant): Promise<Condition | null | undefined> => {
    const maximumMs = (await observer.pricing()).bounds.maxMs;
    const before = now - LATE_FACTOR * maximumMs;
    if (availableSince > before) return undefined;
    if (now < dueAt && dueAt - now < HOUR_MS) return cached;
    const from = clock.now();
    const { targets, oldestPollAt } = await countLate(db, before);
    dueAt = now + Math.max(COUNT_MIN_MS, (clock.now() - from) / COUNT_SHARE);
    const detail = {
      targets,
      observation_age_max_ms: Math.round(maximumMs),
      oldest_poll_at: isoTextOrNull(oldestPollAt),
    };
    cached = targets === 0 ? null : { rule: LATE, subject: 'targets', detail };
    return cached;
  };
}

const VANISHED_MAX = 10_000;

/** The wallets that have vanished. */
export async function checkVanished(tx: Tx): Promise<Condition[]> {
  const vanished = await listVanished(tx, VANISHED_MAX);
  return vanished.map(({ key, addr, observedBalance, observedAt }) => ({
    rule: VANISHED,
    subject: key,
    detail: {
      addr,
      last_balance: decimalText(observedBalance),
      last_observed_at: isoTextOrNull(observedAt),
    },
  }));
}

/** How far back settled operations count, and how often their times are read. */
const LEARN_MS = 7 * DAY_MS;
const LEARN_EVERY_MS = 60_000;
const STUCK_MAX = 10_000;
const KINDS = [...TOKEN_KINDS, ...NFT_KINDS];

/** Finds the operations that are stuck against the settle times of their kind. */
export function makeStuckCheck({ settings }: { settings: StuckSettings }) {
  let learned: { at: Instant; times: Map<string, SettleTimes> } | undefined;
  return async (
    tx: Tx,
    now: Instant,
    from: Instant,
    raised: readonly Alert[],
  ): Promise<Condition[]> => {
    if (!learned || now < learned.at || now >= learned.at + LEARN_EVERY_MS)
      learned = { at: now, times: await settleTimes(tx, KINDS, now - LEARN_MS) };
    const { times } = learned;
    const afterMs = new Map<string, number>(
      KINDS.map((kind) => [kind, stuckAfterMs(times.get(kind), settings)]),
    );
    const before = raised.filter(({ rule }) => rule === STUCK).map(({ subject }) => subject);
    const stuck = await listStuck(tx, { now, from, afterMs, before }, STUCK_MAX);
    const known = new Set(before);
    const open = new Set(stuck.map(({ id }) => id));
    const operations = await findOperations(
      tx,
      stuck.flatMap(({ id }) => (known.has(id) ? [] : [id])),
    );
    const kept = raised.filter(({ rule, subject }) => rule === STUCK && open.has(subject));
    const added = stuck.flatMap(({ id, since }): Condition[] => {
      const operation = operations.get(id);
      if (!operation) return [];
      const detail = {
        ...operationFields(operation),
        executed_at: isoText(since),
        stuck_after_ms: afterMs.get(operation.kind) ?? 0,
      };
      return [{ rule: STUCK, subject: id, detail }];
    });
    return [...kept, ...added];
  };
}

/** The newest operations of a kind that count for its settle times. */
const SETTLED_MAX = 1_000;

/** How long the newest writes of each kind took from their answer until they settled. */
async function settleTimes(
  { sql }: Queryable,
  kinds: readonly Kind[],
  since: Instant,
): Promise<Map<string, SettleTimes>> {
  const rows = await sql<(SettleTimes & { kind: string })[]>`
    select k.kind, count(s.ms)::int as count,
      percentile_disc(0.99) within group (order by s.ms) as p99_ms
    from unnest(${kinds as Kind[]}::text[]) k(kind) cross join lateral (
      select greatest(0, extract(epoch from o.settled_at - o.answered_at) * 1000)::float as ms
      from tallyhook.operations o
      where o.kind = k.kind and o.recorded_at > ${isoText(since)} and o.state = 'settled'
        and o.source = 'gateway' and o.answered_at is not null and o.settled_at is not null
      order by o.recorded_at desc limit ${SETTLED_MAX}) s
    group by k.kind`;
  return new Map(rows.map((row) => [row.kind, row]));
}

interface Stuck {
  id: string;
  /** When it was accepted, or was found to be executed. */
  since: Instant;
}

/**
 * Executed operations that have not settled in the time of their kind, although their wallets and
 * tokens were polled after it, and of those called stuck before all that still have not. What waits
 * for a poll is not stuck: the observer is late, which is an alarm of its own.
 * @param from no time counts that is before it
 */
async function listStuck(
  { sql }: Queryable,
  input: { now: Instant; from: Instant; afterMs: Map<string, number>; before: readonly string[] },
  limit: number,
): Promise<Stuck[]> {
  const { now, from, before } = input;
  const kinds = [...input.afterMs].map(([kind, ms]) => ({ kind, ms }));
  const least = Math.min(...input.afterMs.values());
  return sql<Stuck[]>`
    select o.id, s.since from tallyhook.open_operations w
    join tallyhook.operations o on o.id = w.id
    join jsonb_to_recordset(${asJson(kinds)}::jsonb) as k(kind text, ms bigint)
      on k.kind = o.kind
    cross join lateral (
      select max(t.at) as since from tallyhook.transitions t
      where t.operation_id = o.id and t.from_state is distinct from t.to_state) s
    cross join lateral (
      select greatest(s.since, ${isoText(from)}::timestamptz) + k.ms * interval '1 ms' as at) due
    where w.state in ('accepted', 'executed') and w.changed_at < ${isoText(now - least)}
      and (o.id = any(${before as string[]}::text[])
        or (due.at < ${isoText(now)}::timestamptz and not exists (
          select from tallyhook.targets t
          where t.name in (select lower(e.account) from tallyhook.operation_effects e
              where e.operation_id = o.id
              union all select 'token:' || o.contract_id || ':' || o.token_id)
            and (t.last_started_at is null or t.last_started_at < due.at))))
    order by w.changed_at limit ${limit}`;
}
