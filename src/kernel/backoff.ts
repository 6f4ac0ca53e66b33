/** Exponential backoff. Pure. */
import type { Random } from './random.ts';

/**
 * The wait before the next attempt, in milliseconds: between half and all of `baseMs · 2^failures`,
 * which is at most `capMs`.
 * @param failures failed attempts so far, from 0
 */
export function backoffMs(failures: number, baseMs: number, capMs: number, random: Random): number {
  const step = Math.min(capMs, baseMs * 2 ** Math.min(failures, 40));
  return Math.round(step * (0.5 + 0.5 * random.unit()));
}
