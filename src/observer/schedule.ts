/**
 * When to look next. Pure arithmetic: a steady object gets its fair share of the budget, a pending
 * one a gap that grows with its age, a failing one backs off. Instants are Postgres time, gaps
 * milliseconds.
 */

import type { Instant } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';

export interface Rhythm {
  /** The gap between looks at a steady object, if the budget allows. */
  steadyMs: number;
  /** The first gap of something pending, and the longest. */
  pendingMinMs: number;
  pendingMaxMs: number;
}

/**
 * The gap of steady looks: the setting, or as long as it takes to go round all objects within the
 * steady share of the budget, whichever is larger. That is also the guaranteed age of a look.
 */
export function steadyGapMs(rhythm: Rhythm, targets: number, steadyPerS: number): number {
  return Math.max(
    rhythm.steadyMs,
    steadyPerS > 0 ? (targets / steadyPerS) * 1000 : rhythm.steadyMs,
  );
}

/** What stays pending for ever costs less and less: the gap is at least this part of its age. */
const AGE_SHARE = 1 / 120;

/** The gap for something that became pending at `since`: a quarter of its age, within bounds. */
export function pendingGapMs(rhythm: Rhythm, since: Instant, now: Instant): number {
  const age = now - since;
  const gap = Math.min(rhythm.pendingMaxMs, Math.max(rhythm.pendingMinMs, age / 4));
  return Math.max(gap, age * AGE_SHARE);
}

/** Up to a twentieth more or less, so that objects added together do not stay together. */
export function jittered(gapMs: number, random: Random): number {
  return Math.round(gapMs * (0.95 + 0.1 * random.unit()));
}
