/** Intervals between polls. Pure. */
import type { Instant } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';

export interface PollIntervals {
  /** Between polls of a steady target, if the budget allows. */
  steadyMs: number;
  /** The first and the longest interval of a pending target. */
  pendingMinMs: number;
  pendingMaxMs: number;
}

/**
 * The setting, or the time to poll all targets with the steady share of the budget, whichever is
 * longer. It is also the guaranteed maximum age of an observation.
 */
export function steadyIntervalMs(
  intervals: PollIntervals,
  targets: number,
  steadyPerS: number,
): number {
  return Math.max(
    intervals.steadyMs,
    steadyPerS > 0 ? (targets / steadyPerS) * 1000 : intervals.steadyMs,
  );
}

/** The interval is at least this part of the age, so that an old operation costs little. */
const AGE_SHARE = 1 / 120;

/** A quarter of the time since the target became pending, within bounds. */
export function pendingIntervalMs(intervals: PollIntervals, since: Instant, now: Instant): number {
  const age = now - since;
  const interval = Math.min(intervals.pendingMaxMs, Math.max(intervals.pendingMinMs, age / 4));
  return Math.max(interval, age * AGE_SHARE);
}

/** ±5 %, so that targets added together are not polled together for ever. */
export function withJitter(intervalMs: number, random: Random): number {
  return Math.round(intervalMs * (0.95 + 0.1 * random.unit()));
}
