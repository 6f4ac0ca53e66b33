/**
 * `tallyhook import`: sends a file to the daemon, which checks and proves all of it, and has it
 * recorded. The daemon goes on when the command ends early; the same command continues it.
 */
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { isObject, jsonText, parseJson, tryParseJson } from '../../kernel/json.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import type { importRow } from '../../resources/operations/import.ts';
import type { Shown } from '../../resources/resource.ts';
import { callDaemon, pagesOf, type Remote, sendFile, withQuery } from '../api/remote.ts';
import { clearProgress, type Import, showProgress, summaryText } from './summary.ts';

/** How the file is read: as options of the command, and as the daemon takes them. */
const READING = {
  format: 'format',
  encoding: 'encoding',
  delimiter: 'delimiter',
  timeZone: 'time_zone',
  dateOrder: 'date_order',
  unixTime: 'unix_time',
  thousands: 'thousands',
  decimalSign: 'decimal_sign',
} as const;

export type ImportCommand = Remote & {
  [K in keyof typeof READING]?: string;
} & {
  map?: string[];
  set?: string[];
  mapping?: string;
  dryRun?: true;
  acceptUnproved?: string;
  json?: true;
};

type ImportRow = Shown<typeof importRow>;

const POLL_MS = 300;
const ERRORS_MAX = 1_000;

export async function runImport(file: string, command: ImportCommand): Promise<number> {
  const options = await readOptions(command);
  const checked = await settled(command, await upload(command, file, options), ['checking']);
  const errors = await refusedRows(command, checked);
  const { summary } = checked;
  if (!summary) throw new Failure('bad_setting', `the import ${checked.id} is ${checked.state}`);
  if (!command.json) printLine(summaryText(checked, summary));
  const shown = outputOf(checked, errors);
  const contradicting = summary.wallets.failed;
  const accepted = contradicting === 0 || command.acceptUnproved !== undefined;
  if (command.dryRun || checked.state === 'refused' || !accepted) {
    if (command.json) printLine(jsonText({ ...shown, imported: null }));
    if (!command.dryRun) process.stderr.write(`${refusal(checked, contradicting)}\n`);
    return checked.state !== 'refused' && contradicting === 0 ? 0 : 1;
  }
  const started = checked.state === 'ready' ? await record(command, checked.id) : checked;
  const ended = await settled(command, started, ['checking', 'recording']);
  const { recorded, known, refused } = ended;
  await refusedRows(command, ended);
  if (ended.state === 'ready' || ended.state === 'refused')
    throw new Failure('bad_setting', refusal(ended, ended.summary?.wallets.failed ?? 0));
  if (ended.state !== 'done')
    throw new Failure('bad_setting', `the import ${ended.id} is ${ended.state}`);
  printLine(
    command.json
      ? jsonText({ ...shown, imported: { recorded, known, refused } })
      : `Imported: ${recorded} recorded, ${known} known, ${refused} refused`,
  );
  return refused === 0 ? 0 : 1;
}

function outputOf(one: Import, errors: object[]) {
  const { id, state, lines, skipped, to_record, known, refused, ignored_columns, summary } = one;
  const counts = { lines, skipped, to_record, known, refused };
  return { id, state, ...counts, ...summary, errors, ignored_columns };
}

function refusal({ state, refused }: Import, contradicting: number): string {
  if (state === 'refused')
    return `Nothing was recorded: mend or remove the ${refused} refused lines, and repeat`;
  return (
    `Nothing was recorded: the balances of ${contradicting} wallets contradict the file; ` +
    'mend it, or record it with --accept-unproved <reason>'
  );
}

/** Those of the mapping file, over which the options of the command stand. */
async function readOptions(command: ImportCommand): Promise<object> {
  const file = command.mapping === undefined ? {} : await readMapping(command.mapping);
  const named = Object.entries(READING).flatMap(([option, name]) => {
    const value = command[option as keyof typeof READING];
    return value === undefined ? [] : [[name, value]];
  });
  const map = { ...file.map, ...pairsOf('--map', command.map) };
  const set = { ...file.set, ...pairsOf('--set', command.set) };
  return { ...file, map, set, ...Object.fromEntries(named) };
}

type MappingFile = { map?: object; set?: object };

async function readMapping(path: string): Promise<MappingFile> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new Failure('bad_setting', `${path} cannot be read`);
  });
  const document = tryParseJson(text);
  if (isObject(document)) return document;
  const form = '{"map": {"amount": "value"}, "set": {…}, "values": {"kind": {…}}, …}';
  throw new Failure('bad_setting', `${path} is not of the form ${form}`);
}

/** Of `field=column`, comma-separated. */
function pairsOf(option: string, texts: readonly string[] = []): Record<string, string> {
  const pairs = texts
    .flatMap((text) => text.split(','))
    .map((text) => {
      const at = text.indexOf('=');
      if (at > 0) return [text.slice(0, at).trim(), text.slice(at + 1).trim()] as const;
      throw new Failure('bad_setting', `${option} ${text}: write field=value`);
    });
  return Object.fromEntries(pairs);
}

async function upload(remote: Remote, file: string, options: object): Promise<Import> {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw new Failure('bad_setting', `${file} is no file that can be read`);
  if (found.size === 0) throw new Failure('bad_setting', `${file} is empty`);
  showProgress(`sending ${found.size} bytes …`);
  const query = { file_name: basename(file), options: jsonText(options) };
  const path = withQuery('/api/imports', query);
  return read(await sendFile(remote, path, createReadStream(file)));
}

async function record(command: ImportCommand, id: string): Promise<Import> {
  const { acceptUnproved: reason } = command;
  const body = reason === undefined ? {} : { reason };
  return read(
    await callDaemon(command, { method: 'POST', path: `/api/imports/${id}/record`, body }),
  );
}

/** The import when it is in none of these states any more. */
async function settled(
  remote: Remote,
  first: Import,
  states: readonly Import['state'][],
): Promise<Import> {
  let one = first;
  while (states.includes(one.state)) {
    const isChecking = one.state === 'checking';
    const done = isChecking ? one.checked : one.recorded + one.known + one.refused;
    showProgress(`${done} of ${one.lines} lines ${isChecking ? 'checked' : 'recorded'} …`);
    await pause(POLL_MS);
    one = read(await callDaemon(remote, { method: 'GET', path: `/api/imports/${one.id}` }));
  }
  clearProgress();
  return one;
}

/** Names them, at most a thousand. */
async function refusedRows(remote: Remote, { id, refused }: Import) {
  const errors: { line: number; code: string; detail?: string }[] = [];
  if (refused === 0) return errors;
  for await (const page of pagesOf<ImportRow>(remote, `/api/imports/${id}/rows?result=refused`)) {
    for (const { line, problem } of page) {
      const { code = 'internal', detail = null } = problem ?? {};
      errors.push({ line, code, ...(detail === null ? {} : { detail }) });
      process.stderr.write(`line ${line}: ${code}${detail === null ? '' : `: ${detail}`}\n`);
    }
    if (errors.length >= ERRORS_MAX) return errors;
  }
  return errors;
}

function read(text: string): Import {
  return parseJson(text) as Import;
}
