/** SQL of ledger balances against observed balances, drifts and coverage. */
import type { Instant } from '../../kernel/clock.ts';
import type { FindingRow } from '../findings.ts';
import { before, type ReportParams } from '../params.ts';
import { firstOfEachKind } from './findings-store.ts';

/** Sums over all opened wallets, repeated on every row. */
interface WalletTotals {
  wallets: number;
  ledger: bigint;
  late: bigint;
  due: bigint;
  driftUp: bigint;
  driftDown: bigint;
  observed: bigint;
}

/** A wallet whose observed balance differs, or may include open operations. */
export interface WalletRow extends WalletTotals {
  addr: string | null;
  verdict: string;
  cause: string | null;
  observedAt: Instant;
  observationId: string | null;
  /** Observed balance minus ledger at the observation, unposted operations and open drifts. */
  residual: bigint;
  /** Amounts by id of the operations that the observation may include. */
  optional: Record<string, string> | null;
}

const PAGE = 500;

/**
 * Compares each opened wallet at its newest observation, which starts at s and ends at e, with read
 * lag L. Operations that took effect before s − L are required, others that were sent before e are
 * optional, and the rest is excluded. Rows come in pages. There is at least one row, with the
 * totals; its `addr` is null if no wallet differs.
 */
export function pagesOfWallets(params: ReportParams): AsyncIterable<WalletRow[]> {
  return params.tx.sql<WalletRow[]>`
    with pending as materialized (${pendingWrites(params)}),
    held as (${heldWallets(params)}),
    waiting as (${waitingWrites(params)}),
    compared as materialized (
      select h.addr, h.verdict, h.cause, h.observed_at, h.observation_id, h.ledger, h.up, h.down,
        h.observed_balance as observed, coalesce(h.late, 0) as late, coalesce(w.due, 0) as due,
        nullif(coalesce(h.late_optional, '{}') || coalesce(w.optional, '{}'), '{}') as optional
      from held h left join waiting w on w.key = h.key
    ), totals as (
      select count(*)::int as wallets, coalesce(sum(ledger), 0) as ledger,
        coalesce(sum(late), 0) as late, coalesce(sum(due), 0) as due,
        coalesce(sum(up), 0) as drift_up, coalesce(sum(down), 0) as drift_down,
        coalesce(sum(observed), 0) as observed
      from compared
    )
    select t.wallets, t.ledger, t.late, t.due, t.drift_up, t.drift_down, t.observed, j.addr,
      j.verdict, j.cause, j.observed_at, j.observation_id, j.optional,
      j.observed - (j.ledger - j.late + j.due + j.up + j.down) as residual
    from totals t
    left join compared j on j.optional is not null
      or j.observed <> j.ledger - j.late + j.due + j.up + j.down
    order by j.addr`.cursor(PAGE) as AsyncIterable<WalletRow[]>;
}

/** Effects on wallets of operations whose posting is due, quarantined or undecided. */
function pendingWrites({ tx }: ReportParams) {
  return tx.sql`
    select e.operation_id, e.account_key as account, sum(e.amount) as amount, o.in_ledger, p.posted,
      o.outcome, coalesce(o.sent_at, least(o.effective_at, o.recorded_at)) as sent_at,
      coalesce(o.effective_at, o.answered_at, o.recorded_at) as took_effect_at
    from (
      select operation_id from tallyhook.operation_effects where phase = 'open'
      union select operation_id from tallyhook.due_postings) w
    join tallyhook.operations o on o.id = w.operation_id
    join tallyhook.operation_effects e on e.operation_id = o.id
    cross join lateral (select coalesce(max(t.posting), 0) % 2 = 1 as posted
      from tallyhook.transactions t where t.operation_id = o.id) p
    where not (o.in_ledger and p.posted) and e.account_key like 'wallet:%'
    group by 1, 2, 4, 5, 6, 7, 8`;
}

/** Opened wallets with ledger balance, drifts, and postings after their observation. */
function heldWallets({ tx, limits }: ReportParams) {
  return tx.sql`
    select w.key, w.addr, w.verdict, w.cause, w.observed_at, w.observed_balance, w.observation_id,
      coalesce(a.balance, 0) + coalesce(n.amount, 0) as ledger,
      coalesce(d.up, 0) as up, coalesce(d.down, 0) as down, l.late, l.optional as late_optional
    from tallyhook.wallets w
    left join tallyhook.accounts a on lower(a.name) = 'wallet:' || w.key
      and a.asset = 'service_token'
    left join (
      select lower(account) as account, sum(amount) as amount from tallyhook.posting_requests
      where posted_at is null and problem is null group by 1) n on n.account = 'wallet:' || w.key
    left join (
      select wallet_key, sum(greatest(amount, 0)) as up, sum(least(amount, 0)) as down
      from tallyhook.drifts where closed_at is null group by 1) d on d.wallet_key = w.key
    left join lateral (
      select sum(m.amount) as late, jsonb_object_agg(m.id, m.amount::text) filter (
        where m.sent_at < coalesce((select k.ended_at from tallyhook.observations k
          where k.started_at = w.observed_at and k.id = w.observation_id), w.observed_at))
        as optional
      from (
        select p.id, sum(e.amount) as amount,
          coalesce(p.sent_at, least(p.effective_at, p.recorded_at)) as sent_at
        from tallyhook.entries e
        join tallyhook.transactions t on t.id = e.transaction_id
        join tallyhook.operations p on p.id = t.operation_id
        where e.account_id = a.id and p.in_ledger
          and e.effective_at >= w.observed_at - make_interval(secs => ${limits.readLagMs / 1000})
        group by p.id having sum(e.amount) <> 0) m) l on true
    where w.opened_at is not null and w.observed_balance is not null`;
}

/** Per wallet: sum of the required pending operations, and the optional ones. */
function waitingWrites({ tx, limits }: ReportParams) {
  return tx.sql`
    select h.key,
      sum(case when p.in_ledger and p.took_effect_at < c.since then p.amount
        when p.posted then -p.amount else 0 end) as due,
      jsonb_object_agg(p.operation_id, p.amount::text) filter (
        where p.outcome <> 'not_executed' and not (p.in_ledger and p.took_effect_at < c.since)
          and p.sent_at < c.ended_at and p.amount <> 0) as optional
    from pending p
    join held h on p.account = 'wallet:' || h.key
    cross join lateral (
      select h.observed_at - make_interval(secs => ${limits.readLagMs / 1000}) as since,
        coalesce((select k.ended_at from tallyhook.observations k where k.started_at = h.observed_at
          and k.id = h.observation_id), h.observed_at) as ended_at) c
    group by h.key`;
}

export async function listDriftsOpen(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    select 'drift_open' as kind, id as subject, amount, suspected_at as since, assignee,
      jsonb_build_object('wallet', 'wallet:' || addr, 'state', state, 'proposal', proposal,
        'evidence', evidence) as evidence, (count(*) over ())::int as total
    from tallyhook.drifts where closed_at is null
    order by suspected_at, id limit ${params.limits.listMax}`;
}

export interface DriftSums {
  upCount: number;
  up: bigint;
  downCount: number;
  down: bigint;
}

/** Sums of open drifts, positive and negative ones apart. */
export async function sumDrifts({ tx }: ReportParams): Promise<DriftSums> {
  const rows = await tx.sql<DriftSums[]>`
    select (count(*) filter (where amount > 0))::int as up_count,
      coalesce(sum(amount) filter (where amount > 0), 0) as up,
      (count(*) filter (where amount < 0))::int as down_count,
      coalesce(sum(amount) filter (where amount < 0), 0) as down
    from tallyhook.drifts where closed_at is null`;
  return rows[0] ?? { upCount: 0, up: 0n, downCount: 0, down: 0n };
}

/** Drifts closed in the period, by final state. */
export async function countDriftsClosed(
  params: ReportParams,
): Promise<{ state: string; count: number }[]> {
  return params.tx.sql<{ state: string; count: number }[]>`
    select state, count(*)::int as count from tallyhook.drifts
    where closed_at >= ${params.from} and closed_at < ${params.to} group by state order by state`;
}

export interface ScopeRow {
  standing: 'checked' | 'stale' | 'never_observed' | 'inconclusive' | 'unopened';
  cause: string | null;
  count: number;
  oldest: Instant | null;
}

/** Counts each wallet in scope once, by its newest observation. */
export async function countScope(params: ReportParams): Promise<ScopeRow[]> {
  return params.tx.sql<ScopeRow[]>`
    with scope as (
      select key from tallyhook.wallets
      union select lower(substr(name, 8)) from tallyhook.accounts where kind = 'wallet'
      union select lower(addr) from tallyhook.targets where kind = 'wallet'
    ), placed as (
      select w.observed_at, case when w.observed_at is null then 'never_observed'
          when w.opened_at is null then 'unopened'
          when w.observed_at < ${before(params, params.limits.staleMs)} then 'stale'
          when w.verdict = 'inconclusive' then 'inconclusive' else 'checked' end as standing,
        w.cause
      from scope s left join tallyhook.wallets w on w.key = s.key
    )
    select standing, case when standing in ('unopened', 'inconclusive')
        then coalesce(cause, 'not recorded') end as cause, count(*)::int as count,
      min(observed_at) as oldest
    from placed group by 1, 2 order by 1, 2`;
}

/** Wallets that are stale, unopened, or inconclusive beyond the limit. */
export async function listUncovered(params: ReportParams): Promise<FindingRow[]> {
  const since = before(params, params.limits.staleMs);
  return params.tx.sql<FindingRow[]>`
    with found as (
      select case when opened_at is null then 'wallet_unopened'
          when observed_at < ${since} then 'wallet_stale' else 'wallet_inconclusive' end as kind,
        'wallet:' || addr as subject, null::numeric as amount,
        coalesce(quiet_at, observed_at) as since,
        jsonb_build_object('verdict', verdict, 'cause', cause, 'observation', observation_id,
          'unquiet_observations', unquiet_observations) as evidence
      from tallyhook.wallets
      where observed_at is not null and (opened_at is null or observed_at < ${since}
        or verdict = 'inconclusive' and coalesce(quiet_at, opened_at) < ${since})
    )
    ${firstOfEachKind(params)}`;
}
