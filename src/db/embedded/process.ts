/**
 * Runs the programs of Postgres as the right user and with a fixed environment: LD_*, PG*, LANG and
 * TZ of the caller would change their behaviour.
 */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after } from '../../kernel/clock.ts';

/** The user that runs the server, if it is not the user of this process. */
export interface ServerUser {
  name: string;
  uid: number;
  gid: number;
}

const ENVIRONMENT = { PATH: '/usr/bin:/bin', LC_ALL: 'C' };
const OUTPUT_CHARS_MAX = 4000;

/** For programs that only check something. */
export const CHECK_LIMIT_MS = 10_000;

/** Spawn options for every program; any user may work in `/`. */
export function identity(user: ServerUser | undefined) {
  return { cwd: '/', env: ENVIRONMENT, ...(user ? { uid: user.uid, gid: user.gid } : {}) };
}

interface Finished {
  /** Undefined when the program did not start, was killed, or exceeded its limit. */
  code: number | undefined;
  /** The end of its output, on one line. */
  output: string;
}

/** Runs a program and kills it after `limitMs`. Never rejects. */
export function run(
  file: string,
  args: string[],
  user: ServerUser | undefined,
  limitMs: number,
): Promise<Finished> {
  return new Promise((resolve) => {
    const child = start(file, args, user);
    if (child instanceof Error) return resolve({ code: undefined, output: child.message });
    let output = '';
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString('utf8')).slice(-OUTPUT_CHARS_MAX);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const end = (code: number | undefined) => {
      cancel();
      resolve({ code, output: oneLine(output) });
    };
    const cancel = after(limitMs, () => {
      output += `\nkilled after ${limitMs / 1000} s`;
      child.kill('SIGKILL');
      end(undefined);
    });
    child.on('error', (error) => {
      output += `\n${error.message}`;
      end(undefined);
    });
    child.on('close', (code) => end(code ?? undefined));
  });
}

/** `spawn` throws for some failures, such as a missing right to become that user. */
function start(file: string, args: string[], user: ServerUser | undefined) {
  try {
    return spawn(file, args, { ...identity(user), stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

export function oneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' | ');
}

/** The user of that name or number in /etc/passwd, if there is one. */
export async function findUser(nameOrUid: string | number): Promise<ServerUser | undefined> {
  const passwd = await readFile('/etc/passwd', 'utf8');
  for (const line of passwd.split('\n')) {
    const [name = '', , uid, gid] = line.split(':');
    if (name === nameOrUid || (uid !== undefined && Number(uid) === nameOrUid)) {
      return { name, uid: Number(uid), gid: Number(gid) };
    }
  }
  return undefined;
}

/** Why the user cannot enter the folder, found by trying; undefined when it can. */
export async function obstacleToEnter(
  user: ServerUser | undefined,
  folder: string,
): Promise<string | undefined> {
  const attempt = await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], user, CHECK_LIMIT_MS);
  return attempt.code === 0 ? undefined : attempt.output;
}
