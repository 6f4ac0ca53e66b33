/**
 * The server process of a data folder: finds, starts and stops it.
 *
 * It is started directly, because pg_ctl adds only a shell, which would interpret the path, and a
 * slow check for readiness. It runs in its own session, so signals to the daemon's process group do
 * not reach it, and it outlives the daemon. postmaster.pid is trusted only for a process that works
 * in the folder, and is never removed: Postgres detects orphaned backends by it.
 */
import { spawn } from 'node:child_process';
import { open, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { monotonicMs, pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { platform } from '../platform.ts';
import { readOrUndefined } from './folders.ts';
import { identity, oneLine, type ServerUser } from './process.ts';

/** Interval of checks while a server starts or stops. */
const CHECK_MS = 5;
const FAST_STOP_LIMIT_MS = 30_000;
const HARD_STOP_LIMIT_MS = 10_000;

interface Postmaster {
  pid: number;
  /** Undefined until the server has written it to postmaster.pid. */
  port: number | undefined;
  /** `starting`, `ready` or `stopping`; empty until the server has written it. */
  state: string;
}

interface ReadyPostmaster extends Postmaster {
  port: number;
}

/** The running server of a data folder, if any. */
export async function findPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readOrUndefined(join(data, 'postmaster.pid'));
  if (text === undefined) return undefined;
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Number(lines[0]);
  if (!(await isServerProcess(pid, data))) return undefined;
  const port = Number(lines[3]);
  return { pid, port: port > 0 ? port : undefined, state: lines[7] ?? '' };
}

/** True for a running Postgres process of that data folder. */
export async function isServerProcess(pid: number, data: string): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid < 1) return false;
  return (await platform.serversIn(data, pid)).length > 0;
}

/**
 * Waits while the server is starting (recovery included) or stopping; returns the ready server, or
 * undefined when none is left. @throws Failure `database_unavailable` after `limitMs`
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
          `${limitMs / 1000} s; it continues by itself, start Tallyhook again later`,
      );
    }
    await pause(CHECK_MS);
  }
}

/**
 * Stops a server: open transactions are rolled back. Idempotent.
 * @throws Failure `database_unavailable` when it does not stop
 */
export async function stopPostmaster(pid: number, data: string): Promise<void> {
  // As `pg_ctl stop -m fast`, then `-m immediate`, after which the next start runs recovery.
  if (await ends(pid, data, 'SIGINT', FAST_STOP_LIMIT_MS)) return;
  if (await ends(pid, data, 'SIGQUIT', HARD_STOP_LIMIT_MS)) return;
  throw new Failure(
    'database_unavailable',
    `Postgres (process ${pid}, ${data}) does not stop; run: kill -QUIT ${pid}`,
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
    await pause(CHECK_MS);
  }
  return false;
}

/** The process may have ended meanwhile. */
function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A larger log is renamed to postgres.log.1 at a start. */
const LOG_BYTES_MAX = 8 * 1024 * 1024;
const LOG_TAIL_CHARS = 1500;

interface StartInput {
  bin: string;
  data: string;
  logFile: string;
  user: ServerUser | undefined;
  /** 0: its former port if that is free, else any. */
  port: number;
}

/**
 * Starts the server of a data folder that has none running. Retries when a port that it chose was
 * taken meanwhile and when backends of a killed server still run.
 * @throws Failure `bad_setting` when the fixed port is in use; `database_unavailable` with the
 * server's last log lines, within `limitMs`
 */
export async function startPostmaster(
  input: StartInput,
  limitMs: number,
): Promise<ReadyPostmaster> {
  const deadline = monotonicMs() + limitMs;
  await disownForeignPid(input.data);
  let preferred = input.port || (await formerPort(input.data));
  for (;;) {
    const port = await freePort(preferred);
    if (input.port && port !== input.port)
      throw new Failure('bad_setting', `DATABASE_PORT: port ${input.port} is in use; free it`);
    const log = await launch(input, port, deadline);
    const remainingMs = Math.max(1, deadline - monotonicMs());
    const running = await settledPostmaster(input.data, remainingMs);
    if (running) return running;
    const portTaken = log.includes('Address already in use');
    const orphans = log.includes('is still in use');
    if (!(portTaken || orphans) || monotonicMs() > deadline) {
      throw new Failure(
        'database_unavailable',
        `Postgres did not start in ${input.data}: ${log || 'it logged nothing'}; ` +
          `see ${input.logFile}, correct the cause and start again`,
      );
    }
    if (portTaken && !input.port) preferred = 0;
    if (orphans) await endOrphans(input.data);
    await pause(20);
  }
}

/** Starts the program once; resolves when it is ready, or with its log when it has ended. */
async function launch(input: StartInput, port: number, deadline: number): Promise<string> {
  const log = await openLog(input.logFile);
  const { size } = await log.stat();
  try {
    const child = spawn(join(input.bin, 'postgres'), serverArguments(input.data, port), {
      ...identity(input.user),
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    let ended: string | undefined;
    child.on('exit', (code, signal) => {
      ended = `ended with ${signal ?? code}`;
    });
    child.on('error', (error) => {
      ended = error.message;
    });
    child.unref();
    while (ended === undefined && monotonicMs() < deadline) {
      const found = await findPostmaster(input.data);
      if (found?.pid === child.pid && found?.state === 'ready') return '';
      await pause(CHECK_MS);
    }
    return oneLine(`${await textFrom(input.logFile, size)}\n${ended ?? ''}`);
  } finally {
    await log.close();
  }
}

/**
 * Settings on the command line override postgresql.conf, so these cannot be changed by accident.
 */
function serverArguments(data: string, port: number): string[] {
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'fsync=on',
    'full_page_writes=on',
    'synchronous_commit=on',
  ];
  return ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
}

/**
 * Postgres refuses to start when the process id in postmaster.pid belongs, after a reboot or a
 * kill, to an unrelated process, or when the file is empty. The id is replaced by one that cannot
 * exist.
 */
async function disownForeignPid(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid');
  const text = await readOrUndefined(file);
  if (text === undefined || (await findPostmaster(data))) return;
  await writeFile(file, text.replace(/^(-?\d+)?/, '2147483647'));
}

/**
 * Ends backends that a killed server left running, with the signal that the server would have sent.
 * Call it only when Postgres reported them and no server runs.
 */
async function endOrphans(data: string): Promise<void> {
  for (const pid of await platform.serversIn(data)) signalTo(pid, 'SIGQUIT');
}

/** The port of the last start, which other daemons may still use; 0 if none. */
async function formerPort(data: string): Promise<number> {
  const text = (await readOrUndefined(join(data, 'postmaster.opts'))) ?? '';
  return Number(/"-p" "(\d+)"/.exec(text)?.[1] ?? 0);
}

/** The preferred port of 127.0.0.1 if it is free, else any. */
function freePort(preferred: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => {
      if (preferred === 0) reject(error);
      else resolve(freePort(0));
    });
    probe.listen(preferred, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/** Opened by this process, so that the server's user needs no rights on the folder. */
async function openLog(path: string) {
  const size = await stat(path).then(
    (file) => file.size,
    () => 0,
  );
  if (size > LOG_BYTES_MAX) await rename(path, `${path}.1`);
  return await open(path, 'a', 0o600);
}

/** The end of what was appended to a file since it had that size. */
async function textFrom(path: string, size: number): Promise<string> {
  const bytes = await readFile(path);
  return bytes.subarray(size).toString('utf8').slice(-LOG_TAIL_CHARS);
}
