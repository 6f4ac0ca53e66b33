/**
 * The change log on disk: a file in which each line is one committed change, appended before the
 * response is sent. It survives a killed process at any instant, not a power failure; an unfinished
 * last line is ignored.
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

export interface ChangeLog {
  append(line: string): void;
  /** Replaces the whole file atomically. */
  rewrite(lines: Iterable<string>): void;
  /** Bytes appended since the last rewrite, and bytes that the rewrite wrote. */
  size(): { appended: number; base: number };
  close(): void;
}

const FILE = 'world.jsonl';

/** A change log that stores nothing, for a world in memory. */
export const noChangeLog: ChangeLog = {
  append: () => {},
  rewrite: () => {},
  size: () => ({ appended: 0, base: 0 }),
  close: () => {},
};

/**
 * Returns the committed lines of a directory, oldest first.
 * @throws Failure `bad_setting` when a line other than the last is not JSON
 */
export function readChangeLog(directory: string): Json[] {
  const path = join(directory, FILE);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  lines.pop(); // Text behind the last line break is an unfinished line.
  return lines.map((line, index) => {
    try {
      return parseJson(line);
    } catch {
      throw new Failure('bad_setting', `${path}: line ${index + 1} is damaged`);
    }
  });
}

/** Opens the change log of a directory; `rewrite` must be called before the first `append`. */
export function openChangeLog(directory: string): ChangeLog {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, FILE);
  let file = openSync(path, 'a', 0o600);
  let appended = 0;
  let base = 0;
  return {
    append(line) {
      const length = base + appended;
      try {
        appended += write(file, `${line}\n`);
      } catch (error) {
        // A partial line would corrupt the next one.
        ftruncateSync(file, length);
        throw error;
      }
    },
    rewrite(lines) {
      const newPath = `${path}.new`;
      rmSync(newPath, { force: true });
      const newFile = openSync(newPath, 'a', 0o600);
      base = 0;
      for (const line of lines) base += write(newFile, `${line}\n`);
      fsyncSync(newFile);
      renameSync(newPath, path);
      closeSync(file);
      file = newFile;
      appended = 0;
    },
    size: () => ({ appended, base }),
    close: () => closeSync(file),
  };
}

/** Writes the whole text, because one write may stop early on a nearly full disk. */
function write(file: number, text: string): number {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
  return bytes.length;
}
