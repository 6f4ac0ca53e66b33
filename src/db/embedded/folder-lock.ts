/**
 * One opener at a time per folder, on one machine. The lock is a name in Linux' abstract socket
 * space: the kernel gives it to one process and takes it back when that process ends, however it
 * ends. So a lock can never be stale, and no file is left to be judged. Whoever waits is connected
 * to the holder and wakes when the holder lets go. It does not reach across network namespaces.
 */
import { createHash } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { after, monotonicMs, pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';

/**
 * Runs `work` while holding the folder's lock.
 * @param folder its real path; @param limitMs how long to wait for another opener
 * Fails with `database_unavailable` when another process holds the lock for longer.
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
          'end it and start again',
      );
    }
    await waitForHolder(name, remainingMs);
  }
}

/**
 * Holds what only one process may use in a folder, until that process ends or calls the answer.
 * Answers undefined when another process has it.
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

/** Takes the name, or answers undefined when another has it. The result gives it back. */
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

/** Resolves when the holder has let go, or after `limitMs`. */
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
  // The name is free a moment after the connection ends.
  await pause(5);
}
