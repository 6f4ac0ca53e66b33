/** The price of a poll, and the intervals of steady targets that follow from it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  delayOf,
  pollsPerS,
  priceOf,
  type RateClass,
  steadyIntervalMs,
  withJitter,
} from '../../../src/observer/schedule/price.ts';
import { seededRandom } from '../../harness/seeded-random.ts';

const BOUNDS = { minMs: 500, maxMs: 60_000 };
const EQUAL = 0.01;

/** The interval of targets that change equally often. */
function intervalOf(targets: number, perS: number, bounds = BOUNDS): number {
  const price = priceOf([{ targets, root: EQUAL }], perS, bounds);
  return steadyIntervalMs(EQUAL, price, bounds);
}

const someClasses = fc.array(
  fc.record({
    targets: fc.integer({ min: 1, max: 100_000 }),
    root: fc.double({ min: 1e-4, max: 10, noNaN: true }),
  }),
  { minLength: 1, maxLength: 40 },
);
const somePerS = fc.double({ min: 0.1, max: 500, noNaN: true });
/** Long enough that the bound does not need more than the budget. */
const boundsOf = (classes: readonly RateClass[], perS: number) => {
  const targets = classes.reduce((sum, one) => sum + one.targets, 0);
  return { minMs: 500, maxMs: Math.max(60_000, (targets / perS) * 5_000) };
};

describe('The interval of targets that change equally often', () => {
  it.each([
    ['Three wallets ask for 15 % more than a budget of 5 polls per second', 3, 5, 600 / 1.15],
    ['So do a hundred wallets, so that some are always due', 100, 5, 20_000 / 1.15],
    ['One wallet is polled at the shortest gap', 1, 5, 500],
    ['The longest interval bounds it where the budget does not suffice', 1_000, 5, 60_000],
  ])('%s', (_title, targets, perS, gap) => {
    expect(intervalOf(targets, perS) / gap).toBeGreaterThan(0.93);
    expect(intervalOf(targets, perS) / gap).toBeLessThan(1.07);
  });

  it('A million wallets get an interval of days', () => {
    const days = intervalOf(1e6, 5, { minMs: 500, maxMs: 1e9 }) / 86_400_000;
    expect(days).toBeGreaterThan(1.9);
    expect(days).toBeLessThan(2.1);
  });

  it('Without targets the price is zero', () => {
    expect(priceOf([], 5, BOUNDS)).toBe(0);
  });
});

describe('The price', () => {
  it('A target that changes a hundred times as often is polled ten times as often', () => {
    const classes = [
      { targets: 10, root: 0.1 },
      { targets: 10, root: 0.01 },
    ];
    const bounds = { minMs: 1, maxMs: 1e9 };
    const price = priceOf(classes, 5, bounds);
    const [often, seldom] = [0.1, 0.01].map((root) => steadyIntervalMs(root, price, bounds));
    expect((seldom ?? 0) / (often ?? 1)).toBeCloseTo(10, 6);
  });

  it('All targets together need the budget, or less only where all have the shortest gap', () => {
    fc.assert(
      fc.property(someClasses, somePerS, (classes, perS) => {
        const bounds = boundsOf(classes, perS);
        const needed = pollsPerS(classes, priceOf(classes, perS, bounds), bounds);
        expect(needed).toBeLessThanOrEqual(perS * 1.151);
        const most = pollsPerS(classes, 0, bounds);
        expect(needed).toBeGreaterThanOrEqual(Math.min(most, perS) * 0.999);
      }),
    );
  });

  it('A larger budget never raises the price', () => {
    fc.assert(
      fc.property(someClasses, somePerS, somePerS, (classes, a, b) => {
        const bounds = boundsOf(classes, Math.min(a, b));
        expect(priceOf(classes, Math.max(a, b), bounds)).toBeLessThanOrEqual(
          priceOf(classes, Math.min(a, b), bounds),
        );
      }),
    );
  });

  it('The interval stays within its bounds at every price and with every jitter', () => {
    const someValue = fc.double({ min: 1e-9, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(someValue, someValue, fc.nat(), (root, price, seed) => {
        const gap = withJitter(steadyIntervalMs(root, price, BOUNDS), seededRandom(seed));
        expect(gap).toBeGreaterThanOrEqual(BOUNDS.minMs);
        expect(gap).toBeLessThanOrEqual(BOUNDS.maxMs);
      }),
    );
  });
});

describe('The expected delay of a change', () => {
  const perS = 5;

  it('By unequal rates it is within a tenth of the least possible one', () => {
    const classes = [
      { targets: 300, root: 0.01 },
      { targets: 50, root: 0.1 },
      { targets: 3, root: 0.5 },
    ];
    const bounds = { minMs: 100, maxMs: 900_000 };
    const price = priceOf(classes, perS, bounds);
    const delay = delayOf(classes, { price, perS, budgetPerS: perS }, bounds);
    const eta = (delay?.leastMs ?? 0) / (delay?.expectedMs ?? 0);
    expect(eta).toBeGreaterThan(0.9);
    expect(eta).toBeLessThanOrEqual(1.000001);
  });

  it('Of equal targets it is half their interval, and more where the budget does not suffice', () => {
    const classes = [{ targets: 1_000, root: EQUAL }];
    const price = priceOf(classes, perS, BOUNDS);
    const delay = delayOf(classes, { price, perS, budgetPerS: perS }, BOUNDS);
    expect(delay?.expectedMs).toBeCloseTo(100_000, 0);
    expect(delay?.leastMs).toBeCloseTo(100_000, 0);
  });

  it('It is at least the least possible one, for all targets and budgets', () => {
    fc.assert(
      fc.property(someClasses, somePerS, (classes, budgetPerS) => {
        const bounds = boundsOf(classes, budgetPerS);
        const price = priceOf(classes, budgetPerS, bounds);
        const made = Math.min(pollsPerS(classes, price, bounds), budgetPerS);
        const delay = delayOf(classes, { price, perS: made, budgetPerS }, bounds);
        expect(delay?.leastMs).toBeLessThanOrEqual((delay?.expectedMs ?? 0) * 1.000001);
      }),
    );
  });

  it('Without targets there is none', () => {
    expect(delayOf([], { price: 0, perS, budgetPerS: perS }, BOUNDS)).toBeUndefined();
  });
});
