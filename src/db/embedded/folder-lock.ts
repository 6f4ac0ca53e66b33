/** Work on a folder by one process of this machine at a time. */
import { monotonicMs } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { platform } from '../platform.ts';

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
  const deadline = monotonicMs() + limitMs;
  for (;;) {
    const release = await platform.tryLock('postgres', folder);
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
    await platform.waitForLock('postgres', folder, remainingMs);
  }
}
