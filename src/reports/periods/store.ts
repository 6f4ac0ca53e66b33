/** SQL of closed periods and of what people did with them. */
import { beginOfDay } from '../../db/clock/calendar.ts';
import type { Queryable, Sql, Tx } from '../../db/connect.ts';
import { columnsOf, rowOf } from '../../db/rows.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import type { PeriodState, period } from '../../resources/ledger/period.ts';
import type { Moment } from '../../resources/moments.ts';
import type { Row } from '../../resources/resource.ts';
import type { Period } from '../schedule.ts';
import { periodActions, periods } from '../tables.ts';

/** A close of a period; the newest states count. */
export type ClosedPeriod = Row<typeof period>;

export async function instantOf(db: Queryable, moment: Moment, timeZone: string): Promise<Instant> {
  return 'at' in moment ? moment.at : beginOfDay(db, moment.day, timeZone);
}

/** Of period `p` with its signature `s` and its reopening `r`. */
function stateOf(sql: Sql) {
  return sql`case when r.id is not null then 'reopened' when s.id is not null then 'signed'
    else 'closed' end`;
}

function selectPeriods(sql: Sql) {
  return sql`
    select ${columnsOf(sql, periods, 'p')}, s.by as signed_by, s.at as signed_at,
      q.n as reopen_proposal, q.proposed_by as reopen_proposed_by, r.by as reopened_by,
      r.at as reopened_at,
      coalesce(r.reason, q.reason) as reopen_reason,
      ${stateOf(sql)} as state,
      coalesce((select jsonb_agg(jsonb_build_object('kind', o.detail ->> 'kind',
          'subject', o.detail ->> 'subject', 'reason', o.reason) order by o.id)
        from tallyhook.period_actions o where o.period_id = p.id and o.action = 'signed_off'),
        '[]') as sign_offs
    from tallyhook.periods p
    left join tallyhook.period_actions s on s.period_id = p.id and s.action = 'signed'
    left join tallyhook.period_actions r on r.period_id = p.id and r.action = 'reopened'
    left join lateral (select d.n::int as n, d.proposed_by, d.reason from tallyhook.decisions d
      where d.subject = p.id and d.decision = 'reopen' order by d.n desc limit 1) q on true`;
}

/** The newest close first. */
export async function listPeriods(
  { sql }: Queryable,
  page: { state?: PeriodState | undefined; before?: string | undefined; limit: number },
): Promise<ClosedPeriod[]> {
  return sql<ClosedPeriod[]>`
    ${selectPeriods(sql)}
    where true ${page.before ? sql`and p.id < ${page.before}` : sql``}
      ${page.state ? sql`and ${stateOf(sql)} = ${page.state}` : sql``}
    order by p.id desc limit ${page.limit}`;
}

export async function findPeriod(
  { sql }: Queryable,
  id: string,
): Promise<ClosedPeriod | undefined> {
  const rows = await sql<ClosedPeriod[]>`${selectPeriods(sql)} where p.id = ${id}`;
  return rows[0];
}

/** The close whose report this is; undefined for the report of none. */
export async function findPeriodOf(
  { sql }: Queryable,
  reportId: string,
): Promise<ClosedPeriod | undefined> {
  const rows = await sql<ClosedPeriod[]>`
    ${selectPeriods(sql)} where p.report_id = ${reportId} order by p.id desc limit 1`;
  return rows[0];
}

/** Closed periods `p` that were not reopened. */
function inForce(sql: Sql) {
  return sql`not exists (select from tallyhook.period_actions a
    where a.period_id = p.id and a.action = 'reopened')`;
}

/** The newest period in force. A period that is closed again has another id. */
export async function findNewest({
  sql,
}: Queryable): Promise<Pick<ClosedPeriod, 'id' | 'periodTo'> | undefined> {
  const rows = await sql<Pick<ClosedPeriod, 'id' | 'periodTo'>[]>`
    select p.id, p.period_to from tallyhook.periods p where ${inForce(sql)}
    order by p.period_to desc limit 1`;
  return rows[0];
}

/** What people have to do with periods. */
export interface WaitingPeriods {
  /** Closed and in force, and not signed. */
  toSign: number;
  /** When the next period ended, if it is as long as the last one; null before, and without one. */
  toCloseSince: Instant | null;
  /** When the reopening of the newest one in force was proposed; null without a proposal. */
  toReopenSince: Instant | null;
  toReopenProposedBy: string | null;
}

export async function findWaitingPeriods(
  { sql }: Queryable,
  now: Instant,
): Promise<WaitingPeriods> {
  const rows = await sql<WaitingPeriods[]>`
    with newest as (
      select p.id, p.period_to, p.period_to + (p.period_to - p.period_from) as next_ends
      from tallyhook.periods p where ${inForce(sql)} order by p.period_to desc limit 1
    ), reopened as (
      -- No period in force has its time: it waits since its own end.
      select r.period_to as ends from tallyhook.periods r
      where r.period_to > coalesce((select n.period_to from newest n), '-infinity')
      order by r.period_to limit 1
    ), proposed as (
      select a.at, a.by from newest n join tallyhook.period_actions a on a.period_id = n.id
      where a.action = 'reopen_proposed' order by a.id desc limit 1
    )
    select (select count(*)::int from tallyhook.periods p where ${inForce(sql)}
        and not exists (select from tallyhook.period_actions s
          where s.period_id = p.id and s.action = 'signed')) as to_sign,
      (select min(ends)
        from (select next_ends as ends from newest union all select ends from reopened) x
        where ends <= ${isoText(now)}) as to_close_since,
      (select at from proposed) as to_reopen_since,
      (select by from proposed) as to_reopen_proposed_by`;
  return must(rows[0], 'counts of periods');
}

/** The id of the report of the period in force that is exactly this one. */
export async function findClosedReport(
  { sql }: Queryable,
  { from, to }: Period,
): Promise<string | undefined> {
  const rows = await sql<{ reportId: string }[]>`
    select p.report_id from tallyhook.periods p
    where p.period_from = ${isoText(from)} and p.period_to = ${isoText(to)} and ${inForce(sql)}`;
  return rows[0]?.reportId;
}

/** Where a closed period ends, and what it knew. */
export interface CutOff {
  periodTo: Instant;
  lastBatch: bigint;
  knownAt: Instant;
}

/** The newest period in force that ends at or before an instant. */
export async function findClosedUntil(
  { sql }: Queryable,
  at: Instant,
): Promise<CutOff | undefined> {
  const rows = await sql<CutOff[]>`
    select p.period_to, p.last_batch, p.known_at from tallyhook.periods p
    where p.period_to <= ${isoText(at)} and ${inForce(sql)}
    order by p.period_to desc limit 1`;
  return rows[0];
}

/** Waits for other closes, signatures and reopenings, which wait until the transaction ends. */
export async function lockPeriods({ sql }: Tx): Promise<void> {
  await sql`select tallyhook.lock_periods()`;
}

export async function insertPeriod(
  { sql }: Tx,
  period: typeof periods.$inferInsert,
): Promise<void> {
  await sql`insert into tallyhook.periods ${rowOf(sql, periods, period)}`;
}

interface PeriodAction {
  action: 'closed' | 'signed_off' | 'signed' | 'reopen_proposed' | 'reopened';
  reason?: string;
  detail?: Json;
}

export async function insertPeriodAction(
  { sql }: Tx,
  periodId: string,
  { action, reason, detail }: PeriodAction,
  { owner, keyId }: { owner: string; keyId: string },
  at: Instant,
): Promise<void> {
  const by = { at, by: owner, keyId };
  const row = { periodId, action, ...by, reason: reason ?? null, detail: detail ?? null };
  await sql`insert into tallyhook.period_actions ${rowOf(sql, periodActions, row)}`;
}
