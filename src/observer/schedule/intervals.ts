/** Bounds of the intervals between polls. Pure. */

export interface PollIntervals {
  /** The guaranteed maximum age of an observation, if the budget allows. */
  steadyMs: number;
  /** The shortest and the longest interval of a pending target. */
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
