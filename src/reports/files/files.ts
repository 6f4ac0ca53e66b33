/**
 * Files of reports in the folder of a setting. What is due is committed with the report, so a crash
 * or a full disk loses no file. A file is written under a temporary name and renamed when it is
 * whole; one that was written twice has the same bytes.
 */
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import { FORMATS, type ReportFormat } from '../render/formats.ts';
import { findReport, type ReportSummary } from '../store.ts';
import { type DueFile, markFailed, markWritten, takeDueFile } from './store.ts';

export interface FileSettings {
  /** An existing folder, absolute; absent: no files are written. */
  folder?: string | undefined;
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

/** Where the file of a report is, or will be: the name begins with the period, in UTC. */
export function pathOf(
  folder: string,
  {
    id,
    kind,
    periodFrom,
    periodTo,
  }: Pick<ReportSummary, 'id' | 'kind' | 'periodFrom' | 'periodTo'>,
  format: ReportFormat,
): string {
  const [from, to] = [periodFrom, periodTo].map((at) =>
    isoText(at).slice(0, 16).replaceAll(/[-:]/g, ''),
  );
  return join(folder, `${kind}_${from}Z_${to}Z_${id}.${FORMATS[format].extension}`);
}

/** Writes the files that are due; a failed one is due again after a growing delay. */
export async function writeDueFiles(
  db: Db,
  folder: string,
  now: Instant,
  signal?: AbortSignal,
): Promise<WrittenFiles> {
  const done: WrittenFiles = { written: [], failed: [] };
  for (let n = 0; n < FILES_MAX && !signal?.aborted; n += 1)
    if (!(await writeNext(db, folder, now, done))) break;
  return done;
}

/** False when no file is due. */
function writeNext(db: Db, folder: string, now: Instant, done: WrittenFiles): Promise<boolean> {
  return db.begin(async (tx) => {
    const due = await takeDueFile(tx, now);
    if (!due) return false;
    const report = must(await findReport(tx, due.reportId), 'report of a file');
    const path = pathOf(folder, report, due.format);
    const content = await FORMATS[due.format].render(report);
    const problem = await writeWhole(path, content);
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
