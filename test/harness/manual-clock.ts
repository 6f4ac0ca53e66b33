/** A clock that moves only when the test says so. */
import type { Clock } from '../../src/kernel/clock.ts';

export interface ManualClock extends Clock {
  advance(ms: number): void;
  set(at: number): void;
}

/** Starts at 2026-01-01T00:00:00Z by default. */
export function manualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start;
  return {
    now: () => now,
    advance: (ms) => {
      now += ms;
    },
    set: (at) => {
      now = at;
    },
  };
}
