import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { pendingIntervalMs, steadyIntervalMs, withJitter } from '../../src/observer/schedule.ts';

const RHYTHM = { steadyMs: 60_000, pendingMinMs: 1_000, pendingMaxMs: 30_000 };

describe('The interval of a steady target', () => {
  it.each([
    ['It is the setting while the budget allows', 60, 1, 60_000],
    ['It is as long as going round takes', 600, 1, 600_000],
    ['It is the setting when nothing is observed', 0, 1, 60_000],
    ['It is the setting when the share is nothing', 600, 0, 60_000],
  ])('%s', (_title, targets, perS, gap) => {
    expect(steadyIntervalMs(RHYTHM, targets, perS)).toBe(gap);
  });

  test('Jitter stays within a twentieth', () => {
    fc.assert(
      fc.property(fc.nat(1e9), fc.nat(), (gap, seed) => {
        const drawn = withJitter(gap, seededRandom(seed));
        expect(Math.abs(drawn - gap)).toBeLessThanOrEqual(gap / 20 + 1);
      }),
    );
  });
});

describe('The interval of a pending target', () => {
  it.each([
    ['At first it is the least', 0, 1_000],
    ['Before it began it is the least', -5_000, 1_000],
    ['It is a quarter of the age', 40_000, 10_000],
    ['It is bounded', 600_000, 30_000],
    ['After a day it is a hundred-and-twentieth of the age', 86_400_000, 720_000],
  ])('%s', (_title, age, gap) => {
    expect(pendingIntervalMs(RHYTHM, 1e9, 1e9 + age)).toBe(gap);
  });

  test('It never shrinks as something grows old', () => {
    fc.assert(
      fc.property(fc.nat(1e9), fc.nat(1e9), (a, b) => {
        const [young, old] = a < b ? [a, b] : [b, a];
        expect(pendingIntervalMs(RHYTHM, 0, young)).toBeLessThanOrEqual(
          pendingIntervalMs(RHYTHM, 0, old),
        );
      }),
    );
  });
});
