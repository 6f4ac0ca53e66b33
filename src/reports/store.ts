/** SQL of the reports: rows that are only added, and the times that say which report is due. */
import { asJson, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { ReconciliationContent } from './content.ts';

export const SCHEDULE = 'schedule';

/** A report without its content. */
export interface ReportHead {
  id: string;
  kind: string;
  periodFrom: Instant;
  /** Excluded. */
  periodTo: Instant;
  knownAt: Instant;
  /** `schedule`, or the owner who asked. */
  requestedBy: string;
  verdict: 'balanced' | 'breaks';
  breaks: number;
  /** SHA-256 of the canonical content, hex. */
  hash: string;
  createdAt: Instant;
}

export interface Report extends ReportHead {
  content: ReconciliationContent;
}

function headColumns(sql: Sql) {
  return sql`id, kind, period_from, period_to, known_at,
    requested_by, verdict, breaks, hash, created_at`;
}

/** Adds a report; false when the schedule has made one of this kind and period already. */
export async function insertReport(tx: Tx, report: Report): Promise<boolean> {
  const rows = await tx.sql`
    insert into tallyhook.reports (id, kind, period_from, period_to, known_at, requested_by,
      verdict, breaks, content, hash, created_at)
    values (${report.id}, ${report.kind}, ${isoText(report.periodFrom)},
      ${isoText(report.periodTo)}, ${isoText(report.knownAt)}, ${report.requestedBy},
      ${report.verdict}, ${report.breaks}, ${asJson(report.content)}::jsonb,
      ${report.hash}, ${isoText(report.createdAt)})
    on conflict (kind, period_from, period_to) where requested_by = 'schedule' do nothing
    returning 1 as one`;
  return rows.length === 1;
}

export async function findReport(db: Queryable, id: string): Promise<Report | undefined> {
  const rows = await db.sql<Report[]>`
    select ${headColumns(db.sql)}, content from tallyhook.reports where id = ${id}`;
  return rows[0];
}

/** The scheduled report of a kind and period. */
export async function findScheduled(
  db: Queryable,
  period: { kind: string; from: Instant; to: Instant },
): Promise<Report | undefined> {
  const rows = await db.sql<Report[]>`
    select ${headColumns(db.sql)}, content from tallyhook.reports
    where kind = ${period.kind} and period_from = ${isoText(period.from)}
      and period_to = ${isoText(period.to)} and requested_by = ${SCHEDULE}`;
  return rows[0];
}

/** Reports, the newest first, without their content. */
export async function listHeads(
  db: Queryable,
  page: { before?: string | undefined; kind?: string | undefined; limit: number },
): Promise<ReportHead[]> {
  const { sql } = db;
  return sql<ReportHead[]>`
    select ${headColumns(sql)} from tallyhook.reports
    where true
      ${page.before ? sql`and id < ${page.before}` : sql``}
      ${page.kind ? sql`and kind = ${page.kind}` : sql``}
    order by id desc limit ${page.limit}`;
}

/**
 * Where the last scheduled period ended, or else when the first fact was recorded; null before it.
 */
export async function findScheduleStart(
  db: Queryable,
  kind: string,
): Promise<{ at: Instant; isPeriodEnd: boolean } | undefined> {
  const rows = await db.sql<{ last: Instant | null; first: Instant | null }[]>`
    select (select max(period_to) from tallyhook.reports
        where kind = ${kind} and requested_by = ${SCHEDULE}) as last,
      least((select recorded_at from tallyhook.operations order by id limit 1),
        (select min(recorded_at) from tallyhook.batches)) as first`;
  const { last = null, first = null } = rows[0] ?? {};
  if (last !== null) return { at: last, isPeriodEnd: true };
  return first === null ? undefined : { at: first, isPeriodEnd: false };
}

/** The local midnight at or before an instant, and the one after it. */
export async function dayAround(
  db: Queryable,
  at: Instant,
  timeZone: string,
): Promise<{ from: Instant; to: Instant }> {
  const rows = await db.sql<{ from: Instant; to: Instant }[]>`
    select day at time zone ${timeZone} as "from",
      (day + interval '1 day') at time zone ${timeZone} as "to"
    from date_trunc('day', ${isoText(at)}::timestamptz at time zone ${timeZone}) as d(day)`;
  return rows[0] ?? { from: at, to: at };
}

/**
 * Takes the right to make scheduled reports until the transaction ends; false when another has it.
 */
export async function lockSchedule(tx: Tx, kind: string): Promise<boolean> {
  const rows = await tx.sql<{ held: boolean }[]>`
    select pg_try_advisory_xact_lock(hashtextextended(${`tallyhook report ${kind}`}, 0)) as held`;
  return rows[0]?.held ?? false;
}

/**
 * From here on the transaction cannot write, sorts and joins in memory, and keeps to one core: a
 * report never takes the machine from the daemon.
 */
export async function onlyRead(tx: Tx): Promise<void> {
  await tx.sql`set transaction read only`;
  await tx.sql`set local work_mem = '64MB'`;
  await tx.sql`set local max_parallel_workers_per_gather = 0`;
}
