/**
 * Group commit: work that arrives while a commit is under way waits for the next one and shares it.
 * Cost per row falls as load rises; a single row waits for nobody. When a shared commit fails, each
 * of its rows is tried alone, so that one bad row hurts only itself.
 *
 * Bounded: at most `rowsMax` rows a commit, at most `queueMax` waiting; what does not fit is
 * refused.
 */
import { Failure } from '../kernel/errors.ts';

interface Waiting<T, R> {
  item: T;
  resolve(result: R): void;
  reject(error: unknown): void;
}

export interface GroupCommit<T, R> {
  /** Resolves once the commit that holds the item is durable. @throws what the commit threw */
  add(item: T): Promise<R>;
}

/**
 * @param commit writes all items in one transaction and answers their results in the same order
 * @param aloneAfter whether a failed shared commit is worth trying row by row (not when the
 * database is away)
 */
export function groupCommit<T, R>(
  commit: (items: T[]) => Promise<R[]>,
  bounds: { rowsMax: number; queueMax: number; lanes: number },
  aloneAfter: (error: unknown) => boolean,
): GroupCommit<T, R> {
  const queue: Waiting<T, R>[] = [];
  let running = 0;

  async function settle(group: Waiting<T, R>[]): Promise<void> {
    try {
      const results = await commit(group.map((waiting) => waiting.item));
      group.forEach((waiting, i) => {
        waiting.resolve(results[i] as R);
      });
    } catch (error) {
      if (group.length === 1 || !aloneAfter(error)) {
        for (const waiting of group) waiting.reject(error);
      } else {
        for (const waiting of group) await settle([waiting]);
      }
    }
  }

  function pump(): void {
    while (running < bounds.lanes && queue.length > 0) {
      running++;
      settle(queue.splice(0, bounds.rowsMax)).finally(() => {
        running--;
        pump();
      });
    }
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
