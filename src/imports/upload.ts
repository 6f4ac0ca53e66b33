/** Stages a file: its rows as reports, while it arrives. */
import { createHash } from 'node:crypto';
import type { Db } from '../db/connect.ts';
import type { Clock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { chunksOf } from '../kernel/http/body.ts';
import type { Ids } from '../kernel/ids.ts';
import { canonicalJson, jsonText, sha256Hex } from '../kernel/json.ts';
import { decoded, decoderOf } from './file/decode.ts';
import { type ImportOptions, type Line, makeMapping } from './file/mapping.ts';
import { csvRows, ndjsonRows } from './file/rows.ts';
import * as store from './store.ts';

/** Bounds of a file; larger histories are several files. */
export const BYTES_MAX = 536_870_912;
export const LINES_MAX = 1_000_000;
const BATCH = 500;

export interface Upload {
  fileName: string;
  options: ImportOptions;
  owner: string;
  keyId: string;
  body: ReadableStream<Uint8Array>;
  /** Aborts when the daemon stops. */
  stop: AbortSignal;
  idleMs?: number;
}

interface Deps {
  db: Db;
  clock: Clock;
  ids: Ids;
}

/**
 * Returns the import of the file. The same file with the same options of the same owner is the
 * import that is being checked or recorded; one that waits to be recorded ends, as its check does
 * not know what came since.
 * @throws Failure `invalid_request` when the file cannot be read, `malformed_json` when it is cut,
 * `body_too_large`, `request_timeout`, `shutting_down`
 */
export async function stageFile(deps: Deps, upload: Upload): Promise<store.Import> {
  const { db, clock, ids } = deps;
  const { fileName, owner, keyId } = upload;
  const options = withFormat(fileName, upload.options);
  if (options.encoding !== undefined) decoderOf(options.encoding);
  const mapping = makeMapping(options);
  const id = ids.next('imp');
  const stored = JSON.parse(jsonText(options));
  await store.insertStaging(db, {
    id,
    owner,
    keyId,
    fileName,
    options: stored,
    createdAt: clock.now(),
  });
  const file = countedFile(upload);
  try {
    const text = decoded(file.chunks(), options.encoding);
    const rows =
      options.format === 'csv'
        ? csvRows(text, options.delimiter, mapping.checkColumns)
        : ndjsonRows(text);
    const counts = await stageRows(db, id, rows, mapping.toLine);
    const { bytes, sha256 } = file.result();
    const fingerprint = sha256Hex(canonicalJson([owner, sha256, stored]));
    const ignoredColumns = [...mapping.ignored];
    const found = await db.begin(async (tx) => {
      const going = await store.lockGoing(tx, fingerprint);
      if (going?.state === 'checking' || going?.state === 'recording') return going;
      if (going) await store.endImport(tx, going.id, [going.state], 'cancelled', clock.now());
      const arrived = { ...counts, bytes, sha256, fingerprint, ignoredColumns };
      return store.markStaged(tx, id, arrived);
    });
    if (found.id !== id) await store.removeStaged(db, id);
    return found;
  } catch (error) {
    // What stays is removed a day later.
    await store.removeStaged(db, id).catch(() => {});
    // A client reads the answer when it has sent everything.
    await file.drain();
    throw error;
  }
}

function withFormat(fileName: string, options: ImportOptions): ImportOptions {
  const ending = /\.(csv|tsv|ndjson|jsonl)$/i.exec(fileName)?.[1]?.toLowerCase();
  const format = options.format ?? (ending && (/sv$/.test(ending) ? 'csv' : 'ndjson'));
  if (format === 'csv' || format === 'ndjson') return { ...options, format };
  throw new Failure('invalid_request', `${fileName}: name its --format, csv or ndjson`);
}

type Rows = ReturnType<typeof ndjsonRows>;

async function stageRows(
  db: Db,
  id: string,
  rows: Rows,
  toLine: (row: Parameters<ReturnType<typeof makeMapping>['toLine']>[0]) => Line | undefined,
) {
  const counts = { lines: 0, skipped: 0, refused: 0 };
  let batch: store.StagedRow[] = [];
  for await (const row of rows) {
    const line = toLine(row);
    if (!line) {
      counts.skipped++;
      continue;
    }
    if (++counts.lines > LINES_MAX)
      throw new Failure('body_too_large', `at most ${LINES_MAX} rows; send several files`);
    const isRead = 'report' in line;
    if (!isRead) counts.refused++;
    batch.push({
      n: counts.lines,
      line: line.line,
      report: isRead ? line.report : null,
      problem: isRead ? null : line.problem,
    });
    if (batch.length < BATCH) continue;
    await store.insertRows(db, id, batch);
    batch = [];
  }
  if (counts.lines + counts.skipped === 0)
    throw new Failure('invalid_request', 'the file has no rows');
  if (batch.length > 0) await store.insertRows(db, id, batch);
  return counts;
}

/** The chunks of a body, counted and hashed as they pass. */
function countedFile({ body, stop, idleMs }: Upload) {
  const hash = createHash('sha256');
  let bytes = 0;
  async function* bounded(): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunksOf(body, { stop, sent: 'the file', idleMs })) {
      bytes += chunk.length;
      if (bytes > BYTES_MAX)
        throw new Failure('body_too_large', `at most ${BYTES_MAX} bytes; send several files`);
      yield chunk;
    }
  }
  const rest = bounded();
  return {
    async *chunks(): AsyncGenerator<Uint8Array> {
      for (let next = await rest.next(); !next.done; next = await rest.next()) {
        hash.update(next.value);
        yield next.value;
      }
    },
    result: () => ({ bytes, sha256: hash.digest('hex') }),
    /** Reads what is left, unless the body has failed. */
    async drain(): Promise<void> {
      try {
        for await (const _ of rest);
      } catch {
        // Its sender is gone, too late, or told of the first failure.
      }
    },
  };
}
