/** SQL of alerts, of settle times and of operations that do not settle. */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { columnsOf } from '../../db/rows.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Kind } from '../../operations/operations.ts';
import { alerts } from '../tables.ts';
import type { Alert, SettleTimes } from './rule.ts';

/** More are never raised at once. */
const RAISED_MAX = 50_000;

/** All alerts that are raised. */
export async function listRaised({ sql }: Queryable): Promise<Alert[]> {
  return sql<Alert[]>`
    select ${columnsOf(sql, alerts)} from tallyhook.alerts
    order by id limit ${RAISED_MAX}`;
}

export async function insertAlerts({ sql }: Tx, raised: readonly Alert[]): Promise<void> {
  const rows = raised.map((alert) => ({ ...alert, raisedAt: isoText(alert.raisedAt) }));
  await sql`
    insert into tallyhook.alerts (id, rule, subject, raised_at, detail)
    select id, rule, subject, "raisedAt", detail
    from jsonb_to_recordset(${asJson(rows)}::jsonb)
      as x(id text, rule text, subject text, "raisedAt" timestamptz, detail jsonb)`;
}

export async function updateDetails({ sql }: Tx, changed: readonly Alert[]): Promise<void> {
  await sql`
    update tallyhook.alerts a set detail = x.detail
    from jsonb_to_recordset(${asJson(changed)}::jsonb) as x(id text, detail jsonb)
    where a.id = x.id`;
}

export async function deleteAlerts({ sql }: Tx, ids: readonly string[]): Promise<void> {
  await sql`delete from tallyhook.alerts where id = any(${ids as string[]}::text[])`;
}

export interface AlertCount {
  rule: string;
  count: number;
  detail: Alert['detail'];
}

/** How many alerts of each rule are raised, and the detail of one of them. */
export async function countAlerts({ sql }: Queryable): Promise<AlertCount[]> {
  return sql<AlertCount[]>`
    select rule, count(*)::int as count, (array_agg(detail))[1] as detail
    from tallyhook.alerts group by rule`;
}

/** The newest operations of a kind that count for its settle times. */
const SETTLED_MAX = 1_000;

/** How long the newest writes of each kind took from their answer until they settled. */
export async function settleTimes(
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

export interface Stuck {
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
export async function listStuck(
  { sql }: Queryable,
  input: { now: Instant; from: Instant; afterMs: Map<string, number>; before: readonly string[] },
  limit: number,
): Promise<Stuck[]> {
  const { now, from, before } = input;
  const kinds = [...input.afterMs].map(([kind, ms]) => ({ kind, ms }));
  const least = Math.min(...input.afterMs.values());
  return sql<Stuck[]>`
    select o.id, s.since from tallyhook.operations o
    join jsonb_to_recordset(${asJson(kinds)}::jsonb) as k(kind text, ms bigint)
      on k.kind = o.kind
    cross join lateral (
      select max(t.at) as since from tallyhook.transitions t
      where t.operation_id = o.id and t.from_state is distinct from t.to_state) s
    cross join lateral (
      select greatest(s.since, ${isoText(from)}::timestamptz) + k.ms * interval '1 ms' as at) due
    where o.settled_at is null and o.state in ('accepted', 'executed')
      and coalesce(o.answered_at, o.sent_at, o.recorded_at) < ${isoText(now - least)}
      and (o.id = any(${before as string[]}::text[])
        or (due.at < ${isoText(now)}::timestamptz and not exists (
          select from tallyhook.targets t
          where t.name in (select lower(e.account) from tallyhook.operation_effects e
              where e.operation_id = o.id
              union all select 'token:' || o.contract_id || ':' || o.token_id)
            and (t.last_started_at is null or t.last_started_at < due.at))))
    order by coalesce(o.answered_at, o.sent_at, o.recorded_at) limit ${limit}`;
}

/** Those of these operations that still wait to settle, locked until the end of the transaction. */
export async function lockUnsettled({ sql }: Tx, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const rows = await sql<{ id: string }[]>`
    select id from tallyhook.operations
    where id = any(${ids as string[]}::text[]) and state in ('accepted', 'executed')
      and settled_at is null
    order by id for share`;
  return new Set(rows.map(({ id }) => id));
}

/** The last processed balances of those wallets that were observed, by key. */
export async function observedBalances(
  { sql }: Queryable,
  keys: readonly string[],
): Promise<Map<string, bigint>> {
  if (keys.length === 0) return new Map();
  const rows = await sql<{ key: string; balance: bigint }[]>`
    select key, observed_balance as balance from tallyhook.wallets
    where key = any(${keys as string[]}::text[]) and observed_balance is not null`;
  return new Map(rows.map(({ key, balance }) => [key, balance]));
}

/** Unknown operations recorded before then, oldest first. */
export async function listUnknownBefore(
  { sql }: Queryable,
  before: string,
  limit: number,
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from tallyhook.operations
    where state = 'unknown' and recorded_at < ${before}::timestamptz
    order by recorded_at limit ${limit}`;
  return rows.map(({ id }) => id);
}

/** Open drifts of more than that, in either direction; what is certain of one that is not exact. */
export async function listDriftsAbove(
  { sql }: Queryable,
  amount: bigint,
  limit: number,
): Promise<{ id: string; addr: string; amount: bigint }[]> {
  return sql<{ id: string; addr: string; amount: bigint }[]>`
    select id, addr, amount from (
      select id, addr, opened_at, coalesce(amount, case when amount_min > 0 then amount_min
        when amount_max < 0 then amount_max else 0 end) as amount
      from tallyhook.drifts where closed_at is null) d
    where abs(amount) > ${amount.toString()}::numeric
    order by opened_at limit ${limit}`;
}

/** Raised alerts, oldest first, after an id. */
export async function listAlerts(
  { sql }: Queryable,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<Alert[]> {
  return sql<Alert[]>`
    select ${columnsOf(sql, alerts)} from tallyhook.alerts
    where id > ${after ?? ''} order by id limit ${limit}`;
}
