/**
 * `tallyhook import`: the history of an app that ran before the daemon. The file is read twice:
 * first every line is checked by the daemon and the balances are proved, then the same lines are
 * reported to `POST /api/operations`. The transaction number or hash of a line is its identity, so
 * a repeated import records nothing twice, and one that was killed continues.
 */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { parseInstant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';
import type { Shown } from '../../resources/resource.ts';
import type { reportResult } from '../../resources/results.ts';
import { type Remote, streamToDaemon } from '../api/remote.ts';
import { type Line, type Mapping, type MappingOptions, readMapping } from './mapping.ts';
import { type Movements, makeMovements, makeSeenLines } from './movements.ts';
import type { WalletProofs } from './proof.ts';
import { proveAll } from './proofs.ts';
import { csvRows, ndjsonRows } from './rows.ts';
import {
  clearProgress,
  makeTally,
  type Problem,
  showProgress,
  type Tally,
  tallyText,
} from './tally.ts';

type Options = Remote &
  MappingOptions & {
    format?: string;
    delimiter: string;
    dryRun?: true;
    acceptUnproved?: string;
    json?: true;
  };

/** A line of the answer of `POST /api/operations`. */
type Answered = Partial<Shown<typeof reportResult>>;

/** Lines and characters of one request. */
const LINES_MAX = 20_000;
const LENGTH_MAX = 16_000_000;

export async function runImport(file: string, options: Options): Promise<number> {
  const mapping = await readMapping(options);
  const read = () => linesOf(file, options, mapping);
  const version = await versionOf(file);
  const { tally, movements } = await checkAll(options, read());
  const proofs = await proveAll(options, movements);
  const proved = proofs.failed.length === 0;
  const summary = { ...tally.output(), ...proofs, ignored_columns: [...mapping.ignored] };
  if (!options.json) printLine(tallyText(tally, proofs, mapping.ignored));
  const accepted = proved || options.acceptUnproved !== undefined;
  if (options.dryRun || tally.refused > 0 || !accepted) {
    if (options.json) printLine(jsonText({ ...summary, imported: null }));
    if (!options.dryRun) process.stderr.write(`${refusal(tally, proofs)}\n`);
    return tally.refused === 0 && proved ? 0 : 1;
  }
  if ((await versionOf(file)) !== version)
    throw new Failure(
      'bad_setting',
      `${file} was changed since it was checked; repeat the command`,
    );
  const reason = proved ? undefined : options.acceptUnproved;
  const imported = await recordAll(options, read(), reason, tally.lines);
  printLine(
    options.json
      ? jsonText({ ...summary, imported })
      : `Imported: ${imported.recorded} recorded, ${imported.known} known, ` +
          `${imported.refused} refused`,
  );
  return imported.refused === 0 ? 0 : 1;
}

function refusal({ refused }: Tally, { wallets }: WalletProofs): string {
  if (refused > 0)
    return `Nothing was recorded: mend or remove the ${refused} refused lines, and repeat`;
  return (
    `Nothing was recorded: the balances of ${wallets.failed} wallets contradict the file; ` +
    'mend it, or record it with --accept-unproved <reason>'
  );
}

/** Size and time of the last change. */
async function versionOf(file: string): Promise<string> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile()) return `${found.size} ${found.mtimeMs}`;
  throw new Failure('bad_setting', `${file} is no file that can be read`);
}

async function* linesOf(
  file: string,
  { format, delimiter }: Options,
  mapping: Mapping,
): AsyncGenerator<Line> {
  const kind = format ?? /\.(csv|ndjson|jsonl)$/i.exec(file)?.[1]?.toLowerCase();
  if (kind === undefined)
    throw new Failure('bad_setting', `${file}: name its --format, csv or ndjson`);
  const chunks: AsyncIterable<string> = createReadStream(file, { encoding: 'utf8' });
  const rows = kind === 'csv' ? csvRows(chunks, delimiter) : ndjsonRows(chunks);
  for await (const row of rows) yield mapping.toLine(row);
}

/** Has the daemon check every line; adds up what it would record. */
async function checkAll(options: Options, lines: AsyncGenerator<Line>) {
  const tally = makeTally();
  const movements = makeMovements();
  const seen = makeSeenLines();
  const refuse = (line: number, problem: Problem) => {
    if (tally.refuse(line, problem)) showError(line, problem);
  };
  for (;;) {
    const sent: Extract<Line, { text: string }>[] = [];
    const take = (line: Line): string | undefined => {
      tally.lines++;
      if ('problem' in line) refuse(line.line, line.problem);
      else {
        const result = seen.add(line.transaction, line.text);
        if (result === 'new') {
          sent.push(line);
          return line.text;
        }
        if (result === 'repeated') tally.known++;
        else refuse(line.line, DIFFERS);
      }
      return undefined;
    };
    const chunk = await nextChunk(lines, take);
    if (chunk.texts.length > 0)
      for await (const answer of answersOf(options, '?dry_run=true', chunk.texts)) {
        const line = sent[(answer.line ?? 0) - 1];
        if (!line) continue;
        if (answer.result === 'refused') refuse(line.line, answer.problem ?? { code: 'internal' });
        else if (answer.result === 'known') tally.known++;
        else addEffects({ tally, movements }, line, answer.effects ?? []);
      }
    showProgress(`${tally.lines} lines checked …`);
    if (chunk.ended) return { tally, movements };
  }
}

const DIFFERS = {
  code: 'conflict',
  detail: 'an earlier line names the same transaction and differs; keep one of them',
};

function addEffects(
  { tally, movements }: { tally: Tally; movements: Movements },
  { line, kind, occurredAt }: Extract<Line, { text: string }>,
  effects: readonly { account: string; amount: string }[],
): void {
  const at = parseInstant(occurredAt) ?? 0;
  tally.record(kind, at);
  for (const effect of effects) {
    const amount = BigInt(effect.amount);
    tally.move(effect.account, amount);
    const [, addr] = /^wallet:(.*)$/.exec(effect.account) ?? [];
    if (addr !== undefined) movements.add(addr, { at, amount, line });
  }
}

/** Reports every line; what the daemon knows already is not recorded again. */
async function recordAll(
  options: Options,
  lines: AsyncGenerator<Line>,
  unproved: string | undefined,
  total: number,
) {
  const query = unproved === undefined ? '' : `?unproved=${encodeURIComponent(unproved)}`;
  const counts = { recorded: 0, known: 0, refused: 0 };
  let done = 0;
  for (;;) {
    const sent: number[] = [];
    const chunk = await nextChunk(lines, (line) => {
      if ('problem' in line) return undefined;
      sent.push(line.line);
      return line.text;
    });
    if (chunk.texts.length > 0)
      for await (const { line = 0, result, problem } of answersOf(options, query, chunk.texts)) {
        if (result === undefined) continue;
        counts[result]++;
        if (result === 'refused') showError(sent[line - 1] ?? 0, problem ?? { code: 'internal' });
      }
    done += chunk.texts.length;
    showProgress(`${done} of ${total} lines recorded …`);
    if (chunk.ended) {
      clearProgress();
      return counts;
    }
  }
}

/** The texts of the next lines that `take` lets pass. */
async function nextChunk(
  lines: AsyncGenerator<Line>,
  take: (line: Line) => string | undefined,
): Promise<{ texts: string[]; ended: boolean }> {
  const texts: string[] = [];
  let length = 0;
  while (texts.length < LINES_MAX && length < LENGTH_MAX) {
    const { value, done } = await lines.next();
    if (done) return { texts, ended: true };
    const text = take(value);
    if (text === undefined) continue;
    texts.push(text);
    length += text.length;
  }
  return { texts, ended: false };
}

/** @throws Failure `bad_setting` when the daemon did not take all lines */
async function* answersOf(
  options: Options,
  query: string,
  texts: readonly string[],
): AsyncGenerator<Answered> {
  const path = `/api/operations${query}`;
  const body = Readable.from(texts.map((text) => `${text}\n`));
  let answered = 0;
  let problem: Problem | null | undefined;
  const sent = { path, type: 'application/x-ndjson', body };
  for await (const answer of streamToDaemon<Answered>(options, sent)) {
    if (answer.line === undefined) problem = answer.problem;
    else {
      answered++;
      yield answer;
    }
  }
  if (answered === texts.length && !problem) return;
  const why = problem ? (problem.detail ?? problem.code) : 'the daemon closed the connection';
  throw new Failure('bad_setting', `stopped early: ${why}; repeat the command, it continues`);
}

function showError(line: number, { code, detail }: Problem): void {
  clearProgress();
  process.stderr.write(`line ${line}: ${code}${detail ? `: ${detail}` : ''}\n`);
}
