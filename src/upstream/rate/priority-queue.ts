/**
 * Whose turn it is among the looks that wait: unknown outcomes, then pending operations, then
 * steady objects; but of every run of turns the steady ones keep their share, so that a burst of
 * writes cannot blind the watch for drift. Within a priority first come, first served. Pure but for
 * its queues.
 */
import type { Priority } from '../types.ts';

export interface Turns<T> {
  /** False when the queue is full. */
  add(priority: Priority, waiter: T): boolean;
  remove(priority: Priority, waiter: T): void;
  /** Takes the one whose turn it is. */
  next(): T | undefined;
  /** Takes all. */
  drain(): T[];
  size(): number;
}

/** @param share the part of the turns that steady looks keep while they wait, 0 to 1 */
export function makeTurns<T>(share: number, sizeMax: number): Turns<T> {
  const queues: Record<Priority, Set<T>> = {
    unknown: new Set(),
    pending: new Set(),
    steady: new Set(),
  };
  let credit = 0;
  const size = () => queues.unknown.size + queues.pending.size + queues.steady.size;
  const shift = (queue: Set<T>): T | undefined => {
    for (const first of queue) {
      queue.delete(first);
      return first;
    }
    return undefined;
  };
  return {
    add(priority, waiter) {
      if (size() >= sizeMax) return false;
      queues[priority].add(waiter);
      return true;
    },
    remove: (priority, waiter) => {
      queues[priority].delete(waiter);
    },
    next() {
      // Credit gathers only while a steady look waits, a little for every turn.
      credit = queues.steady.size > 0 ? Math.min(1, credit + share) : 0;
      if (credit < 1 - 1e-9 && queues.unknown.size + queues.pending.size > 0)
        return shift(queues.unknown) ?? shift(queues.pending);
      credit = 0;
      return shift(queues.steady) ?? shift(queues.unknown) ?? shift(queues.pending);
    },
    drain() {
      const all = [...queues.unknown, ...queues.pending, ...queues.steady];
      for (const queue of Object.values(queues)) queue.clear();
      return all;
    },
    size,
  };
}
