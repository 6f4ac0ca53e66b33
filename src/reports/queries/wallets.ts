/**
 * Compares ledger and observed balance of every opened wallet. Every difference is attributed to
 * postings after the observation, unposted operations, included open operations or open drifts; the
 * rest is a finding.
 */
import { sumOf } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../../kernel/subset-sums.ts';
import type { inTransit, reconciliation, statement } from '../../resources/reports/content.ts';
import type { Row } from '../../resources/resource.ts';
import { type FindingRow, type Findings, firstOfEachKind } from '../findings.ts';
import { beforeEnd, type ReportParams } from '../params.ts';
import { beganIn } from './drifts.ts';
import { entriesAfter } from './entries.ts';
import { happenedAt } from './operations.ts';

type Statement = Row<typeof statement>;
type InTransit = Row<typeof inTransit>;

/** Open operations per wallet whose subsets are tried. */
const OPEN_MAX = 12;

/** Differences over all wallets. */
interface Sums {
  inTransit: bigint;
  up: bigint;
  down: bigint;
  /** Of all wallets, also of what came after the period. */
  residual: bigint;
}

/** @param afterPeriod of the ledger of these wallets, what took effect after the period */
export async function reconcileWallets(
  params: ReportParams,
  findings: Findings,
  afterPeriod: bigint,
): Promise<Pick<Row<typeof reconciliation>['wallets'], 'statement' | 'inTransit'>> {
  const sums: Sums = { inTransit: 0n, up: 0n, down: 0n, residual: 0n };
  const transit = { total: 0, listed: [] as InTransit[] };
  let totals: WalletRow | undefined;
  for await (const page of pagesOfWallets(params)) {
    totals ??= page[0];
    for (const row of page) {
      if (row.addr === null) continue;
      sums.residual += row.residual;
      const found = reconcileWallet(row, row.addr, findings, sums);
      if (found === undefined) continue;
      transit.total += 1;
      if (transit.listed.length < params.limits.listMax) transit.listed.push(found);
    }
  }
  return { statement: statementOf(totals, sums, afterPeriod), inTransit: transit };
}

/** The open operations of the period that the observation includes, if any. */
function reconcileWallet(
  row: WalletRow,
  addr: string,
  findings: Findings,
  sums: Sums,
): InTransit | undefined {
  const { residual, verdict, cause } = row;
  const candidates = row.candidates ?? [];
  const effects = new Map(candidates.map(({ id, effect }) => [id, BigInt(effect)]));
  const included = includedIn(row, effects);
  if (included) {
    const open = candidates.filter(({ id, isOpen }) => isOpen && included.includes(id));
    const operations = open.map(({ id }) => id).sort();
    if (operations.length === 0) return undefined;
    const amount = row.possible > OPEN_MAX ? openPartOf(row) : effectOf(effects, operations);
    sums.inTransit += amount;
    return { addr, amount, operations };
  }
  if (row.beganLater) return undefined;
  if (residual > 0n) sums.up += residual;
  else sums.down += residual;
  // The drift is listed as a finding of its own.
  if (row.inexactDrift) return undefined;
  const kind =
    verdict === 'drifting' && cause === 'suspected'
      ? 'drift_suspected'
      : verdict === 'inconclusive' || row.possible > OPEN_MAX
        ? 'wallet_undetermined'
        : 'observed_not_explained';
  const evidence = {
    observation: row.observationId,
    verdict,
    cause,
    open_operations: [...effects.keys()].sort().slice(0, OPEN_MAX),
  };
  findings.add({
    kind,
    subject: `wallet:${addr}`,
    amount: residual,
    since: row.observedAt,
    assignee: null,
    evidence,
  });
  return undefined;
}

function effectOf(effects: ReadonlyMap<string, bigint>, ids: readonly string[]): bigint {
  return sumOf(ids.map((id) => effects.get(id) ?? 0n));
}

/** The least part of a residual that open operations must hold, the executed ones the rest. */
function openPartOf({ residual, up, down, openUp, openDown }: WalletRow): bigint {
  const least = residual - (up - openUp);
  const most = residual - (down - openDown);
  if (least > 0n) return least;
  return most < 0n ? most : 0n;
}

/** The ids of a subset that explains the residual; with too many operations, of the first ones. */
function includedIn(
  { residual, possible, up, down }: WalletRow,
  effects: ReadonlyMap<string, bigint>,
): string[] | undefined {
  if (possible <= OPEN_MAX) return idsWithSum(effects, residual);
  return down <= residual && residual <= up ? [...effects.keys()].sort() : undefined;
}

/** The operation ids of a subset with this sum; the same one for equal effects. */
function idsWithSum(effects: ReadonlyMap<string, bigint>, sum: bigint): string[] | undefined {
  const ids = [...effects.keys()].sort();
  const vectors = ids.map((id) => [effects.get(id) ?? 0n]);
  const [found] = subsetsWithSum(vectors, [sum], 1);
  return Array.isArray(found) ? found.flatMap((i) => ids[i] ?? []) : undefined;
}

/**
 * Observed balances are carried to the end of the period: without what took effect after it, with
 * what did before it and after the observation. So a later observation gives the same statement.
 * @throws Error if the differences do not sum to what was observed
 */
function statementOf(totals: WalletRow | undefined, sums: Sums, afterPeriod: bigint): Statement {
  const { wallets = 0, ledger = 0n, due = 0n, expected = 0n, observed = 0n } = totals ?? {};
  const { driftUp = 0n, driftDown = 0n } = totals ?? {};
  if (expected + sums.residual !== observed)
    throw new Error('the differences of the wallets do not sum to the observed balance');
  const lines = {
    ledger: ledger - afterPeriod,
    notYetPosted: due,
    inTransit: sums.inTransit,
    driftUp,
    driftDown,
    unexplainedUp: sums.up,
    unexplainedDown: sums.down,
  };
  return { wallets, ...lines, observed: sumOf(Object.values(lines)) };
}

/** Sums over all opened wallets, repeated on every row. */
interface WalletTotals {
  wallets: number;
  ledger: bigint;
  /** Executed in the period or before, and not posted. */
  due: bigint;
  /** Drifts that began in the period or before. */
  driftUp: bigint;
  driftDown: bigint;
  /** At the observations. */
  expected: bigint;
  observed: bigint;
}

/** A wallet whose observed balance differs, or may include open operations. */
interface WalletRow extends WalletTotals {
  addr: string | null;
  verdict: string;
  cause: string | null;
  observedAt: Instant;
  observationId: string | null;
  /** Observed balance minus ledger at the observation, unposted operations and exact drifts. */
  residual: bigint;
  /** How many operations the observation may include, the first of them, and their sums. */
  possible: number;
  /** `isOpen` without an outcome, and sent in the period or before. */
  candidates: { id: string; effect: string; isOpen: boolean }[] | null;
  up: bigint;
  down: bigint;
  /** Sums of those that are open, where there are more than are tried. */
  openUp: bigint;
  openDown: bigint;
  /** Whether a drift is open whose amount is not exact yet. */
  inexactDrift: boolean;
  /** Whether an observation of after the period was consistent, or that drift began later. */
  beganLater: boolean;
}

const PAGE = 500;

/**
 * Compares each wallet that was opened in the period or before at its newest observation;
 * `tallyhook.expected_balance` says how. A wallet on which nothing is open is expected to hold its
 * balance. Rows come in pages. There is at least one row, with the totals; its `addr` is null if no
 * wallet differs.
 */
function pagesOfWallets(params: ReportParams): AsyncIterable<WalletRow[]> {
  const { tx, to, limits } = params;
  return tx.sql<WalletRow[]>`
    with open_on as materialized (
      select lower(account) as account from tallyhook.operation_effects where unsettled
      union
      select lower(f.account) from tallyhook.due_postings q
      join tallyhook.operation_effects f on f.operation_id = q.operation_id
      where q.quarantined_at is not null
      union
      select lower(account) from tallyhook.posting_requests
      where posted_at is null and problem is null
    ), due as materialized (
      select d.account_key, sum(d.amount) as amount from tallyhook.due_effects d
      join tallyhook.operations o on o.id = d.operation_id
      where ${happenedAt(params)} < ${to} group by d.account_key
    ), compared as materialized (
      select w.key, w.addr, w.verdict, w.cause, w.observed_at, w.observation_id, w.consistent_at,
        w.observed_balance as observed, coalesce(e.ledger, a.balance, 0) as ledger,
        coalesce(u.amount, 0) as due, coalesce(d.up, 0) as drift_up,
        coalesce(d.down, 0) as drift_down,
        coalesce(e.ledger - e.late + e.unposted, a.balance, 0) + coalesce(d.amount, 0) as expected,
        coalesce(e.possible, 0) as possible, coalesce(e.up, 0) as up, coalesce(e.down, 0) as down,
        coalesce(e.candidates, '[]') as candidates, coalesce(d.inexact, false) as inexact_drift,
        coalesce(d.inexact_later, false) as inexact_later
      from tallyhook.wallets w
      left join tallyhook.accounts a on lower(a.name) = 'wallet:' || w.key
        and a.asset = 'service_token'
      left join open_on o on o.account = 'wallet:' || w.key
      left join (${movedLately(params)}) m on m.account_id = a.id
      left join due u on u.account_key = 'wallet:' || w.key
      left join lateral (
        select x.ledger, x.late, x.unposted, x.possible, x.up, x.down, x.candidates
        from tallyhook.expected_balance(o.account,
          w.observed_at - make_interval(secs => ${limits.readLagMs / 1000}),
          w.observation_ended_at, null) x
        where o.account is not null) e on true
      left join (
        select wallet_key, sum(amount) as amount,
          sum(greatest(amount, 0)) filter (where ${beganIn(params)}) as up,
          sum(least(amount, 0)) filter (where ${beganIn(params)}) as down,
          bool_or(amount is null) filter (where ${beganIn(params)}) as inexact,
          bool_or(amount is null) filter (where not ${beganIn(params)}) as inexact_later
        from tallyhook.drifts d where closed_at is null group by 1) d on d.wallet_key = w.key
      where w.opened_at is not null and w.observed_balance is not null
        and (w.opened_at < ${to} or ${movedIn(params)})
    ), totals as (
      select count(*)::int as wallets, coalesce(sum(ledger), 0) as ledger,
        coalesce(sum(due), 0) as due, coalesce(sum(drift_up), 0) as drift_up,
        coalesce(sum(drift_down), 0) as drift_down, coalesce(sum(expected), 0) as expected,
        coalesce(sum(observed), 0) as observed
      from compared
    )
    select t.wallets, t.ledger, t.due, t.drift_up, t.drift_down, t.expected, t.observed, j.addr,
      j.verdict, j.cause, j.observed_at, j.observation_id, j.possible, ${candidatesOf(params)},
      j.up, j.down, coalesce(n.up, 0) as open_up, coalesce(n.down, 0) as open_down,
      j.inexact_drift, j.observed - j.expected as residual,
      coalesce(j.consistent_at >= ${to}, false) or j.inexact_later and not j.inexact_drift
        as began_later
    from totals t
    left join compared j on j.possible > 0 or j.observed <> j.expected
    left join lateral (
      select sum(greatest(f.amount, 0)) as up, sum(least(f.amount, 0)) as down
      from tallyhook.operation_effects f join tallyhook.operations o on o.id = f.operation_id
      where j.possible > ${OPEN_MAX} and lower(f.account) = 'wallet:' || j.key and f.unsettled
        and f.phase in ('open', 'undecided') and ${happenedAt(params)} < ${to}) n on true
    order by j.addr`.cursor(PAGE) as AsyncIterable<WalletRow[]>;
}

/** Of wallet `j`. */
function candidatesOf(params: ReportParams) {
  return params.tx.sql`(
    select jsonb_agg(jsonb_build_object('id', o.id, 'effect', c.one ->> 'effect', 'isOpen',
      o.outcome = 'open' and ${happenedAt(params)} < ${params.to}))
    from jsonb_array_elements(j.candidates) c(one)
    join tallyhook.operations o on o.id = c.one ->> 'id') as candidates`;
}

/**
 * Wallets that the service no longer showed in the period or before, with what the ledger held of
 * them at its end.
 */
export async function listVanishedWallets(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    select 'wallet_vanished' as kind, 'wallet:' || w.addr as subject,
      coalesce(a.balance - l.amount, 0) as amount, w.vanished_at as since, null as assignee,
      jsonb_build_object('last_balance', w.observed_balance::text, 'last_status', w.status,
        'last_observed_at', w.observed_at, 'observation', w.observation_id) as evidence,
      (count(*) over ())::int as total
    from tallyhook.wallets w
    left join tallyhook.accounts a on lower(a.name) = 'wallet:' || w.key
      and a.asset = 'service_token'
    cross join lateral (select coalesce(sum(e.amount), 0) as amount from tallyhook.entries e
      where e.account_id = a.id and e.effective_at >= ${params.to}) l
    where w.vanished_at < ${params.to}
    order by w.vanished_at, w.key limit ${params.limits.listMax}`;
}

/** Observations that the reconciler could not process, so that their targets are not compared. */
export async function listQuarantinedObservations(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    select 'observation_quarantined' as kind, target as subject, null::numeric as amount,
      process_at as since, null as assignee,
      jsonb_build_object('problem', problem, 'observation', observation_id, 'failures', failures)
        as evidence, (count(*) over ())::int as total
    from tallyhook.unprocessed_observations
    where problem is not null and process_at < ${params.to}
    order by process_at, target limit ${params.limits.listMax}`;
}

export interface ScopeRow {
  standing: 'checked' | 'stale' | 'never_observed' | 'inconclusive' | 'unopened';
  cause: string | null;
  count: number;
  oldest: Instant | null;
}

/**
 * Wallets that were known by the end of the period: opened or observed, polled, or with an entry.
 * Most are of the first kind, so only the keys of the others are compared with each other.
 */
function scopeOf(params: ReportParams) {
  const { sql } = params.tx;
  const { to } = params;
  const isSeen = sql`coalesce(w.opened_at, w.observed_at) < ${to}`;
  const isOther = (key: ReturnType<typeof sql>) =>
    sql`not exists (select from tallyhook.wallets w where w.key = ${key} and ${isSeen})`;
  const columns = sql`w.observed_at, w.opened_at, w.verdict, w.consistent_at, w.cause`;
  return sql`
    select ${columns} from tallyhook.wallets w where ${isSeen}
    union all
    select ${columns} from (
      select substr(t.name, 8) as key from tallyhook.targets t
      where t.kind = 'wallet' and t.added_at < ${to} and ${isOther(sql`substr(t.name, 8)`)}
      union
      select substr(lower(a.name), 8) from tallyhook.accounts a
      left join (${movedLately(params)}) m on m.account_id = a.id
      where a.kind = 'wallet' and ${isOther(sql`substr(lower(a.name), 8)`)} and ${movedIn(params)}
    ) o left join tallyhook.wallets w on w.key = o.key`;
}

/** Accounts with an entry that took effect in the period or before, and that no day end keeps. */
function movedLately({ tx, to, days }: ReportParams) {
  return tx.sql`select distinct x.account_id from (${entriesAfter(tx, days.to, to)}) x`;
}

/**
 * Whether account `a`, which `m` of `movedLately` may be, has an entry that took effect in the
 * period or before. The inner `offset 0` looks its first day balance up; without it the planner
 * reads those of all accounts.
 */
function movedIn({ tx, days }: ReportParams) {
  const { sql } = tx;
  const isKept = days.to
    ? sql`exists (select from tallyhook.day_balances k
        where k.account_id = a.id and k.at <= ${isoText(days.to.at)} offset 0)`
    : sql`false`;
  return sql`(m.account_id is not null or ${isKept})`;
}

/**
 * Counts each wallet in scope once, by its newest observation. One that is inconclusive now was
 * checked if a later observation than the end of the period was consistent.
 */
export async function countScope(params: ReportParams): Promise<ScopeRow[]> {
  return params.tx.sql<ScopeRow[]>`
    with placed as (
      select w.observed_at, case when w.observed_at is null then 'never_observed'
          when w.opened_at is null then 'unopened'
          when w.observed_at < ${beforeEnd(params, params.limits.staleMs)} then 'stale'
          when w.verdict = 'inconclusive' and coalesce(w.consistent_at < ${params.asOf}, true)
            then 'inconclusive' else 'checked' end as standing,
        w.cause
      from (${scopeOf(params)}) w
    )
    select standing, case when standing in ('unopened', 'inconclusive')
        then coalesce(cause, 'not recorded') end as cause, count(*)::int as count,
      min(observed_at) as oldest
    from placed group by 1, 2 order by 1, 2`;
}

/** Wallets that are stale, unopened, or inconclusive beyond the limit. */
export async function listUncovered(params: ReportParams): Promise<FindingRow[]> {
  const { to } = params;
  const since = beforeEnd(params, params.limits.staleMs);
  return params.tx.sql<FindingRow[]>`
    with found as (
      select case when w.opened_at is null then 'wallet_unopened'
          when w.observed_at < ${since} then 'wallet_stale' else 'wallet_inconclusive' end as kind,
        'wallet:' || w.addr as subject, null::numeric as amount,
        coalesce(w.quiet_at, w.observed_at) as since,
        jsonb_build_object('verdict', w.verdict, 'cause', w.cause,
          'observation', w.observation_id, 'consistent_at', w.consistent_at) as evidence
      from tallyhook.wallets w
      left join tallyhook.targets t on t.name = 'wallet:' || w.key
      left join tallyhook.accounts a on lower(a.name) = 'wallet:' || w.key
        and a.asset = 'service_token'
      left join (${movedLately(params)}) m on m.account_id = a.id
      where w.observed_at is not null and (w.opened_at is null or w.observed_at < ${since}
          or w.verdict = 'inconclusive' and coalesce(w.quiet_at, w.opened_at) < ${since})
        and (coalesce(w.opened_at, w.observed_at) < ${to} or t.added_at < ${to}
          or ${movedIn(params)})
    )
    ${firstOfEachKind(params)}`;
}
