/**
 * Group commit: items that arrive while a commit runs share the next one. When a shared commit
 * fails, its items are retried one by one, so that a bad item affects no other.
 *
 * After a commit of several items the next one starts later, in proportion to their number, so that
 * under load commits become few and large. Measured with intents: eight rows cost Postgres 75 µs
 * and the daemon 22 µs each, thirty-two rows 50 µs and 11 µs.
 *
 * The rows of a commit and the length of the queue are limited; items beyond that are refused.
 */
import { after } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { isOutage, isTooSlow } from '../sqlstate.ts';

interface Entry<T, R> {
  item: T;
  resolve(result: R): void;
  reject(error: unknown): void;
}

interface GroupCommit<T, R> {
  /** Resolves once the commit of the item is durable. @throws the error of the commit */
  add(item: T): Promise<R>;
}

interface Bounds {
  /** Items of a commit. */
  rowsMax: number;
  queueMax: number;
  concurrency: number;
  /** The pause after a commit of several rows, in milliseconds. */
  pauseMsPerRow: number;
  pauseMaxMs: number;
}

/** Two concurrent commits measured slower: they are smaller. */
export const BOUNDS: Bounds = {
  rowsMax: 64,
  queueMax: 5_000,
  concurrency: 1,
  pauseMsPerRow: 0.2,
  pauseMaxMs: 8,
};

/**
 * @param commit writes all items in one transaction and returns their results in the same order. A
 *   Failure that it throws is that of all items.
 */
export function groupCommit<T, R>(
  commit: (items: T[]) => Promise<R[]>,
  bounds: Bounds,
): GroupCommit<T, R> {
  const queue: Entry<T, R>[] = [];
  let running = 0;
  let pausing = false;

  async function commitGroup(group: Entry<T, R>[]): Promise<void> {
    try {
      const results = await commit(group.map((entry) => entry.item));
      group.forEach((entry, i) => {
        entry.resolve(results[i] as R);
      });
    } catch (error) {
      if (group.length === 1 || !isOfOneItem(error)) {
        for (const entry of group) entry.reject(error);
      } else {
        for (const entry of group) await commitGroup([entry]);
      }
    }
  }

  /** A full group does not wait for the pause. */
  const mayStart = () =>
    running < bounds.concurrency && (!pausing || queue.length >= bounds.rowsMax);

  function pump(): void {
    while (queue.length > 0 && mayStart()) {
      running++;
      const group = queue.splice(0, bounds.rowsMax);
      commitGroup(group).finally(() => {
        running--;
        pauseAfter(group.length);
        pump();
      });
    }
  }

  function pauseAfter(rows: number): void {
    const ms = Math.min(Math.round(rows * bounds.pauseMsPerRow), bounds.pauseMaxMs);
    if (rows < 2 || ms < 1 || pausing) return;
    pausing = true;
    after(ms, () => {
      pausing = false;
      pump();
    });
  }

  return {
    add(item) {
      if (queue.length >= bounds.queueMax) {
        return Promise.reject(
          new Failure('database_unavailable', 'too many writes wait for a commit'),
        );
      }
      return new Promise<R>((resolve, reject) => {
        queue.push({ item, resolve, reject });
        pump();
      });
    },
  };
}

/** Not of the database as a whole. After a timeout each item alone could time out again. */
function isOfOneItem(error: unknown): boolean {
  return !isOutage(error) && !isTooSlow(error) && !(error instanceof Failure);
}
