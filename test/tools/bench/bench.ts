/**
 * `npm run bench`: every bench, one table. It measures and tells; its exit code is 1 only when
 * something broke, never because something was slow.
 */
import { Command, InvalidArgumentError } from 'commander';
import { backlog } from './backlog/backlog.ts';
import { delivery } from './delivery.ts';
import { fanOut } from './fan-out.ts';
import { floods } from './floods.ts';
import { type Bench, type Figures, type Frame, isHeld, type Result, type Target } from './frame.ts';
import { gateway } from './gateway.ts';
import { consolePages } from './history/console.ts';
import { operationList } from './history/operation-list.ts';
import { report } from './history/report.ts';
import { postings } from './postings.ts';
import { leaveFirstCore, PINS } from './process.ts';
import { reports, singleReports } from './reports.ts';
import { sandboxReads } from './sandbox-reads.ts';
import { sizing } from './sizing.ts';
import { statements } from './statements.ts';
import { storage } from './storage.ts';
import { storedHistory } from './stored-history.ts';
import { targets } from './targets.ts';

/** One line for each file that measures something. */
const BENCHES: readonly Bench[] = [
  sandboxReads,
  gateway,
  delivery,
  fanOut,
  backlog,
  floods,
  postings,
  reports,
  singleReports,
  storage,
  statements,
  sizing,
  storedHistory,
  report,
  operationList,
  consolePages,
  targets,
];

const HEAD = ['what', 'measured', 'reference', 'ratio', 'target', 'p50/p99 ms', 'held'];

const names = BENCHES.map(({ name }) => name);
const long = BENCHES.filter((bench) => bench.long).map(({ name }) => name);
const options = new Command('bench')
  .description('Measures Tallyhook side by side with references.')
  .option('--only <name>', `one of ${names.join(', ')}; ${long.join(', ')} only so`)
  .option('--seconds <n>', 'seconds per round and contender', numberOf, 1)
  .option('--rounds <n>', 'rounds that count', numberOf, 3)
  .option(
    '--stored <list>',
    'operations stored before, of history, report, operation-list and console',
    sizesOf,
    [1e6, 5e6],
  )
  .option('--database-url <url>', 'gateway: compare this Postgres with the embedded one instead')
  .option('--pgledger <file>', 'postings: compare with pgledger, by its file pgledger.sql')
  .option('--json', 'print JSON')
  .addHelpText('after', '\nExample:\n  npm run bench -- --only sandbox-reads --seconds 3')
  .parse()
  .opts<Frame & { only?: string; json?: true }>();

const chosen = BENCHES.filter(({ name, long }) =>
  options.only === undefined ? !long : name === options.only,
);
if (chosen.length === 0) {
  print(`--only: one of ${names.join(', ')}`);
  process.exit(1);
}
leaveFirstCore();
const all = [];
for (const bench of chosen) {
  const results = await bench.run(options);
  if (!options.json) print(headOf(bench) + tableOf(results));
  all.push({
    name: bench.name,
    what: bench.what,
    target: bench.target,
    results: evaluated(results),
  });
}
if (options.json) print(JSON.stringify({ pinned: PINS, benches: all }, null, 2));
process.exit(0);

function headOf({ name, what, target }: Bench): string {
  const where = PINS ? 'servers on a core of their own' : 'load and servers share the cores';
  return `\n${name}: ${what}; target: ${target} (${where})\n`;
}

function evaluated(results: readonly Result[]) {
  return results.map((result) => ({ ...result, held: isHeld(result) ?? null }));
}

function tableOf(results: readonly Result[]): string {
  const rows = [HEAD, ...results.map(rowOf)];
  const widths = HEAD.map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const notes = results.flatMap(({ what, note }) => (note ? [`  ${what}: ${note}`] : []));
  return [...lines, ...notes].join('\n');
}

function rowOf(result: Result): string[] {
  const { what, unit, measured, reference, ratio, target } = result;
  const held = isHeld(result);
  return [
    what,
    textOf(measured, unit),
    reference ? textOf(reference, unit) : '',
    ratio === undefined ? '' : `${ratio.toFixed(2)} x`,
    target ? targetText(target, unit) : '',
    measured.p50 === undefined ? '' : `${short(measured.p50)}/${short(measured.p99 ?? 0)}`,
    held === undefined ? '' : held ? 'held' : 'not held',
  ];
}

function textOf({ median, min, max }: Figures, unit: string): string {
  return `${short(median)} ${unit} (${short(min)}–${short(max)})`;
}

function targetText({ of, atLeast, atMost }: Target, unit: string): string {
  const sign = of === 'ratio' ? 'x' : unit;
  const parts = [
    ...(atLeast === undefined ? [] : [`≥ ${short(atLeast)} ${sign}`]),
    ...(atMost === undefined ? [] : [`≤ ${short(atMost)} ${sign}`]),
  ];
  return parts.join(', ');
}

/** Three digits are enough to compare. */
function short(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}

function numberOf(text: string): number {
  const value = Number(text);
  if (value > 0 && value <= 3_600) return value;
  throw new InvalidArgumentError('It must be a number from 1 to 3600.');
}

function sizesOf(text: string): number[] {
  const sizes = text.split(',').map(Number);
  if (sizes.every((size) => Number.isInteger(size) && size >= 0)) return sizes;
  throw new InvalidArgumentError('It must be whole numbers, such as 1000000,5000000.');
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
