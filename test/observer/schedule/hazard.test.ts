/** How long writes take to show, learned from polls, and the next poll that follows. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  expectedWaits,
  learnWait,
  pendingGapS,
  type Waits,
} from '../../../src/observer/schedule/hazard.ts';

/** What polls every `everyS` teach of writes that show after that time. */
function learnFrom(showsS: number, everyS: number, times = 200): Waits {
  let waits: Waits | undefined;
  for (let i = 0; i < times; i++) {
    const toS = Math.ceil(showsS / everyS) * everyS;
    waits = learnWait(waits, { fromS: toS - everyS, toS, expected: expectedWaits(waits) });
  }
  return waits ?? [];
}

describe('The next poll of a pending target', () => {
  it('waits until writes usually show, and then follows soon', () => {
    const waits = expectedWaits(undefined, learnFrom(30, 0.5));
    expect(pendingGapS(waits, 0, 1)).toBeGreaterThan(18);
    expect(pendingGapS(waits, 0, 1)).toBeLessThan(45);
    expect(pendingGapS(waits, 28, 1)).toBeLessThan(6);
  });

  it('is rarer after the time in which writes usually show', () => {
    const waits = expectedWaits(undefined, learnFrom(5, 0.5));
    expect(pendingGapS(waits, 600, 1)).toBeGreaterThan(5 * pendingGapS(waits, 5, 1));
  });

  it('is earlier for a lower price, and after a finite time at any age', () => {
    const someAge = fc.double({ min: 0, max: 1e6, noNaN: true });
    const somePrice = fc.double({ min: 1e-6, max: 1e4, noNaN: true });
    const waits = expectedWaits(undefined, learnFrom(20, 2));
    fc.assert(
      fc.property(someAge, somePrice, (age, price) => {
        const gap = pendingGapS(waits, age, price);
        expect(gap).toBeGreaterThan(0);
        expect(gap).toBeLessThan(1e6);
        expect(pendingGapS(waits, age, price / 2)).toBeLessThanOrEqual(gap);
      }),
    );
  });

  it('reaches the price in expected seconds of undetected change where the hazard is constant', () => {
    // Beyond the last bucket: e^(g/m) - 1 - g/m = price / m, for a mean m of a day.
    const [mean, price] = [86_400, 1_000];
    const gap = pendingGapS(expectedWaits(), 2 * mean, price);
    const costOf = (seconds: number) => mean * (Math.expm1(seconds / mean) - seconds / mean);
    expect(costOf(gap)).toBeGreaterThanOrEqual(price);
    // The gap before it is a tenth shorter.
    expect(costOf(gap / 1.1)).toBeLessThan(price);
  });
});

describe('What is learned of a wait', () => {
  it('counts as one wait within the bounds that polls give it', () => {
    const someS = fc.double({ min: 0, max: 1e5, noNaN: true });
    fc.assert(
      fc.property(someS, someS, (a, b) => {
        const [fromS, toS] = [Math.min(a, b), Math.max(a, b)];
        const waits = learnWait(undefined, { fromS, toS, expected: expectedWaits() });
        expect(waits.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 6);
      }),
    );
  });

  it('of seldom polls agrees with what other polls have shown', () => {
    const precise = learnFrom(20, 1);
    const expected = expectedWaits(undefined, precise);
    const waits = learnWait(undefined, { fromS: 0, toS: 60, expected });
    const likeliest = (all: Waits) => all.indexOf(Math.max(...all));
    expect(likeliest(waits)).toBe(likeliest(precise));
  });

  it('of a contract outweighs what its kind has shown elsewhere', () => {
    const waits = expectedWaits(learnFrom(300, 10), learnFrom(2, 0.5));
    expect(pendingGapS(waits, 20, 1)).toBeGreaterThan(20);
  });

  it('stays bounded, however much is learned', () => {
    const sum = learnFrom(20, 1, 5_000).reduce((all, one) => all + one, 0);
    expect(sum).toBeGreaterThan(900);
    expect(sum).toBeLessThanOrEqual(1_001);
  });
});
