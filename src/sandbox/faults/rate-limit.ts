/** The service's own rate limit: a token bucket by the world's clock. */
import type { Instant } from '../../kernel/clock.ts';

export interface RateLimit {
  /** Takes one request: 0 when it may pass, else the milliseconds to wait. */
  take(now: Instant, perSecond: number, burst: number): number;
  clear(): void;
}

export function makeRateLimit(): RateLimit {
  let used = 0;
  let last: Instant = Number.NEGATIVE_INFINITY;
  return {
    take(now, perSecond, burst) {
      used = now < last ? 0 : Math.max(0, used - ((now - last) / 1000) * perSecond);
      last = now;
      if (used + 1 > burst) return Math.ceil(((used + 1 - burst) / perSecond) * 1000);
      used += 1;
      return 0;
    },
    clear() {
      used = 0;
    },
  };
}
