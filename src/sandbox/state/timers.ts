/** Callbacks due later by the world's clock, in order of time and then of arrival. */
import type { Instant } from '../../kernel/clock.ts';

interface Timer {
  at: Instant;
  run: () => void;
}

export function makeTimers() {
  let timers: Timer[] = [];
  return {
    add(at: Instant, run: () => void): void {
      timers.splice(indexAfter(timers, at), 0, { at, run });
    },
    /** Removes and returns the first timer due at `now`. */
    take(now: Instant): Timer | undefined {
      const first = timers[0];
      return first && first.at <= now ? timers.shift() : undefined;
    },
    clear(): void {
      timers = [];
    },
  };
}

/** The index behind all timers that are due at the instant or before it. */
function indexAfter(timers: readonly Timer[], at: Instant): number {
  let low = 0;
  let high = timers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((timers[middle]?.at ?? at) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
