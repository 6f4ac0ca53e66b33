/**
 * The probability that an unknown operation was executed although observations do not show it.
 * Pure.
 *
 *     P(executed | absent) = p0 · (1 − V(t)) / (1 − p0 · V(t))           polling study, section 3.6
 *
 * p0 is the share of unknown operations of this cause that were executed, by Laplace's rule of
 * succession. V(t) = 1 − exp(−t / m) is the probability that an executed write shows within t after
 * its send. The mean delay m is estimated from operations found executed, with a prior that counts
 * as twenty of them and leaves one write in 10⁸ hidden for as long as the settings allow. t
 * excludes
 * the time before the service became available again.
 */

/** Below it absence counts as evidence, together with quiescence and two observations. */
const UNLIKELY = 1e-6;

/** Unknown operations of one cause that were resolved by evidence. */
export interface ResolutionCount {
  /** `reset`, `timeout`, `abandoned` and so on. */
  cause: string;
  executed: number;
  resolved: number;
  /** How many showed after a known delay, and the sum of these delays in milliseconds. */
  shown: number;
  delayMs: number;
}

export interface Estimates {
  /** By cause: the probability of execution before any observation. */
  p0: ReadonlyMap<string, number>;
  /** The mean delay until an executed write shows, in milliseconds. */
  meanDelayMs: number;
}

const PRIOR_WEIGHT = 20;
const PRIOR_HIDDEN = 1e-8;
const P0_PRIOR = 0.5;

/** @param hiddenMs how long a write may stay hidden by the settings: deadline, quiescence, lag */
export function estimatesFrom(counts: readonly ResolutionCount[], hiddenMs: number): Estimates {
  const prior = hiddenMs / -Math.log(PRIOR_HIDDEN);
  const shown = counts.reduce((sum, counted) => sum + counted.shown, 0);
  const delay = counts.reduce((sum, counted) => sum + counted.delayMs, 0);
  return {
    p0: new Map(counts.map((l) => [l.cause, (l.executed + 1) / (l.resolved + 2)])),
    meanDelayMs: (PRIOR_WEIGHT * prior + delay) / (PRIOR_WEIGHT + shown),
  };
}

/** @param ageMs from the send to the start of the observation that does not show it */
export function probabilityExecuted(estimates: Estimates, cause: string, ageMs: number): number {
  const p0 = estimates.p0.get(cause) ?? P0_PRIOR;
  const hidden = Math.exp(-Math.max(0, ageMs) / estimates.meanDelayMs);
  return (p0 * hidden) / (1 - p0 + p0 * hidden);
}

export function isUnlikely(probability: number): boolean {
  return probability < UNLIKELY;
}
