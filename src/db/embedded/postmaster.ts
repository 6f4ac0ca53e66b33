/**
 * The server process of a data folder: finding the living one, waiting until it is ready or gone,
 * and stopping it. What postmaster.pid says is believed only of a process that works in the folder.
 */
import { readFile, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { monotonicMs, pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { readOrUndefined } from './folders.ts';

/** How often a server is looked at while it starts or stops. */
export const POLL_MS = 5;
const FAST_STOP_LIMIT_MS = 30_000;
const HARD_STOP_LIMIT_MS = 10_000;

export interface Postmaster {
  pid: number;
  /** Undefined until the server has written it. */
  port: number | undefined;
  /** `starting`, `ready`, `stopping`, or empty while not yet written. */
  state: string;
}

export interface ReadyPostmaster extends Postmaster {
  port: number;
}

/** The living server of that data folder, by its postmaster.pid; undefined when there is none. */
export async function findPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readOrUndefined(join(data, 'postmaster.pid'));
  if (text === undefined) return undefined;
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Number(lines[0]);
  if (!(await isServerProcess(pid, data))) return undefined;
  const port = Number(lines[3]);
  return { pid, port: port > 0 ? port : undefined, state: lines[7] ?? '' };
}

/** True when the process lives, is a Postgres, and works in that data folder. */
export async function isServerProcess(pid: number, data: string): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid < 1) return false;
  try {
    const name = await readFile(`/proc/${pid}/comm`, 'utf8');
    return name.trim() === 'postgres' && (await worksIn(pid, await realpath(data)));
  } catch {
    return false;
  }
}

async function worksIn(pid: number, folder: string): Promise<boolean> {
  try {
    // A dead process that nobody has collected has no folder any more.
    return (await readlink(`/proc/${pid}/cwd`)) === folder;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
  }
  // Root in a container may not see another user's working folder, but sees the command line.
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
  const named = words[words.indexOf('-D') + 1];
  return named !== undefined && (await realpath(named)) === folder;
}

/**
 * Waits while the server of that data folder is starting (recovery included) or stopping.
 * The result is ready, or undefined when no server is left. Fails with `database_unavailable`
 * after `limitMs`.
 */
export async function settledPostmaster(
  data: string,
  limitMs: number,
): Promise<ReadyPostmaster | undefined> {
  const deadline = monotonicMs() + limitMs;
  for (;;) {
    const found = await findPostmaster(data);
    if (!found) return undefined;
    if (found.state === 'ready' && found.port) return { ...found, port: found.port };
    if (monotonicMs() > deadline) {
      throw new Failure(
        'database_unavailable',
        `Postgres (process ${found.pid}, ${data}) is still ${found.state || 'starting'} after ` +
          `${limitMs / 1000} s; it goes on by itself: start again later`,
      );
    }
    await pause(POLL_MS);
  }
}

/**
 * Stops that server: open transactions are rolled back, connections end. Harmless when it is gone.
 * Fails with `database_unavailable` when it will not end.
 */
export async function stopPostmaster(pid: number, data: string): Promise<void> {
  // SIGINT is the fast shutdown of `pg_ctl stop -m fast`, SIGQUIT the immediate one, after which
  // the next start recovers from the log.
  if (await ends(pid, data, 'SIGINT', FAST_STOP_LIMIT_MS)) return;
  if (await ends(pid, data, 'SIGQUIT', HARD_STOP_LIMIT_MS)) return;
  throw new Failure(
    'database_unavailable',
    `Postgres (process ${pid}, ${data}) does not stop; end it with: kill -QUIT ${pid}`,
  );
}

async function ends(
  pid: number,
  data: string,
  signal: NodeJS.Signals,
  limitMs: number,
): Promise<boolean> {
  const deadline = monotonicMs() + limitMs;
  if (!(await isServerProcess(pid, data))) return true;
  signalTo(pid, signal);
  while (monotonicMs() < deadline) {
    if (!(await isServerProcess(pid, data))) return true;
    await pause(POLL_MS);
  }
  return false;
}

/** Sends a signal to a process, which may be gone. */
export function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
