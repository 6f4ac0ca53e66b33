/** Waits on a clock of the test: they end when it is advanced, or when they are woken. */
import type { pause } from '../../src/kernel/clock.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { until } from '../harness/until.ts';

export interface Parking {
  clock: ManualClock;
  pause: typeof pause;
  /** Moves the clock and ends what is due. */
  advance(ms: number): void;
  /** Resolves once that many wait for at least so long, in milliseconds. */
  parked(count: number, atLeastMs: number): Promise<void>;
}

export function parking(): Parking {
  const clock = manualClock();
  const waiting = new Set<{ end: number; ms: number; wake: () => void }>();
  return {
    clock,
    pause: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const one = {
          ...{ end: clock.now() + ms, ms },
          wake: () => {
            waiting.delete(one);
            resolve();
          },
        };
        waiting.add(one);
        signal?.addEventListener('abort', one.wake, { once: true });
      }),
    advance(ms) {
      clock.advance(ms);
      for (const one of [...waiting]) if (one.end <= clock.now()) one.wake();
    },
    async parked(count, atLeastMs) {
      const long = () => [...waiting].filter(({ ms }) => ms >= atLeastMs).length;
      const seen = await until(async () => (long() === count ? true : undefined));
      if (!seen) throw new Error(`${long()} wait, not ${count}`);
    },
  };
}
