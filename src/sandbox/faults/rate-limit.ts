/**
 * The service's own limit of requests, when one is switched on: a token bucket by the world's
 * clock.
 */
import type { Instant } from '../../kernel/clock.ts';

export interface RateLimit {
  /** Takes one request: 0 when it may pass, else the milliseconds to wait. */
  take(now: Instant, perSecond: number, burst: number): number;
  clear(): void;
}

export function makeRateLimit(): RateLimit {
  let spent = 0;
  let last: Instant = Number.NEGATIVE_INFINITY;
  return {
    take(now, perSecond, burst) {
      spent = now < last ? 0 : Math.max(0, spent - ((now - last) / 1000) * perSecond);
      last = now;
      if (spent + 1 > burst) return Math.ceil(((spent + 1 - burst) / perSecond) * 1000);
      spent += 1;
      return 0;
    },
    clear() {
      spent = 0;
    },
  };
}
