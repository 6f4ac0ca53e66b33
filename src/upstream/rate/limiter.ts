/**
 * The rate of polls: a ceiling by the setting or by the traffic of apps, and below it a limit by
 * additive increase and multiplicative decrease. Pure. A throttling halves the rate; from the end
 * of its `Retry-After`, it rises linearly to the ceiling. Rates are polls per second of all daemons
 * together.
 */
import type { Instant } from '../../kernel/clock.ts';

/** The ceiling without a setting, unless a share of the traffic of apps is more. */
const CEILING_PER_S = 5;
/** What apps send without being throttled shows what the service bears: polls add so much to it. */
const APP_SHARE = 0.25;

/**
 * @param setting the operator's bound; null: none
 * @param appPerS requests of apps that the service answers without throttling
 */
export function ceilingOf(setting: number | null, appPerS: number): number {
  return setting ?? Math.max(CEILING_PER_S, appPerS * APP_SHARE);
}

/** Throttling lowers the rate no further; below it, deadlines alone hold requests back. */
export const RATE_MIN_PER_S = 0.2;
/** How long a rise from zero to the ceiling takes after a throttling, and otherwise. */
export const RISE_MS = 300_000;
export const FIRST_RISE_MS = 30_000;

/** A rate, the instant from which it rises, and how long it would rise from zero. */
export interface RateLimit {
  rate: number;
  risesFrom: Instant;
  riseMs: number;
}

export function rateAt(limit: RateLimit, ceiling: number, now: Instant): number {
  const { rate, risesFrom, riseMs } = limit;
  const risen = rate + (ceiling * Math.max(0, now - risesFrom)) / riseMs;
  return Math.min(Math.max(risen, RATE_MIN_PER_S), ceiling);
}

/** After an outage of the service its rate is so much of what it was. */
const SLOW_START = 0.25;

/**
 * The limit after an outage: it rises from there, so that what was due does not come at once; no
 * faster than it did, if it has not recovered from a throttling.
 */
export function slowStart(limit: RateLimit, ceiling: number, now: Instant): RateLimit {
  const before = rateAt(limit, ceiling, now);
  const riseMs = before < ceiling ? limit.riseMs : FIRST_RISE_MS;
  return { rate: Math.max(before * SLOW_START, RATE_MIN_PER_S), risesFrom: now, riseMs };
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
  if (limit.risesFrom > now) return { ...limit, risesFrom: resumeAt };
  const rate = Math.max(rateAt(limit, ceiling, now) / 2, RATE_MIN_PER_S);
  return { rate, risesFrom: resumeAt, riseMs: RISE_MS };
}
