/**
 * How many sends again this daemon allows itself: one for ten first sends, ten saved at most, so
 * that a service that is away is not asked three times as often as it was.
 */
const SHARE = 0.1;
const SAVED_MAX = 10;

export interface RetryBudget {
  /** Counts a first send. */
  earn(): void;
  /** Takes one send again, if there is one. */
  take(): boolean;
}

export function makeRetryBudget(): RetryBudget {
  let saved = SAVED_MAX;
  return {
    earn() {
      saved = Math.min(SAVED_MAX, saved + SHARE);
    },
    take() {
      // What floating point leaves of a whole one counts as one.
      if (saved < 1 - 1e-9) return false;
      saved -= 1;
      return true;
    },
  };
}
