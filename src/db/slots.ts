/**
 * Bounds the statements and transactions of a pool that run and that wait. The driver would queue
 * them behind each other on busy connections, also when another connection becomes free earlier.
 */
import { monotonicMs } from '../kernel/clock.ts';
import { DatabaseError } from './sqlstate.ts';

export interface Slots {
  load(): { running: number; waiting: number };
  /**
   * Runs the work when a slot is free; its slot is taken until it ends, also beyond a deadline.
   * @throws DatabaseError `BUSY` when too many wait, `DEADLINE` when none was free within `ms`
   */
  run<T>(work: () => Promise<T>, ms: number): Promise<T>;
}

/** Counts only: the driver queues what has no connection. */
export function countedSlots(connections: number): Slots {
  let count = 0;
  return {
    load: () => ({
      running: Math.min(count, connections),
      waiting: Math.max(0, count - connections),
    }),
    async run(work) {
      count++;
      try {
        return await work();
      } finally {
        count--;
      }
    },
  };
}

export function boundedSlots(connections: number, waitingMax: number): Slots {
  let running = 0;
  const waiting: (() => void)[] = [];
  return {
    load: () => ({ running, waiting: waiting.length }),
    async run(work, ms) {
      const until = monotonicMs() + ms;
      if (running < connections) running++;
      else if (waiting.length >= waitingMax) throw new DatabaseError('BUSY', undefined, undefined);
      // The slot passes from the work that ends.
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        if (monotonicMs() >= until) throw new DatabaseError('DEADLINE', undefined, undefined);
        return await work();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else running--;
      }
    },
  };
}
