/**
 * The order in which waiting polls are served: unknown operations, then pending ones, then steady
 * targets, each first come, first served. Steady polls keep a share of all slots, so that a burst
 * of writes cannot stop drift detection.
 */

/** The purpose of a poll, in the order in which waiting polls are served. */
export type Priority = 'unknown' | 'pending' | 'steady';

interface PriorityQueue<T> {
  /** False when the queue is full. */
  add(priority: Priority, waiter: T): boolean;
  remove(priority: Priority, waiter: T): void;
  /** Removes the next one to serve. */
  next(): T | undefined;
  /** Removes all. */
  drain(): T[];
  size(): number;
}

/** @param steadyShare the part of the slots that steady polls keep while they wait, 0 to 1 */
export function makePriorityQueue<T>(steadyShare: number, sizeMax: number): PriorityQueue<T> {
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
      // Credit grows with every slot given away while a steady poll waits.
      credit = queues.steady.size > 0 ? Math.min(1, credit + steadyShare) : 0;
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
