/**
 * `tallyhook export operations` and `export lines`: writes a list of a running daemon to a file,
 * page by page, so that memory does not grow with it. A file gets its final name when it is whole.
 */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sumOf, wholeOf } from '../../kernel/amounts.ts';
import { isoText, systemClock } from '../../kernel/clock.ts';
import { csvRow } from '../../kernel/csv.ts';
import { Failure } from '../../kernel/errors.ts';
import { type Json, jsonText, parseJson } from '../../kernel/json.ts';
import { operationExport } from '../../resources/operations/operation.ts';
import { LINE_COLUMNS, partiesOf, type reportLine } from '../../resources/reports/report.ts';
import { cellText, type Shown } from '../../resources/resource.ts';
import { callDaemon, type Remote } from '../api/remote.ts';

const PAGE = 500;
const PROGRESS_EVERY = 10_000;

interface ExportOptions extends Remote {
  kind?: string;
  format: 'csv' | 'ndjson' | 'json';
  out?: string;
}

interface OperationOptions extends ExportOptions {
  since?: string;
  until?: string;
  state?: string;
}

interface LineOptions extends ExportOptions {
  reason?: string;
  account?: string;
}

type Row = { [member: string]: Json };

/** What is exported: its path with the filters, its columns in CSV, and its name. */
interface Export {
  path: string;
  query: Record<string, string | undefined>;
  columns: readonly string[];
  what: string;
  /** Fields that are only in CSV. */
  more?: (row: Row) => Row;
}

/** @throws Failure `bad_setting` */
export function exportOperations(options: OperationOptions): Promise<number> {
  const { since, state, kind } = options;
  // Operations recorded during the export are left out, so that it ends and can be repeated.
  const until = options.until ?? isoText(systemClock.now());
  const query = { until, since, state, kind };
  return exportRows(options, {
    path: '/api/operations',
    query,
    columns: operationExport.columns,
    what: 'operations',
  });
}

/** @throws Failure `bad_setting` */
export function exportLines(id: string, options: LineOptions): Promise<number> {
  const { kind, reason, account } = options;
  return exportRows(options, {
    path: `/api/reports/${encodeURIComponent(id)}/lines`,
    query: { kind, account, reason_type: reason },
    columns: LINE_COLUMNS,
    what: 'lines',
    more: (row) => partiesOf(row as Shown<typeof reportLine>),
  });
}

async function exportRows(options: ExportOptions, of: Export): Promise<number> {
  const texts = Readable.from(format(options.format, fetchRows(options, of), of));
  if (options.out === undefined) {
    await pipeline(texts, standardOutput());
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

/** A stream that does not close standard output when it ends. */
function standardOutput(): Writable {
  process.stdout.on('error', () => {});
  return new Writable({
    write: (chunk, encoding, done) => void process.stdout.write(chunk, encoding, done),
  });
}

async function* fetchRows(
  remote: Remote,
  { path, query: given, what }: Export,
): AsyncGenerator<Row> {
  const query = new URLSearchParams({ limit: String(PAGE) });
  for (const [name, value] of Object.entries(given))
    if (value !== undefined) query.set(name, value);
  let count = 0;
  let amount = 0n;
  for (let cursor: string | null = ''; cursor !== null; ) {
    if (cursor !== '') query.set('cursor', cursor);
    const text = await callDaemon(remote, { method: 'GET', path: `${path}?${query}` });
    const page = parseJson(text) as { data: Row[]; next_cursor: string | null };
    yield* page.data;
    count += page.data.length;
    amount += sumOf(page.data.map((row) => wholeOf(row.amount) ?? 0n));
    cursor = page.next_cursor;
    if (cursor !== null && count % PROGRESS_EVERY === 0) process.stderr.write(`${count} ${what}\n`);
  }
  // To compare with what arrived where the file is read.
  process.stderr.write(`${count} ${what}, amounts ${amount} in total\n`);
}

async function* format(
  name: ExportOptions['format'],
  rows: AsyncGenerator<Row>,
  { columns, more = () => ({}) }: Export,
): AsyncGenerator<string> {
  if (name === 'csv') yield csvRow(columns);
  if (name === 'json') yield '{"data":[';
  let isFirst = true;
  for await (const row of rows) {
    const cells = { ...row, ...more(row) };
    if (name === 'csv') yield csvRow(columns.map((column) => cellOf(cells[column])));
    else if (name === 'ndjson') yield `${jsonText(row)}\n`;
    else yield `${isFirst ? '\n' : ',\n'}${jsonText(row)}`;
    isFirst = false;
  }
  if (name === 'json') yield '\n]}\n';
}

/** Fields with members, such as the error of a rejected write, have no column. */
function cellOf(value: Json | undefined): string {
  return typeof value === 'object' ? '' : cellText(value);
}
