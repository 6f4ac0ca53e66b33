/** A clock that moves only when the test says so, and pauses on it. */
import type { Clock, Instant, pause } from '../../src/kernel/clock.ts';
import { until } from './until.ts';

export interface ManualClock extends Clock {
  /** Moves the clock; pauses whose end it reaches are over. */
  advance(ms: number): void;
  set(at: Instant): void;
  pause: typeof pause;
  /** Resolves once that many pauses of at least `atLeastMs` are under way. */
  paused(count: number, atLeastMs: number): Promise<void>;
}

/** Starts at 2026-01-01T00:00:00Z by default. */
export function manualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start;
  const pauses = new Set<{ end: Instant; ms: number; wake: () => void }>();
  const set = (at: Instant) => {
    now = at;
    for (const one of [...pauses]) if (one.end <= now) one.wake();
  };
  return {
    now: () => now,
    advance: (ms) => set(now + ms),
    set,
    pause: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const one = {
          end: now + ms,
          ms,
          wake() {
            pauses.delete(one);
            resolve();
          },
        };
        pauses.add(one);
        signal?.addEventListener('abort', one.wake, { once: true });
      }),
    async paused(count, atLeastMs) {
      const long = () => [...pauses].filter(({ ms }) => ms >= atLeastMs).length;
      const reached = await until(async () => (long() === count ? true : undefined));
      if (!reached) throw new Error(`${long()} pauses are under way, not ${count}`);
    },
  };
}
