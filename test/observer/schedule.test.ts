/** The intervals between polls of a target. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pendingIntervalMs, steadyIntervalMs, withJitter } from '../../src/observer/schedule.ts';
import { seededRandom } from '../harness/seeded-random.ts';

const RHYTHM = { steadyMs: 60_000, pendingMinMs: 1_000, pendingMaxMs: 30_000 };

describe('The interval of a steady target', () => {
  it.each([
    ['The steady interval is the setting while the budget allows', 60, 1, 60_000],
    ['The steady interval is as long as one poll of every target takes', 600, 1, 600_000],
    ['The steady interval is the setting when nothing is observed', 0, 1, 60_000],
    ['The steady interval is the setting when the share is zero', 600, 0, 60_000],
  ])('%s', (_title, targets, perS, gap) => {
    expect(steadyIntervalMs(RHYTHM, targets, perS)).toBe(gap);
  });

  it('Jitter changes an interval by a twentieth at most', () => {
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
    ['The pending interval starts at its minimum', 0, 1_000],
    ['The pending interval is its minimum before the start', -5_000, 1_000],
    ['The pending interval is a quarter of the age', 40_000, 10_000],
    ['The pending interval has a maximum', 600_000, 30_000],
    ['The pending interval is a hundred-and-twentieth of the age after a day', 86_400_000, 720_000],
  ])('%s', (_title, age, gap) => {
    expect(pendingIntervalMs(RHYTHM, 1e9, 1e9 + age)).toBe(gap);
  });

  it('The pending interval never shrinks with age', () => {
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
