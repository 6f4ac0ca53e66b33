/**
 * Group commit: work that arrives while a commit is under way waits for the next one and shares it.
 * Cost per row falls as load rises; a single row waits for nobody. When a shared commit fails, each
 * of its rows is tried alone, so that one bad row hurts only itself.
 *
 * A commit of several rows is followed by a rest in proportion to them, so that under load commits
 * become few and large: measured with intents, a row of eight costs Postgres 75 µs and the daemon
 * 22 µs, a row of thirty-two 50 and 11. After a single row there is no rest.
 *
 * Bounded: at most `rowsMax` rows a commit, at most `queueMax` waiting; what does not fit is
 * refused.
 */
import { after } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';

interface Waiting<T, R> {
  item: T;
  resolve(result: R): void;
  reject(error: unknown): void;
}

export interface GroupCommit<T, R> {
  /** Resolves once the commit that holds the item is durable. @throws what the commit threw */
  add(item: T): Promise<R>;
}

export interface Bounds {
  rowsMax: number;
  queueMax: number;
  concurrency: number;
  /** The rest after a commit of several rows: for each of them, and at most, in milliseconds. */
  pauseMsPerRow: number;
  pauseMaxMs: number;
}

/** What intents and outcomes keep to. One lane: two made commits smaller, and a write dearer. */
export const BOUNDS: Bounds = {
  rowsMax: 64,
  queueMax: 5_000,
  concurrency: 1,
  pauseMsPerRow: 0.2,
  pauseMaxMs: 8,
};

/**
 * @param commit writes all items in one transaction and answers their results in the same order
 * @param retriesAlone whether a failed shared commit is worth trying row by row (not when the
 * database is away)
 */
export function groupCommit<T, R>(
  commit: (items: T[]) => Promise<R[]>,
  bounds: Bounds,
  retriesAlone: (error: unknown) => boolean,
): GroupCommit<T, R> {
  const queue: Waiting<T, R>[] = [];
  let running = 0;
  let resting = false;

  async function settle(group: Waiting<T, R>[]): Promise<void> {
    try {
      const results = await commit(group.map((waiting) => waiting.item));
      group.forEach((waiting, i) => {
        waiting.resolve(results[i] as R);
      });
    } catch (error) {
      if (group.length === 1 || !retriesAlone(error)) {
        for (const waiting of group) waiting.reject(error);
      } else {
        for (const waiting of group) await settle([waiting]);
      }
    }
  }

  /** A full commit is worth making at once. */
  const mayStart = () =>
    running < bounds.concurrency && (!resting || queue.length >= bounds.rowsMax);

  function pump(): void {
    while (queue.length > 0 && mayStart()) {
      running++;
      const group = queue.splice(0, bounds.rowsMax);
      settle(group).finally(() => {
        running--;
        rest(group.length);
        pump();
      });
    }
  }

  function rest(rows: number): void {
    const ms = Math.min(Math.round(rows * bounds.pauseMsPerRow), bounds.pauseMaxMs);
    if (rows < 2 || ms < 1 || resting) return;
    resting = true;
    after(ms, () => {
      resting = false;
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
