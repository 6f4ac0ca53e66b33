/** SQL of report files: which are due, and what became of them. */
import type { Queryable, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { ReportFormat } from '../render/formats.ts';

export interface DueFile {
  reportId: string;
  format: ReportFormat;
  attempts: number;
}

export async function insertFiles(
  { sql }: Tx,
  reportId: string,
  formats: readonly ReportFormat[],
  dueAt: Instant,
): Promise<void> {
  for (const format of new Set(formats))
    await sql`
      insert into tallyhook.report_files (report_id, format, due_at, attempts)
      values (${reportId}, ${format}, ${isoText(dueAt)}, 0)`;
}

/** Locks the file that is due the longest; undefined when none is, or others write them. */
export async function takeDueFile({ sql }: Tx, now: Instant): Promise<DueFile | undefined> {
  const rows = await sql<DueFile[]>`
    select report_id, format, attempts from tallyhook.report_files
    where written_at is null and due_at <= ${isoText(now)}
    order by due_at limit 1 for update skip locked`;
  return rows[0];
}

export async function markWritten(
  { sql }: Tx,
  { reportId, format }: DueFile,
  path: string,
  at: Instant,
): Promise<void> {
  await sql`
    update tallyhook.report_files
    set written_at = ${isoText(at)}, path = ${path}, attempts = attempts + 1, problem = null
    where report_id = ${reportId} and format = ${format}`;
}

export async function markFailed(
  { sql }: Tx,
  { reportId, format }: DueFile,
  problem: string,
  dueAt: Instant,
): Promise<void> {
  await sql`
    update tallyhook.report_files
    set due_at = ${isoText(dueAt)}, attempts = attempts + 1, problem = ${problem}
    where report_id = ${reportId} and format = ${format}`;
}

/** A file of a report in the folder or bucket of the setting. */
export interface ReportFile {
  format: ReportFormat;
  /** Null until it is written. */
  path: string | null;
  writtenAt: Instant | null;
  /** Why the last attempt failed; null before one, and when it is written. */
  problem: string | null;
}

export async function listFiles({ sql }: Queryable, reportId: string): Promise<ReportFile[]> {
  return sql<ReportFile[]>`
    select format, path, written_at, problem from tallyhook.report_files
    where report_id = ${reportId} order by format`;
}
