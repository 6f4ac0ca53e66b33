/** The bounds of the intervals between polls of a target. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maximumAgeMs, pendingIntervalMs } from '../../../src/observer/schedule/intervals.ts';

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

describe('The interval of a pending target', () => {
  it.each([
    ['The pending interval starts at its minimum', 0, 1_000],
    ['The pending interval is its minimum before the start', -5_000, 1_000],
    ['The pending interval is a quarter of the age', 40_000, 10_000],
    ['The pending interval has a maximum', 600_000, 30_000],
    ['The pending interval is a hundred-and-twentieth of the age after a day', 86_400_000, 720_000],
  ])('%s', (_title, age, gap) => {
    expect(pendingIntervalMs(INTERVALS, 1e9, 1e9 + age)).toBe(gap);
  });

  it('The pending interval never shrinks with age', () => {
    fc.assert(
      fc.property(fc.nat(1e9), fc.nat(1e9), (a, b) => {
        const [young, old] = a < b ? [a, b] : [b, a];
        expect(pendingIntervalMs(INTERVALS, 0, young)).toBeLessThanOrEqual(
          pendingIntervalMs(INTERVALS, 0, old),
        );
      }),
    );
  });
});
