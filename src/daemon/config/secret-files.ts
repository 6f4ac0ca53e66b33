/**
 * Secrets from files: of each secret variable `X` the value may also stand in the file that
 * `X_FILE` names, as orchestrators mount them. No error has the content of a file.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { Failure } from '../../kernel/errors.ts';
import { FILE_SUFFIX, SECRETS } from './settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const BYTES_MAX = 65_536;

/**
 * The environment with the secrets whose files it names.
 * @throws Failure `bad_setting` that names the variable
 */
export function withSecretFiles(env: Environment): Environment {
  const found: Record<string, string> = {};
  for (const name of SECRETS) {
    const path = env[name + FILE_SUFFIX]?.trim();
    if (!path) continue;
    if (env[name]?.trim())
      throw new Failure('bad_setting', `${name} and ${name}${FILE_SUFFIX} are both set; set one`);
    found[name] = readSecret(name + FILE_SUFFIX, path);
  }
  return { ...env, ...found };
}

/**
 * The content of a file without the newline at its end.
 * @throws Failure `bad_setting` that names the variable
 */
export function readSecret(variable: string, path: string): string {
  const refuse = (reason: string) => new Failure('bad_setting', `${variable}: ${path} ${reason}`);
  const buffer = Buffer.alloc(BYTES_MAX + 1);
  let size: number;
  try {
    size = readInto(buffer, path);
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw refuse(`cannot be read (${code}); it must be a file that the daemon may read`);
  }
  if (size > BYTES_MAX) throw refuse(`is larger than ${BYTES_MAX} bytes`);
  const text = buffer.toString('utf8', 0, size).replace(/\r?\n$/, '');
  if (text.trim() === '') throw refuse('is empty');
  return text;
}

/** Reads no more than the buffer holds, also of what is no regular file. */
function readInto(buffer: Buffer, path: string): number {
  const file = openSync(path, 'r');
  try {
    for (let size = 0; ; ) {
      const read = readSync(file, buffer, size, buffer.length - size, null);
      size += read;
      if (read === 0 || size === buffer.length) return size;
    }
  } finally {
    closeSync(file);
  }
}
