/**
 * `tallyhook export operations` and `export lines`: writes a list of a running daemon, page by
 * page, so that memory does not grow with it.
 */
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import { sumOf, wholeOf } from '../../kernel/amounts.ts';
import { isoText, systemClock } from '../../kernel/clock.ts';
import { type Json, jsonText } from '../../kernel/json.ts';
import { csvHead, csvRow } from '../../resources/cells.ts';
import { type Fields, text } from '../../resources/fields.ts';
import { operationExport } from '../../resources/operations/operation.ts';
import { LINE_COLUMNS, partiesOf, reportLine } from '../../resources/reports/report.ts';
import type { Shown } from '../../resources/resource.ts';
import { pagesOf, type Remote, withQuery } from '../api/remote.ts';
import { exit, NO_BOM, saveFile, withExamples, withRemote } from '../options.ts';

export const EXAMPLES = [
  'npx tallyhook export operations --since 2026-11-01T00:00:00Z --kind give --out gives.csv',
  'npx tallyhook export operations --format ndjson --state undecided',
];

export function addDaemonExports(group: Command): void {
  withExamples(
    withRemote(group.command('operations'), 'key with the scope read')
      .description('export operations, newest first; CSV has the columns of finance_v1.operations')
      .option('--since <instant>', 'recorded at or after, RFC 3339')
      .option('--until <instant>', 'recorded before, RFC 3339; by default the present')
      .option('--state <state>', 'only operations in this state, such as undecided')
      .option('--kind <kind>', 'only operations of this kind, such as give')
      .addOption(
        new Option('--format <format>', 'format').choices(['csv', 'ndjson', 'json']).default('csv'),
      )
      .option('--out <file>', 'write to this file instead of standard output')
      .option('--no-bom', NO_BOM),
    ...EXAMPLES,
  ).action((options) => exit(exportOperations(options)));
  withExamples(
    withRemote(group.command('lines'), 'key with the scope read')
      .description('export the transactions behind the totals of a report')
      .argument('<report>', 'id of the report')
      .option('--kind <kind>', 'only those of a kind, such as give')
      .option('--reason <reason>', 'only those with this reason; empty: those without one')
      .option('--account <account>', 'only those of an account, such as operator:7')
      .addOption(
        new Option('--format <format>', 'format').choices(['csv', 'ndjson', 'json']).default('csv'),
      )
      .option('--out <file>', 'write to this file instead of standard output')
      .option('--no-bom', NO_BOM),
    'npx tallyhook export lines rep_… --kind give --reason welcome --out welcome.csv',
  ).action((report, options) => exit(exportLines(report, options)));
}

const PROGRESS_EVERY = 10_000;

interface ExportOptions extends Remote {
  kind?: string;
  format: 'csv' | 'ndjson' | 'json';
  bom: boolean;
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
  fields: Fields;
  what: string;
  /** Fields that are only in CSV. */
  more?: (row: Row) => Row;
}

/** @throws Failure `bad_setting` */
function exportOperations(options: OperationOptions): Promise<number> {
  const { since, state, kind } = options;
  // Operations recorded during the export are left out, so that it ends and can be repeated.
  const until = options.until ?? isoText(systemClock.now());
  const query = { until, since, state, kind };
  return exportRows(options, {
    path: '/api/operations',
    query,
    columns: operationExport.columns,
    fields: operationExport.fields,
    what: 'operations',
  });
}

/** @throws Failure `bad_setting` */
function exportLines(id: string, options: LineOptions): Promise<number> {
  const { kind, reason, account } = options;
  return exportRows(options, {
    path: `/api/reports/${encodeURIComponent(id)}/lines`,
    query: { kind, account, reason_type: reason },
    columns: LINE_COLUMNS,
    fields: { ...reportLine.fields, payer: text(), payee: text() },
    what: 'lines',
    more: (row) => partiesOf(row as Shown<typeof reportLine>),
  });
}

async function exportRows(options: ExportOptions, of: Export): Promise<number> {
  const texts = Readable.from(format(options, fetchRows(options, of), of));
  if (options.out === undefined) await pipeline(texts, standardOutput());
  else await saveFile(options.out, texts);
  return 0;
}

/** A stream that does not close standard output when it ends. */
function standardOutput(): Writable {
  process.stdout.on('error', () => {});
  return new Writable({
    write: (chunk, encoding, done) => void process.stdout.write(chunk, encoding, done),
  });
}

async function* fetchRows(remote: Remote, { path, query, what }: Export): AsyncGenerator<Row> {
  let count = 0;
  let amount = 0n;
  for await (const page of pagesOf<Row>(remote, withQuery(path, query))) {
    if (count > 0 && count % PROGRESS_EVERY === 0) process.stderr.write(`${count} ${what}\n`);
    yield* page;
    count += page.length;
    amount += sumOf(page.map((row) => wholeOf(row.amount) ?? 0n));
  }
  // To compare with what arrived where the file is read.
  process.stderr.write(`${count} ${what}, amounts ${amount} in total\n`);
}

async function* format(
  { format, bom }: ExportOptions,
  rows: AsyncGenerator<Row>,
  { columns, fields, more = () => ({}) }: Export,
): AsyncGenerator<string> {
  // A request that is refused leaves no head without rows.
  let next = await rows.next();
  if (format === 'csv') yield csvHead(columns, bom);
  if (format === 'json') yield '{"data":[';
  let isFirst = true;
  for (; !next.done; next = await rows.next()) {
    const row = next.value;
    const values = { ...row, ...more(row) };
    const cellOf = (name: string) => ({ kind: fields[name]?.kind ?? 'text', value: values[name] });
    if (format === 'csv') yield csvRow(columns.map(cellOf));
    else if (format === 'ndjson') yield `${jsonText(row)}\n`;
    else yield `${isFirst ? '\n' : ',\n'}${jsonText(row)}`;
    isFirst = false;
  }
  if (format === 'json') yield '\n]}\n';
}
