/** Rows of reports. */
import type { Queryable, Tx } from '../db/connect.ts';
import { columnsOf, rowOf } from '../db/rows.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Report } from '../resources/reports/content.ts';
import { type ReportSummary, report } from '../resources/reports/report.ts';
import { reports } from './tables.ts';

export const SCHEDULE = 'schedule';

const SUMMARY = Object.keys(report.fields) as [string, ...string[]];

/** False when the period already has a scheduled report of this kind. */
export async function insertReport(tx: Tx, made: Report): Promise<boolean> {
  const rows = await tx.sql`
    insert into tallyhook.reports ${rowOf(tx.sql, reports, made)}
    on conflict (kind, period_from, period_to) where requested_by = 'schedule' do nothing
    returning 1 as one`;
  return rows.length === 1;
}

export async function findReport(db: Queryable, id: string): Promise<Report | undefined> {
  const rows = await db.sql<Report[]>`
    select ${columnsOf(db.sql, reports)} from tallyhook.reports where id = ${id}`;
  return rows[0];
}

export async function findScheduled(
  db: Queryable,
  period: { kind: string; from: Instant; to: Instant },
): Promise<Report | undefined> {
  const rows = await db.sql<Report[]>`
    select ${columnsOf(db.sql, reports)} from tallyhook.reports
    where kind = ${period.kind} and period_from = ${isoText(period.from)}
      and period_to = ${isoText(period.to)} and requested_by = ${SCHEDULE}`;
  return rows[0];
}

/** Newest first. */
export async function listSummaries(
  db: Queryable,
  page: { before?: string | undefined; kind?: string | undefined; limit: number },
): Promise<ReportSummary[]> {
  const { sql } = db;
  return sql<ReportSummary[]>`
    select ${sql(...SUMMARY)} from tallyhook.reports
    where true
      ${page.before ? sql`and id < ${page.before}` : sql``}
      ${page.kind ? sql`and kind = ${page.kind}` : sql``}
    order by id desc limit ${page.limit}`;
}

/** Locks scheduled reports of a kind until the transaction ends; false when already locked. */
export async function lockSchedule(tx: Tx, kind: string): Promise<boolean> {
  const rows = await tx.sql<{ locked: boolean }[]>`
    select pg_try_advisory_xact_lock(hashtextextended(${`tallyhook report ${kind}`}, 0)) as locked`;
  return rows[0]?.locked ?? false;
}

/** Makes the transaction read-only, and bounds its memory and cores so the daemon keeps running. */
export async function setReadOnly(tx: Tx): Promise<void> {
  await tx.sql`set transaction read only`;
  await tx.sql`set local work_mem = '64MB'`;
  await tx.sql`set local max_parallel_workers_per_gather = 0`;
}

/** The heads of the hash chain in the newest reports, in the form of `--anchor`. */
export async function listChainHeads(db: Queryable): Promise<{ id: string; head: string }[]> {
  return db.sql<{ id: string; head: string }[]>`
    select id, content -> 'cut_off' ->> 'chain_head' as head from tallyhook.reports
    where content -> 'cut_off' ->> 'chain_head' is not null order by id desc limit 1000`;
}
