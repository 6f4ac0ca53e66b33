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

describe('How likely an absent write was executed', () => {
  const none = estimatesFrom([], HIDDEN);
  it.each([
    ['As likely as not when nothing was seen yet', none, 0, 0.5],
    ['Hardly when it had to show by the settings', none, HIDDEN, 1e-8],
    ['In between halfway', none, HIDDEN / 2, 1e-4],
    [
      'More likely where most were executed',
      estimatesFrom([counted({ executed: 98, resolved: 98 })], HIDDEN),
      HIDDEN,
      9.9e-7,
    ],
    [
      'Less likely where none was',
      estimatesFrom([counted({ resolved: 98 })], HIDDEN),
      HIDDEN,
      1.01e-10,
    ],
    [
      'As by the prior for another cause',
      estimatesFrom([counted({ cause: 'timeout', executed: 98, resolved: 98 })], HIDDEN),
      HIDDEN,
      1e-8,
    ],
  ])('%s', (_title, estimates, ageMs, belief) => {
    const found = probabilityExecuted(estimates, 'reset', ageMs);
    expect(Math.abs(found / belief - 1)).toBeLessThan(0.02);
  });

  it('Slow writes teach to wait longer', () => {
    const slow = estimatesFrom(
      [counted({ executed: 40, resolved: 80, shown: 40, delayMs: 400_000 })],
      HIDDEN,
    );
    expect(slow.meanDelayMs).toBeGreaterThan(7_000);
    expect(isUnlikely(probabilityExecuted(slow, 'reset', HIDDEN))).toBe(false);
    expect(isUnlikely(probabilityExecuted(slow, 'reset', 120_000))).toBe(true);
  });
});
