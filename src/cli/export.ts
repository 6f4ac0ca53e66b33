/**
 * `tallyhook export`: operations from the running daemon as a file for people with spreadsheets or
 * programs. Every page is fetched and written before the next one, so that any number of them fits;
 * amounts and numbers are exact text; a file has its name only when it is whole.
 */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isoText, systemClock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { type Json, jsonText, parseJson } from '../kernel/json.ts';
import { cellText } from '../reports/reports.ts';
import { callDaemon, type Remote } from './remote.ts';

/** The order of finance_v1.operations, and after it what else helps to place a write. */
const COLUMNS = [
  ...['operation_id', 'kind', 'state', 'outcome', 'tx_app_no', 'tx_log_no', 'tx_hash', 'from_addr'],
  ...['to_addr', 'operation_no', 'contract_id', 'token_id', 'amount', 'fee_amount', 'reason_type'],
  ...['reference', 'sent_at', 'answered_at', 'settled_at', 'effective_at', 'recorded_at', 'source'],
];
const PAGE = 500;
const TOLD_EVERY = 10_000;
export const FORMATS = ['csv', 'ndjson', 'json'];

export interface ExportOptions extends Remote {
  since?: string;
  until?: string;
  state?: string;
  kind?: string;
  format: string;
  out?: string;
}

type Row = { [member: string]: Json };

/** Exports what the options choose, the newest first. @throws Failure `bad_setting` */
export async function exportOperations(options: ExportOptions): Promise<number> {
  if (!FORMATS.includes(options.format))
    throw new Failure('bad_setting', `--format is one of ${FORMATS.join(', ')}`);
  // What is recorded while it runs would only make two exports of one minute differ.
  const until = options.until ?? isoText(systemClock.now());
  const texts = Readable.from(textsOf(options.format, rowsOf({ ...options, until })));
  if (options.out === undefined) {
    await pipeline(texts, toTerminal()).catch((error: NodeJS.ErrnoException) => {
      // Whoever reads has seen enough.
      if (error.code !== 'EPIPE') throw error;
    });
  } else {
    const part = `${options.out}.part`;
    try {
      await pipeline(texts, createWriteStream(part, { mode: 0o600 }));
      await rename(part, options.out);
    } catch (error) {
      await rm(part, { force: true });
      if (error instanceof Failure) throw error;
      throw new Failure('bad_setting', `${options.out} cannot be written`);
    }
  }
  return 0;
}

/** Standard output stays open for whoever comes next. */
function toTerminal(): Writable {
  process.stdout.on('error', () => {});
  return new Writable({
    write: (chunk, encoding, done) => void process.stdout.write(chunk, encoding, done),
  });
}

async function* rowsOf(options: ExportOptions & { until: string }): AsyncGenerator<Row> {
  const query = new URLSearchParams({ limit: String(PAGE), until: options.until });
  for (const name of ['since', 'state', 'kind'] as const) {
    const value = options[name];
    if (value !== undefined) query.set(name, value);
  }
  let count = 0;
  for (let cursor: string | null = ''; cursor !== null; ) {
    if (cursor !== '') query.set('cursor', cursor);
    const text = await callDaemon(options, { method: 'GET', path: `/api/operations?${query}` });
    const page = parseJson(text) as { data: Row[]; next_cursor: string | null };
    yield* page.data;
    count += page.data.length;
    cursor = page.next_cursor;
    if (cursor === null || count % TOLD_EVERY === 0) tell(`${count} operations`);
  }
}

function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function* textsOf(format: string, rows: AsyncGenerator<Row>): AsyncGenerator<string> {
  if (format === 'csv') yield `${COLUMNS.join(',')}\r\n`;
  if (format === 'json') yield '{"data":[';
  let isFirst = true;
  for await (const row of rows) {
    if (format === 'csv') yield `${COLUMNS.map((column) => cellOf(row[column])).join(',')}\r\n`;
    else if (format === 'ndjson') yield `${jsonText(row)}\n`;
    else yield `${isFirst ? '\n' : ',\n'}${jsonText(row)}`;
    isFirst = false;
  }
  if (format === 'json') yield '\n]}\n';
}

/** What is no text, such as the error of a refused write, has no column. */
function cellOf(value: Json | undefined): string {
  return typeof value === 'string' ? cellText(value) : '';
}
