/**
 * Promise 9 in virtual time: how long changes remain undetected, against the theoretical bound, for
 * 200 targets of skewed change rates. It prints η = bound / measured.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { printLine } from '../../../src/kernel/log.ts';
import { type Policy, simulate } from './simulation.ts';

const HOUR_S = 3_600;
const figures: string[] = [];
afterAll(() => printLine(figures.join('\n')));

/** η of changes in the hours 8 to 14. */
function eta(policy: Policy, perS: number, seed: number): number {
  const hours = { warmUpS: 8 * HOUR_S, endS: 14 * HOUR_S };
  const { delayS, boundS } = simulate(policy, { seed, targets: 200, perS, ...hours });
  const [mean, least] = [delayS.toFixed(1), boundS.toFixed(1)];
  const value = boundS / delayS;
  figures.push(`${policy}, ${perS}/s: ${mean} s, bound ${least} s, eta ${value.toFixed(3)}`);
  return value;
}

describe.each([
  [1, 2],
  [5, 3],
  [5, 4],
])('With a budget of %i/s and the seed %i', (perS, seed) => {
  it('the mean detection delay is near the bound with known and with learned rates, unlike uniform polls', () => {
    const uniform = eta('uniform', perS, seed);
    expect(eta('known', perS, seed)).toBeGreaterThanOrEqual(0.95);
    const learned = eta('learned', perS, seed);
    expect(learned).toBeGreaterThanOrEqual(0.9);
    expect(learned).toBeGreaterThan(uniform * 1.3);
  });
});
