/**
 * The world on disk: one file of lines, each line one committed change, appended before the answer
 * leaves. A process killed at any instant loses no acknowledged change; a last line that was cut
 * short is dropped. It does not promise to survive the machine losing power.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../kernel/errors.ts';
import { type Json, parseJson } from '../../kernel/json.ts';

export interface JournalFile {
  append(line: string): void;
  /** Replaces everything by these lines, in one step that a crash cannot halve. */
  rewrite(lines: Iterable<string>): void;
  /** Bytes appended since the last rewrite, and bytes that it wrote. */
  size(): { appended: number; base: number };
  close(): void;
}

const FILE = 'world.jsonl';

/** A journal that keeps nothing: the world lives in memory. */
export const noJournal: JournalFile = {
  append: () => {},
  rewrite: () => {},
  size: () => ({ appended: 0, base: 0 }),
  close: () => {},
};

/**
 * The committed lines of a directory, oldest first.
 * @throws Failure `bad_setting` when a line other than the last cannot be read
 */
export function readJournal(directory: string): Json[] {
  const path = join(directory, FILE);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  lines.pop(); // What follows the last line break was never finished.
  return lines.map((line, index) => {
    try {
      return parseJson(line);
    } catch {
      throw new Failure('bad_setting', `${path}: line ${index + 1} is damaged`);
    }
  });
}

/** Opens the journal of a directory for writing; `rewrite` must come before the first `append`. */
export function openJournal(directory: string): JournalFile {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, FILE);
  let file = openSync(path, 'a', 0o600);
  let appended = 0;
  let base = 0;
  return {
    append(line) {
      const whole = base + appended;
      try {
        appended += write(file, `${line}\n`);
      } catch (error) {
        // Half a line would spoil the next one.
        ftruncateSync(file, whole);
        throw error;
      }
    },
    rewrite(lines) {
      const fresh = `${path}.new`;
      rmSync(fresh, { force: true });
      const next = openSync(fresh, 'a', 0o600);
      base = 0;
      for (const line of lines) base += write(next, `${line}\n`);
      fsyncSync(next);
      renameSync(fresh, path);
      closeSync(file);
      file = next;
      appended = 0;
    },
    size: () => ({ appended, base }),
    close: () => closeSync(file),
  };
}

/** Writes all of the text: a write may stop early on a nearly full disk. */
function write(file: number, text: string): number {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
  return bytes.length;
}
