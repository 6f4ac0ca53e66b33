/**
 * The rate of polls by additive increase and multiplicative decrease. Pure. A throttling halves the
 * rate; from the end of its `Retry-After`, it rises linearly to the ceiling.
 * Rates are requests per second of all daemons together.
 */
import type { Instant } from '../../kernel/clock.ts';

/** Throttling lowers the rate no further; below it, deadlines alone hold requests back. */
export const RATE_MIN_PER_S = 0.2;
/** How long a rise from zero to the ceiling takes. */
export const RISE_MS = 300_000;

/** A rate, and the instant from which it rises. */
export interface RateLimit {
  rate: number;
  risesFrom: Instant;
}

export function rateAt({ rate, risesFrom }: RateLimit, ceiling: number, now: Instant): number {
  const risen = rate + (ceiling * Math.max(0, now - risesFrom)) / RISE_MS;
  return Math.min(Math.max(risen, RATE_MIN_PER_S), ceiling);
}

/** After an outage of the service its rate is so much of what it was. */
const SLOW_START = 0.25;

/** The limit after an outage: it rises from there, so that what was due does not come at once. */
export function slowStart(limit: RateLimit, ceiling: number, now: Instant): RateLimit {
  const rate = Math.max(rateAt(limit, ceiling, now) * SLOW_START, RATE_MIN_PER_S);
  return { rate, risesFrom: now };
}

/**
 * The limit after a throttling. Further ones before `risesFrom` count as the same one, because
 * their requests were open together.
 * @param resumeAt the end of `Retry-After`
 */
export function throttle(
  limit: RateLimit,
  ceiling: number,
  now: Instant,
  resumeAt: Instant,
): RateLimit {
  if (limit.risesFrom > now) return { rate: limit.rate, risesFrom: resumeAt };
  return { rate: Math.max(rateAt(limit, ceiling, now) / 2, RATE_MIN_PER_S), risesFrom: resumeAt };
}
