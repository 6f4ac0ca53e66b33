/** When to try again: schedule arithmetic, without a clock and without a timer. */
import type { Random } from './random.ts';

/**
 * The wait before the next try, in milliseconds: `baseMs · 2^failures`, at most `capMs`, with full
 * jitter in its upper half so that the wait is never shorter than half the step.
 * @param failures failed tries so far, from 0
 */
export function backoffMs(failures: number, baseMs: number, capMs: number, random: Random): number {
  const step = Math.min(capMs, baseMs * 2 ** Math.min(failures, 40));
  return Math.round(step * (0.5 + 0.5 * random.unit()));
}
