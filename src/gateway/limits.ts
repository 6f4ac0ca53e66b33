/** Limits on requests that run at once, and on requests whose bodies arrive. */
import { Failure } from '../kernel/errors.ts';

export interface Slots {
  /** @throws Failure `too_many_requests` when all slots are taken */
  run<T>(work: () => Promise<T>): Promise<T>;
  isFull(): boolean;
}

export function makeSlots(max: number): Slots {
  let taken = 0;
  return {
    isFull: () => taken >= max,
    async run(work) {
      if (taken >= max) throw new Failure('too_many_requests');
      taken++;
      try {
        return await work();
      } finally {
        taken--;
      }
    },
  };
}

export interface Arrivals {
  /** The signal aborts when too many later bodies arrive at once. */
  run<T>(work: (displaced: AbortSignal) => Promise<T>): Promise<T>;
}

/**
 * Bounds the bodies that arrive at once. The oldest makes room: bodies that are never sent in full
 * then displace each other, and not those that come at once.
 */
export function makeArrivals(max: number): Arrivals {
  const arriving = new Set<AbortController>();
  return {
    async run(work) {
      const [oldest] = arriving;
      if (arriving.size >= max) oldest?.abort();
      const own = new AbortController();
      arriving.add(own);
      own.signal.addEventListener('abort', () => arriving.delete(own));
      try {
        return await work(own.signal);
      } finally {
        arriving.delete(own);
      }
    },
  };
}
