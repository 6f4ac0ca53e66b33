/** Bounds of the intervals between polls. Pure. */
import type { Instant } from '../../kernel/clock.ts';

export interface PollIntervals {
  /** The guaranteed maximum age of an observation, if the budget allows. */
  steadyMs: number;
  /** The first and the longest interval of a pending target. */
  pendingMinMs: number;
  pendingMaxMs: number;
}

/**
 * The guaranteed maximum age of the observation of a steady target: the setting, or the time to
 * poll all targets with the steady share of the budget, whichever is longer.
 */
export function maximumAgeMs(
  { steadyMs, minGapMs }: PollIntervals & { minGapMs: number },
  targets: number,
  steadyPerS: number,
): number {
  const roundMs = steadyPerS > 0 ? (targets / steadyPerS) * 1000 : 0;
  return Math.max(steadyMs, minGapMs, roundMs);
}

/** The interval is at least this part of the age, so that an old operation costs little. */
const AGE_SHARE = 1 / 120;

/** A quarter of the time since the target became pending, within bounds. */
export function pendingIntervalMs(intervals: PollIntervals, since: Instant, now: Instant): number {
  const age = now - since;
  const interval = Math.min(intervals.pendingMaxMs, Math.max(intervals.pendingMinMs, age / 4));
  return Math.max(interval, age * AGE_SHARE);
}
