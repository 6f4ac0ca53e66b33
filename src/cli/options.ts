/** What commands share: examples, the options of a daemon, files that they write, the exit. */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { DatabaseError } from '../db/sqlstate.ts';
import { type Instant, parseInstant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { MOMENT_WORDS, SPAN_WORDS } from '../resources/ledger/period.ts';
import { parseMoment, parseSpan } from '../resources/moments.ts';

export function withExamples(command: Command, ...examples: string[]): Command {
  const title = examples.length === 1 ? 'Example' : 'Examples';
  return command.addHelpText('after', `\n${title}:\n  ${examples.join('\n  ')}`);
}

export function withRemote(command: Command, key: string): Command {
  return withKey(
    command.addOption(
      new Option('--url <url>', 'address of the daemon')
        .env('TALLYHOOK_URL')
        .default('http://127.0.0.1:8080'),
    ),
    key,
  );
}

export function withKey(command: Command, key: string): Command {
  return command
    .addOption(new Option('--key <key>', key).env('TALLYHOOK_KEY'))
    .addOption(
      new Option('--key-file <file>', 'the file that has it, instead')
        .env('TALLYHOOK_KEY_FILE')
        .conflicts('key'),
    );
}

/** The options of a period of the books. @param from whether its begin is known without them */
export function withPeriod(command: Command, from = `begin: ${MOMENT_WORDS}`): Command {
  return command
    .addOption(spanOption(new Option('--period <period>', `${SPAN_WORDS}; instead of the others`)))
    .addOption(momentOption(new Option('--from <begin>', from)))
    .addOption(momentOption(new Option('--to <end>', `end, excluded: ${MOMENT_WORDS}`)));
}

/** What `withPeriod` gave. */
export interface PeriodOptions {
  period?: string;
  from?: string;
  to?: string;
}

/** An option that is checked, and given as it was written. */
export function momentOption(option: Option): Option {
  return checked(option, parseMoment, MOMENT_WORDS);
}

function spanOption(option: Option): Option {
  return checked(option, parseSpan, SPAN_WORDS).conflicts(['from', 'to']);
}

function checked(option: Option, parse: (text: string) => unknown, words: string): Option {
  return option.argParser((text: string) => {
    if (parse(text) === undefined) throw new InvalidArgumentError(`Expected ${words}.`);
    return text;
  });
}

/** Of the value of an option. */
export function toWhole(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidArgumentError('It must be a whole number.');
}

/** Of an option that every command with CSV has. */
export const NO_BOM = 'CSV without the mark of UTF-8 that spreadsheets need';

/** The value of an option such as `--from`. @throws Failure `bad_setting` with an example */
export function instantOf(option: string, text: string | undefined): Instant | undefined {
  if (text === undefined) return undefined;
  const instant = parseInstant(text);
  if (instant === undefined)
    throw new Failure(
      'bad_setting',
      `${option} ${text}: expected RFC 3339, such as 2026-11-01T00:00:00Z`,
    );
  return instant;
}

/**
 * Writes a file, which gets its name when it is whole; others cannot read it.
 * @throws Failure `bad_setting` when it cannot be written
 */
export async function saveFile(out: string, texts: AsyncIterable<string>): Promise<void> {
  const part = `${out}.part`;
  try {
    await pipeline(texts, createWriteStream(part, { mode: 0o600 }));
    await rename(part, out);
  } catch (error) {
    await rm(part, { force: true });
    if (error instanceof Failure || error instanceof DatabaseError) throw error;
    throw new Failure('bad_setting', `${out} cannot be written`);
  }
}

/** Ends the process once the reader has all of its output: a pipe takes 64 KiB at a time. */
export async function exit(code: Promise<number>): Promise<never> {
  const result = await code;
  await new Promise((resolve) => process.stdout.write('', resolve));
  process.exit(result);
}
