/** Runs psql and pg_dump, with the password in the environment: all users can read arguments. */
import { spawn } from 'node:child_process';
import { Failure } from '../../kernel/errors.ts';

/**
 * Runs a program of Postgres on the standard streams and returns its exit code.
 * @throws Failure `bad_setting` when it is not installed
 */
export async function runProgram(file: string, args: string[], url: URL): Promise<number> {
  const env = { ...process.env, ...(url.password ? { PGPASSWORD: passwordOf(url) } : {}) };
  const child = spawn(file, args, { env, stdio: 'inherit' });
  // Ctrl-C ends a query of psql, not psql.
  const ignore = () => {};
  process.on('SIGINT', ignore);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ENOENT' ? notInstalled(file) : error),
      );
      child.once('close', (code) => resolve(code ?? 1));
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}

/** The major version of an installed program. @throws Failure `bad_setting` */
export async function majorOf(file: string): Promise<number> {
  const child = spawn(file, ['--version'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', () => reject(notInstalled(file)));
    child.once('close', () => resolve());
  });
  return Number(/(\d+)/.exec(text)?.[1] ?? 0);
}

function notInstalled(file: string): Failure {
  return new Failure(
    'bad_setting',
    `${file} is not installed; on Debian or Ubuntu run: apt install postgresql-client, or use ` +
      'another client with the URL that npx tallyhook db url prints',
  );
}

/** For arguments, which every user of the machine can read. */
export function withoutPassword(url: URL): string {
  return Object.assign(new URL(url), { password: '' }).href;
}

export function passwordOf(url: URL): string {
  return decodeURIComponent(url.password);
}
