/**
 * Running Postgres' own programs: as which user, with which environment, and for how long. The
 * caller's environment never reaches them: LD_*, PG*, LANG and TZ would change what they do.
 */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after } from '../../kernel/clock.ts';

/** The account under which the server runs, when it is not our own. */
export interface ServerUser {
  name: string;
  uid: number;
  gid: number;
}

const ENVIRONMENT = { PATH: '/usr/bin:/bin', LC_ALL: 'C' };
const OUTPUT_CHARS_MAX = 4000;

/** For programs that only try something. */
export const PROBE_LIMIT_MS = 10_000;

/** The spawn options that every program of the server gets; `/` is a folder everybody can be in. */
export function identity(user: ServerUser | undefined) {
  return { cwd: '/', env: ENVIRONMENT, ...(user ? { uid: user.uid, gid: user.gid } : {}) };
}

export interface Finished {
  /** The exit code; undefined when it could not be started, was killed, or overran its limit. */
  code: number | undefined;
  /** The end of what it wrote, on one line. */
  output: string;
}

/** Runs a program to its end, killed after `limitMs`. Never rejects. */
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

/** Some failures to start are thrown, such as having no right to become that user. */
function start(file: string, args: string[], user: ServerUser | undefined) {
  try {
    return spawn(file, args, { ...identity(user), stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** The lines of a text joined into one, for an error that is one line. */
export function oneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' | ');
}

/** The account of that name or number in /etc/passwd, if there is one. */
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

/**
 * Why that user cannot go into the folder; undefined when it can. It is tried, because modes alone
 * do not tell.
 */
export async function troubleEntering(
  user: ServerUser | undefined,
  folder: string,
): Promise<string | undefined> {
  const tried = await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], user, PROBE_LIMIT_MS);
  return tried.code === 0 ? undefined : tried.output;
}
