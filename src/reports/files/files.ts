/**
 * Files of reports in the folder or the bucket of a setting. What is due is committed with the
 * report, so a crash or a full disk loses no file. A file in a folder is written under a temporary
 * name and renamed when it is whole; one that was written twice has the same bytes.
 */
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db, Queryable, Tx } from '../../db/connect.ts';
import { rowOf } from '../../db/rows.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { Report } from '../../resources/reports/content.ts';
import {
  FORMATS,
  type ReportFormat,
  type ReportSummary,
  type reportFile,
} from '../../resources/reports/report.ts';
import type { Row } from '../../resources/resource.ts';
import type { ShownSettings } from '../params.ts';
import type { LineLimits } from '../queries/lines.ts';
import { RENDERERS, readForRendering } from '../render/formats.ts';
import { findReport } from '../store.ts';
import { reportFiles } from '../tables.ts';
import { type BucketSettings, putObject, uriOf } from './bucket.ts';

/** Where files are delivered to; neither a folder nor a bucket: no files are written. */
export interface FileSettings {
  /** An existing folder, absolute. */
  folder?: string | undefined;
  /** Used without a folder. */
  bucket?: BucketSettings | undefined;
  formats: readonly ReportFormat[];
}

export interface WrittenFiles {
  written: string[];
  /** They are tried again. */
  failed: { path: string; problem: string }[];
}

/** Files per pass. */
const FILES_MAX = 100;
const RETRY_MS = 10_000;
const RETRY_MAX_MS = 3_600_000;

type Named = Pick<ReportSummary, 'id' | 'kind' | 'periodFrom' | 'periodTo'>;

/** Whether files are written at all. */
export function isDelivered({ folder, bucket }: FileSettings): boolean {
  return folder !== undefined || bucket !== undefined;
}

/** Where the files of a report are, or will be, in the order of the formats. */
export function pathsOf(files: FileSettings, report: Named): string[] {
  return isDelivered(files) ? files.formats.map((format) => pathOf(files, report, format)) : [];
}

function pathOf({ folder, bucket }: FileSettings, report: Named, format: ReportFormat): string {
  const name = nameOf(report, format);
  return folder === undefined ? uriOf(must(bucket, 'bucket'), name) : join(folder, name);
}

/** The name of the file of a report begins with its period, in UTC. */
function nameOf({ id, kind, periodFrom, periodTo }: Named, format: ReportFormat): string {
  const [from, to] = [periodFrom, periodTo].map((at) =>
    isoText(at).slice(0, 16).replaceAll(/[-:]/g, ''),
  );
  return `${kind}_${from}Z_${to}Z_${id}.${FORMATS[format].extension}`;
}

/** Writes the files that are due; a failed one is due again after a growing delay. */
export async function writeDueFiles(
  db: Db,
  files: FileSettings & { shown: LineLimits & ShownSettings },
  now: Instant,
  signal?: AbortSignal,
): Promise<WrittenFiles> {
  const done: WrittenFiles = { written: [], failed: [] };
  for (let n = 0; n < FILES_MAX && !signal?.aborted; n += 1)
    if (!(await writeNext(db, files, now, done))) break;
  return done;
}

/** False when no file is due. */
function writeNext(
  db: Db,
  files: FileSettings & { shown: LineLimits & ShownSettings },
  now: Instant,
  done: WrittenFiles,
): Promise<boolean> {
  return db.begin(async (tx) => {
    const due = await takeDueFile(tx, now);
    if (!due) return false;
    const report = must(await findReport(tx, due.reportId), 'report of a file');
    const path = pathOf(files, report, due.format);
    const { mediaType, isText } = FORMATS[due.format];
    const content = await contentOf(tx, report, due.format, files.shown);
    const problem =
      content instanceof Failure
        ? content.message
        : files.folder === undefined
          ? await putObject(must(files.bucket, 'bucket'), nameOf(report, due.format), {
              content,
              mediaType: isText ? `${mediaType}; charset=utf-8` : mediaType,
            })
          : await writeWhole(path, content);
    if (problem === undefined) {
      await markWritten(tx, due, path, now);
      done.written.push(path);
    } else {
      await markFailed(tx, due, problem, retryAt(due, now));
      done.failed.push({ path, problem });
    }
    return true;
  });
}

/** A failure is what the report does not allow. */
async function contentOf(
  tx: Tx,
  report: Report,
  format: ReportFormat,
  shown: LineLimits & ShownSettings,
) {
  try {
    const { lines, closed } = await readForRendering(tx, report, format, shown);
    return await RENDERERS[format].render(report, lines, { ...shown, closed });
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}

function retryAt({ attempts }: DueFile, now: Instant): Instant {
  return now + Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** Math.min(attempts, 20));
}

/** Writes a file that others see whole or not at all. Returns what prevents it. */
async function writeWhole(path: string, content: string | Uint8Array): Promise<string | undefined> {
  const part = `${path}.part`;
  try {
    const file = await open(part, 'w', 0o640);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, path);
    return undefined;
  } catch (error) {
    await rm(part, { force: true }).catch(() => {});
    const { code } = error as { code?: string };
    if (code === undefined) throw error;
    return `${path} cannot be written: ${code}`;
  }
}

interface DueFile {
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
      insert into tallyhook.report_files
      ${rowOf(sql, reportFiles, { reportId, format, dueAt, attempts: 0 })}`;
}

/** Locks the file that is due the longest; undefined when none is, or others write them. */
async function takeDueFile({ sql }: Tx, now: Instant): Promise<DueFile | undefined> {
  const rows = await sql<DueFile[]>`
    select report_id, format, attempts from tallyhook.report_files
    where written_at is null and due_at <= ${isoText(now)}
    order by due_at limit 1 for update skip locked`;
  return rows[0];
}

async function markWritten(
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

async function markFailed(
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

export async function listFiles(
  { sql }: Queryable,
  reportId: string,
): Promise<Row<typeof reportFile>[]> {
  return sql<Row<typeof reportFile>[]>`
    select format, path, written_at, problem from tallyhook.report_files
    where report_id = ${reportId} order by format`;
}
