/** `tallyhook watch` and `watches`: targets that are polled on request, one or up to a million. */

import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { type Command, Option } from 'commander';
import { Failure } from '../kernel/errors.ts';
import { jsonText, parseJson } from '../kernel/json.ts';
import { printLine } from '../kernel/telemetry/log.ts';
import { TARGET_COLUMNS, watch } from '../resources/admin/watch.ts';
import { csvHead, csvRow } from '../resources/cells.ts';
import type { Shown } from '../resources/resource.ts';
import type { watchLine } from '../resources/results.ts';
import { callDaemon, listAll, pagesOf, type Remote, streamToDaemon } from './api/remote.ts';
import { exit, NO_BOM, withExamples, withRemote } from './options.ts';

const KEY = 'key with the scope manage';

export function addWatches(program: Command): void {
  withExamples(
    withRemote(program.command('watch'), KEY)
      .description('watch a wallet, contract or token, so that it is polled')
      .argument('<kind>', 'wallet, contract or token')
      .argument('<name...>', 'an address; a contract id; a contract id and a token id')
      .option('--json', 'print JSON'),
    'npx tallyhook watch wallet 0x…',
    'npx tallyhook watch token 1 42',
  ).action((kind, names, options) => exit(addWatch(kind, names, options)));

  const group = program.command('watches').description('add, list and remove many watches');
  const add = 'npx tallyhook watches import wallets.csv --dry-run';
  withExamples(group, add, 'npx tallyhook watches list');
  withExamples(
    streamed(
      group
        .command('import')
        .description('watch what a file of CSV or NDJSON lists; a repeat changes nothing')
        .argument('<file>', 'the file; - for standard input'),
    ),
    add,
    'echo \'{"kind":"token","contract_id":"1","token_id":"42"}\' |\\\n' +
      '    npx tallyhook watches import - --format ndjson',
  ).action((file, options) => exit(importWatches('', file, options)));

  withExamples(
    streamed(
      group
        .command('remove')
        .description('end the watches of what a file lists, or of ids')
        .argument('[id...]', 'ids of watches')
        .option('--file <file>', 'of CSV or NDJSON; - for standard input'),
    ),
    'npx tallyhook watches remove wat_…',
    'npx tallyhook watches remove --file wallets.csv',
  ).action((ids, options) => exit(removeWatches(ids, options)));

  withExamples(
    withRemote(group.command('list'), 'key with the scope read')
      .description('list the watches, oldest first')
      .option('--csv', 'print CSV, as import takes it')
      .option('--no-bom', NO_BOM)
      .option('--json', 'print JSON'),
    'npx tallyhook watches list --csv > watches.csv',
  ).action((options) => exit(listWatches(options)));
}

function streamed(command: Command): Command {
  return withRemote(command, KEY)
    .addOption(
      new Option('--format <format>', 'of the file; by default what its name ends with').choices([
        'csv',
        'ndjson',
      ]),
    )
    .option('--dry-run', 'only count what would change')
    .option('--json', 'print the summary as JSON');
}

async function addWatch(
  kind: string,
  names: string[],
  options: Remote & { json?: true },
): Promise<number> {
  const body = watchBody(kind, names);
  const text = await callDaemon(options, { method: 'POST', path: '/api/watches', body });
  const { id } = parseJson(text) as { id?: string };
  printLine(options.json ? text : `Watching ${kind} ${names.join(' ')} as ${id}`);
  return 0;
}

function watchBody(kind: string, [first, second]: string[]): object {
  if (kind === 'wallet') return { kind, addr: first };
  if (kind === 'contract') return { kind, contract_id: first };
  if (kind === 'token' && second !== undefined)
    return { kind, contract_id: first, token_id: second };
  throw new Failure(
    'bad_setting',
    'usage: watch wallet <addr>, watch contract <id>, or watch token <contract id> <token id>',
  );
}

type StreamOptions = Remote & { format?: string; dryRun?: true; json?: true };

type Answered = Shown<typeof watchLine>;
type Problem = Answered['problem'];
type Counts = NonNullable<Answered['progress']>;
type Summary = NonNullable<Answered['summary']>;

const TYPES = { csv: 'text/csv', ndjson: 'application/x-ndjson' };

/** @param action after the path of watches: none to add them, `/remove` */
async function importWatches(
  action: '' | '/remove',
  file: string,
  options: StreamOptions,
): Promise<number> {
  const format = options.format ?? formatOf(file);
  const type = TYPES[format as keyof typeof TYPES];
  const path = `/api/watches${action}${options.dryRun ? '?dry_run=true' : ''}`;
  const body = await opened(file);
  let last: Answered = {};
  for await (const answer of streamToDaemon<Answered>(options, { path, type, body })) {
    if (answer.progress) showProgress(answer.progress);
    else if (answer.line !== undefined) showError(answer.line, answer.problem);
    else last = answer;
  }
  clearProgress();
  const { summary, problem } = last;
  if (summary) printLine(options.json ? jsonText(summary) : summaryText(summary));
  if (!summary || problem)
    throw new Failure('bad_setting', `stopped early: ${textOf(problem)}; repeat the command`);
  return summary.refused === 0 ? 0 : 1;
}

async function removeWatches(
  ids: string[],
  options: StreamOptions & { file?: string },
): Promise<number> {
  if (ids.length > 0 === (options.file !== undefined))
    throw new Failure('bad_setting', 'name either ids of watches or --file');
  if (options.file !== undefined) return importWatches('/remove', options.file, options);
  if (options.dryRun) throw new Failure('bad_setting', '--dry-run is only for --file');
  for (const id of ids) {
    const path = `/api/watches/${encodeURIComponent(id)}`;
    await callDaemon(options, { method: 'DELETE', path });
    if (!options.json) printLine(`Removed ${id}`);
  }
  if (options.json) printLine(jsonText({ removed: ids.length }));
  return 0;
}

type Watch = Shown<typeof watch>;

async function listWatches(
  options: Remote & { csv?: true; bom: boolean; json?: true },
): Promise<number> {
  const path = '/api/watches';
  if (options.json) {
    printLine(jsonText({ data: await listAll<Watch>(options, path) }));
    return 0;
  }
  // A request that is refused leaves no head without rows.
  let head = csvHead(TARGET_COLUMNS, options.bom);
  for await (const page of pagesOf<Watch>(options, path)) {
    if (options.csv) process.stdout.write(head + page.map(targetRow).join(''));
    else for (const row of page) printLine(lineOf(row));
    head = '';
  }
  return 0;
}

function targetRow(row: Watch): string {
  return csvRow(
    TARGET_COLUMNS.map((name) => ({ kind: watch.fields[name].kind, value: row[name] })),
  );
}

function lineOf({ id, kind, addr, contract_id, token_id, created_at, created_by }: Watch): string {
  const name = addr ?? [contract_id, token_id].filter((one) => one !== null).join(' ');
  return `${created_at}  ${id}  ${kind} ${name}  by ${created_by}`;
}

function formatOf(file: string): string {
  if (/\.csv$/i.test(file)) return 'csv';
  if (/\.(ndjson|jsonl)$/i.test(file)) return 'ndjson';
  throw new Failure('bad_setting', `${file}: name its --format, csv or ndjson`);
}

async function opened(file: string): Promise<Readable> {
  if (file === '-') return process.stdin;
  const handle = await open(file).catch(() => {
    throw new Failure('bad_setting', `${file} cannot be read`);
  });
  return handle.createReadStream();
}

const ERASE = '\r\u001b[K';

function showProgress(progress: Counts): void {
  if (process.stderr.isTTY) process.stderr.write(`${ERASE}${countsText(progress)} …`);
}

function clearProgress(): void {
  if (process.stderr.isTTY) process.stderr.write(ERASE);
}

function showError(line: number, problem: Problem): void {
  clearProgress();
  process.stderr.write(`line ${line}: ${textOf(problem)}\n`);
}

function textOf(problem: Problem): string {
  return problem ? (problem.detail ?? problem.code) : 'the daemon closed the connection';
}

function countsText(counts: Counts): string {
  const words = Object.entries(counts).flatMap(([name, count]) =>
    typeof count === 'number' && name !== 'lines' && name !== 'observation_age_max_ms'
      ? [`${count} ${name.replace('_', ' ')}`]
      : [],
  );
  return `${counts.lines} lines: ${words.join(', ')}`;
}

function summaryText(summary: Summary): string {
  const dry = summary.dry_run ? 'Nothing was changed. ' : '';
  const ageS = Math.round(summary.observation_age_max_ms / 1000);
  return `${dry}${countsText(summary)}; each target is polled at least every ${ageS} s`;
}
