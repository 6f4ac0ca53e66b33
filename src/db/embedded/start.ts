/**
 * Starting the server of a data folder that has none living, also after a kill or a reboot.
 *
 * It is started directly rather than by pg_ctl, which only adds a shell that would interpret the
 * path, and looks ten times a second whether the server is ready. It gets its own session, so a
 * Ctrl-C or a signal to the daemon's group never reaches it, and it outlives the daemon.
 * Never removes a postmaster.pid: in it stands what Postgres needs to notice orphaned backends.
 */
import { spawn } from 'node:child_process';
import { open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { monotonicMs, pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { readOrUndefined } from './folders.ts';
import {
  findPostmaster,
  isServerProcess,
  POLL_MS,
  type ReadyPostmaster,
  settledPostmaster,
  signalTo,
} from './postmaster.ts';
import { identity, oneLine, type ServerUser } from './process.ts';

/** A log larger than this at a start is put aside; the one put aside before is dropped. */
const LOG_BYTES_MAX = 8 * 1024 * 1024;
const LOG_TAIL_CHARS = 1500;

export interface StartOrder {
  bin: string;
  data: string;
  logFile: string;
  user: ServerUser | undefined;
}

/**
 * Starts the server of a data folder that has none, on its former port if that is free. A port
 * taken meanwhile, or backends of a killed server that are still going, are tried again.
 * Fails with `database_unavailable`, with the server's last lines, within `limitMs`.
 */
export async function startPostmaster(
  order: StartOrder,
  limitMs: number,
): Promise<ReadyPostmaster> {
  const deadline = monotonicMs() + limitMs;
  await disownForeignPid(order.data);
  let wanted = await formerPort(order.data);
  for (;;) {
    const port = await freePort(wanted);
    const said = await launch(order, port, deadline);
    const remainingMs = Math.max(1, deadline - monotonicMs());
    const running = await settledPostmaster(order.data, remainingMs);
    if (running) return running;
    const portTaken = said.includes('Address already in use');
    const orphans = said.includes('is still in use');
    if (!(portTaken || orphans) || monotonicMs() > deadline) {
      throw new Failure(
        'database_unavailable',
        `Postgres did not start in ${order.data}: ${said || 'it said nothing'}; ` +
          `see ${order.logFile}, put that right and start again`,
      );
    }
    if (portTaken) wanted = 0;
    if (orphans) await endOrphans(order.data);
    await pause(20);
  }
}

/** Starts the program once; resolves with what it logged when it is ready or has ended. */
async function launch(order: StartOrder, port: number, deadline: number): Promise<string> {
  const log = await openLog(order.logFile);
  const { size } = await log.stat();
  try {
    const child = spawn(join(order.bin, 'postgres'), serverArguments(order.data, port), {
      ...identity(order.user),
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
      const found = await findPostmaster(order.data);
      if (found?.pid === child.pid && found?.state === 'ready') return '';
      await pause(POLL_MS);
    }
    return oneLine(`${await textFrom(order.logFile, size)}\n${ended ?? ''}`);
  } finally {
    await log.close();
  }
}

/** What people must not change by accident stands here; the command line wins over every file. */
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
 * After a reboot or a kill the number in postmaster.pid may be somebody else's process, at which
 * Postgres refuses to start, as it does at an empty file. Only that number is replaced, by one that
 * no process has.
 */
async function disownForeignPid(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid');
  const text = await readOrUndefined(file);
  if (text === undefined || (await findPostmaster(data))) return;
  await writeFile(file, text.replace(/^(-?\d+)?/, '2147483647'));
}

/**
 * Ends the backends that a killed server left at work, with the signal that it would have sent. To
 * be called only when Postgres said that they exist and no server lives.
 */
async function endOrphans(data: string): Promise<void> {
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    if (await isServerProcess(pid, data)) signalTo(pid, 'SIGQUIT');
  }
}

/** The port of the last start, which other daemons on this database still know; 0 if none. */
async function formerPort(data: string): Promise<number> {
  const text = (await readOrUndefined(join(data, 'postmaster.opts'))) ?? '';
  return Number(/"-p" "(\d+)"/.exec(text)?.[1] ?? 0);
}

/** A port of 127.0.0.1 that is free at this moment: the wanted one, or else any. */
function freePort(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => {
      if (wanted === 0) reject(error);
      else resolve(freePort(0));
    });
    probe.listen(wanted, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/** The log, opened for appending by us: the server's user needs no right on its folder. */
async function openLog(path: string) {
  const size = await stat(path).then(
    (file) => file.size,
    () => 0,
  );
  if (size > LOG_BYTES_MAX) await rename(path, `${path}.1`);
  return await open(path, 'a', 0o600);
}

/** The end of what was written to a file since it had that size. */
async function textFrom(path: string, size: number): Promise<string> {
  const bytes = await readFile(path);
  return bytes.subarray(size).toString('utf8').slice(-LOG_TAIL_CHARS);
}
