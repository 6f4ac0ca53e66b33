/**
 * Exclusive locks on folders, within one machine and network namespace. A lock is a name in Linux'
 * abstract socket namespace, which the kernel frees when the process ends, so it is never stale.
 * A waiting process is connected to the holder and continues when that connection ends.
 */
import { createHash } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { after, monotonicMs, pause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';

/**
 * Runs `work` while holding the folder's lock.
 * @param folder its real path
 * @throws Failure `database_unavailable` when another process holds the lock for `limitMs`
 */
export async function withFolderLock<T>(
  folder: string,
  limitMs: number,
  work: () => Promise<T>,
): Promise<T> {
  const name = nameOf('postgres', folder);
  const deadline = monotonicMs() + limitMs;
  for (;;) {
    const release = await tryHold(name);
    if (release) {
      try {
        return await work();
      } finally {
        await release();
      }
    }
    const remainingMs = deadline - monotonicMs();
    if (remainingMs <= 0) {
      throw new Failure(
        'database_unavailable',
        `another process has been opening the Postgres in ${folder} for ${limitMs / 1000} s; ` +
          'end that process and start again',
      );
    }
    await waitForHolder(name, remainingMs);
  }
}

/**
 * Locks one use of a folder until the process ends or calls the returned function. Returns
 * undefined when another process holds the lock.
 */
export function holdFolder(
  use: string,
  folder: string,
): Promise<(() => Promise<void>) | undefined> {
  return tryHold(nameOf(use, folder));
}

function nameOf(use: string, folder: string): string {
  const digest = createHash('sha256').update(folder).digest('hex').slice(0, 32);
  return `\0tallyhook-${use}-${digest}`;
}

async function tryHold(name: string): Promise<(() => Promise<void>) | undefined> {
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    waiting.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => waiting.delete(socket));
  });
  if (!(await listens(server, name))) return undefined;
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of waiting) socket.destroy();
    });
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

/** Resolves when the holder releases the lock, or after `limitMs`. */
async function waitForHolder(name: string, limitMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const socket = connect({ path: name });
    const cancel = after(limitMs, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      cancel();
      resolve();
    });
  });
  // The name becomes free shortly after the connection ends.
  await pause(5);
}
