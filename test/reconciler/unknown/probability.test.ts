import { describe, expect, it } from 'vitest';
import {
  estimatesFrom,
  isUnlikely,
  probabilityExecuted,
  type ResolutionCount,
} from '../../../src/reconciler/unknown/probability.ts';

const HIDDEN = 31_000;
const counted = (given: Partial<ResolutionCount>): ResolutionCount => ({
  ...{ cause: 'reset', executed: 0, resolved: 0, shown: 0, delayMs: 0 },
  ...given,
});

describe('The probability that a write which does not show was executed', () => {
  const none = estimatesFrom([], HIDDEN);
  it.each([
    ['It is one half at the send', none, 0, 0.5],
    ['It is 1e-8 when the write must show by the settings', none, HIDDEN, 1e-8],
    ['It is 1e-4 halfway', none, HIDDEN / 2, 1e-4],
    [
      'It is higher where most were executed',
      estimatesFrom([counted({ executed: 98, resolved: 98 })], HIDDEN),
      HIDDEN,
      9.9e-7,
    ],
    [
      'It is lower where none was',
      estimatesFrom([counted({ resolved: 98 })], HIDDEN),
      HIDDEN,
      1.01e-10,
    ],
    [
      'It is the prior for another cause',
      estimatesFrom([counted({ cause: 'timeout', executed: 98, resolved: 98 })], HIDDEN),
      HIDDEN,
      1e-8,
    ],
  ])('%s', (_title, estimates, ageMs, probability) => {
    const found = probabilityExecuted(estimates, 'reset', ageMs);
    expect(Math.abs(found / probability - 1)).toBeLessThan(0.02);
  });

  it('Writes that showed late lengthen the wait', () => {
    const slow = estimatesFrom(
      [counted({ executed: 40, resolved: 80, shown: 40, delayMs: 400_000 })],
      HIDDEN,
    );
    expect(slow.meanDelayMs).toBeGreaterThan(7_000);
    expect(isUnlikely(probabilityExecuted(slow, 'reset', HIDDEN))).toBe(false);
    expect(isUnlikely(probabilityExecuted(slow, 'reset', 120_000))).toBe(true);
  });
});
