/**
 * How likely it still is that a lost write was executed although looks do not show it. Pure.
 *
 *     P(executed | absent) = p0 · (1 − V(t)) / (1 − p0 · V(t))           polling study, section 3.6
 *
 * p0 is how often lost answers of this kind turned out to be executed, by Laplace's rule of
 * succession. V(t) is the chance that an executed write shows t after it was sent: 1 − exp(−t / m).
 * The mean delay m is learned from writes that were found executed, on top of a prior that counts
 * as twenty of them and hides one write in 10⁸ for as long as the settings allow it to stay hidden.
 * Times of service interruptions are no part of t.
 */

/** Below this belief absence is taken for proof (with quiescence and two looks that agree). */
export const UNLIKELY = 1e-6;

/** What was learned from lost answers that came to their end by evidence. */
export interface Lesson {
  /** The kind of loss: `reset`, `timeout`, `abandoned` and so on. */
  cause: string;
  executed: number;
  resolved: number;
  /** How many showed at an instant that we know, and the sum of their delays in milliseconds. */
  shown: number;
  delayMs: number;
}

export interface Odds {
  /** By cause: how likely a write is to have been executed before anything was seen. */
  p0: ReadonlyMap<string, number>;
  /** The mean delay until an executed write shows, in milliseconds. */
  meanDelayMs: number;
}

const PRIOR_WEIGHT = 20;
const PRIOR_HIDDEN = 1e-8;
/** Before anything was learned of a cause it is as likely as not. */
const P0_UNLEARNED = 0.5;

/** @param hiddenMs how long a write may stay hidden by the settings: deadline, quiescence, lag */
export function oddsOf(lessons: readonly Lesson[], hiddenMs: number): Odds {
  const prior = hiddenMs / -Math.log(PRIOR_HIDDEN);
  const shown = lessons.reduce((sum, lesson) => sum + lesson.shown, 0);
  const delay = lessons.reduce((sum, lesson) => sum + lesson.delayMs, 0);
  return {
    p0: new Map(lessons.map((l) => [l.cause, (l.executed + 1) / (l.resolved + 2)])),
    meanDelayMs: (PRIOR_WEIGHT * prior + delay) / (PRIOR_WEIGHT + shown),
  };
}

/** @param ageMs from the sending to the start of the look that does not show it */
export function beliefExecuted(odds: Odds, cause: string, ageMs: number): number {
  const p0 = odds.p0.get(cause) ?? P0_UNLEARNED;
  const hidden = Math.exp(-Math.max(0, ageMs) / odds.meanDelayMs);
  return (p0 * hidden) / (1 - p0 + p0 * hidden);
}

export function isUnlikely(belief: number): boolean {
  return belief < UNLIKELY;
}
