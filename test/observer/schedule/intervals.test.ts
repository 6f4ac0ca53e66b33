/** The bounds of the intervals between polls of a target. */
import { describe, expect, it } from 'vitest';
import { maximumAgeMs } from '../../../src/observer/schedule/price.ts';

const INTERVALS = { steadyMs: 60_000, minGapMs: 500, pendingMinMs: 1_000, pendingMaxMs: 30_000 };

describe('The guaranteed maximum age', () => {
  it.each([
    ['The maximum age is the setting while the budget allows', 60, 1, 60_000],
    ['The maximum age is the time that one poll of every target takes', 600, 1, 600_000],
    ['The maximum age is the setting when nothing is observed', 0, 1, 60_000],
    ['The maximum age is the setting when the share is zero', 600, 0, 60_000],
  ])('%s', (_title, targets, perS, age) => {
    expect(maximumAgeMs(INTERVALS, targets, perS)).toBe(age);
  });

  it('The maximum age is the shortest gap where that is longer', () => {
    expect(maximumAgeMs({ ...INTERVALS, minGapMs: 90_000 }, 60, 1)).toBe(90_000);
  });
});
