/** The service's own rate limit: a token bucket by the world's clock. */
import type { Instant } from '../../kernel/clock.ts';

export function makeRateLimit() {
  let used = 0;
  let last: Instant = Number.NEGATIVE_INFINITY;
  return {
    /** Takes one request: 0 when it may pass, else the milliseconds to wait. */
    take(now: Instant, perSecond: number, burst: number): number {
      used = now < last ? 0 : Math.max(0, used - ((now - last) / 1000) * perSecond);
      last = now;
      if (used + 1 > burst) return Math.ceil(((used + 1 - burst) / perSecond) * 1000);
      used += 1;
      return 0;
    },
    clear(): void {
      used = 0;
    },
  };
}
