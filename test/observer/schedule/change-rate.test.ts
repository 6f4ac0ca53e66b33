/** The change rate of a target, learned from its polls. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ChangeRate,
  changesPerS,
  learnRate,
  PRIOR,
} from '../../../src/observer/schedule/change-rate.ts';
import { seededRandom } from '../../harness/seeded-random.ts';

const someRate = fc.record({
  changes: fc.double({ min: 1e-3, max: 1e6, noNaN: true }),
  seconds: fc.double({ min: 1, max: 1e6, noNaN: true }),
});
const someGap = fc.double({ min: 1e-3, max: 1e6, noNaN: true });

/** What polls of a Poisson process teach. */
function learnFrom(perS: number, gapS: number, polls: number, seed: number): ChangeRate {
  const random = seededRandom(seed);
  const shows = () => random.unit() < -Math.expm1(-perS * gapS);
  return Array.from({ length: polls }, shows).reduce(
    (rate, changed) => learnRate(rate, gapS, changed),
    PRIOR,
  );
}

describe('A change rate', () => {
  it.each([
    ['that is seldom', 1 / 3600, 40, 20_000],
    ['whose changes hide each other between polls', 1 / 60, 60, 5_000],
    ['of several changes a second', 2, 0.5, 40_000],
  ])('%s is learned to a quarter', (_title, perS, gapS, polls) => {
    const learned = changesPerS(learnFrom(perS, gapS, polls, 7));
    expect(learned / perS).toBeGreaterThan(0.8);
    expect(learned / perS).toBeLessThan(1.25);
  });

  it('rises with a poll that shows a change, and falls with one that shows none', () => {
    fc.assert(
      fc.property(someRate, fc.double({ min: 0.1, max: 100, noNaN: true }), (rate, gapS) => {
        const [changed, same] = [learnRate(rate, gapS, true), learnRate(rate, gapS, false)];
        expect(changesPerS(changed)).toBeGreaterThan(changesPerS(same));
      }),
    );
  });

  it('stays a positive finite number', () => {
    fc.assert(
      fc.property(someRate, someGap, fc.boolean(), (rate, gapS, changed) => {
        const { changes, seconds } = learnRate(rate, gapS, changed);
        for (const value of [changes, seconds, changes / seconds]) {
          expect(value).toBeGreaterThan(0);
          expect(Number.isFinite(value)).toBe(true);
        }
      }),
    );
  });

  it('that was learned long ago is forgotten', () => {
    const often = learnFrom(1, 1, 40_000, 3);
    const day = 86_400;
    const later = learnRate(often, 60 * day, false);
    expect(changesPerS(often)).toBeGreaterThan(0.9);
    expect(changesPerS(later)).toBeLessThan(changesPerS(PRIOR));
    expect(later.changes).toBeCloseTo(PRIOR.changes, 0);
  });

  it('is not changed by polls that started at the same instant', () => {
    expect(learnRate(PRIOR, 0, true)).toEqual(PRIOR);
  });
});
