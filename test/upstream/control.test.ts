/** The rate that is learned: doubling, throttling, CUBIC. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BETA,
  beginControl,
  C,
  cubicRate,
  onSuccess,
  onThrottle,
  RATE_MIN_PER_S,
  recoverySeconds,
} from '../../src/upstream/rate/limiter.ts';

const T0 = Date.UTC(2026, 0, 1);
const rates = fc.double({ min: 1, max: 500, noNaN: true });
const begun = (rate: number, ceiling = 1000) => beginControl(undefined, rate, ceiling, T0);

describe('after a throttling at rate r', () => {
  it('the rate is 0.7 r, at once and by the curve', () => {
    fc.assert(
      fc.property(rates, (r) => {
        const control = onThrottle(begun(r), r, T0);
        expect(control.rate).toBeCloseTo(BETA * r, 9);
        expect(cubicRate(r, T0, T0)).toBeCloseTo(BETA * r, 6);
      }),
    );
  });

  it('the curve is back at r after K seconds, and not before', () => {
    fc.assert(
      fc.property(rates, (r) => {
        const k = recoverySeconds(r);
        expect(k).toBeCloseTo(Math.cbrt((r * 0.3) / C), 9);
        expect(cubicRate(r, T0, T0 + k * 1000)).toBeCloseTo(r, 4);
        expect(cubicRate(r, T0, T0 + k * 900)).toBeLessThan(r);
        expect(cubicRate(r, T0, T0 + k * 2000)).toBeCloseTo(r * 1.3, 4);
      }),
    );
  });

  it('the curve never falls', () => {
    const seconds = fc.double({ min: 0, max: 1000, noNaN: true });
    fc.assert(
      fc.property(rates, seconds, seconds, (r, a, b) => {
        const [early, late] = a < b ? [a, b] : [b, a];
        const at = (s: number) => cubicRate(r, T0, T0 + s * 1000);
        expect(at(late)).toBeGreaterThanOrEqual(at(early) - 1e-9);
      }),
    );
  });

  it('what was really sent counts, when it was less than what was allowed', () => {
    expect(onThrottle(begun(100), 10, T0)).toMatchObject({ lastMax: 10, rate: 7 });
  });

  it('recovery begins when the silence ends', () => {
    const end = T0 + 3_600_000;
    const control = onThrottle(begun(10), 10, end);
    expect(onSuccess(control, 10, 1000, end).rate).toBeCloseTo(7, 9);
    const later = end + recoverySeconds(10) * 1000;
    expect(onSuccess(control, 10, 1000, later).rate).toBeCloseTo(10, 6);
  });

  it('the rate rises to no more than twice what was used, nor the ceiling', () => {
    const control = onThrottle(begun(10), 10, T0);
    const late = T0 + 600_000;
    expect(onSuccess(control, 8, 1000, late).rate).toBe(16);
    expect(onSuccess(control, 1, 1000, late).rate).toBe(7);
    expect(onSuccess(control, 400, 20, late).rate).toBe(20);
  });

  it('the rate never falls below its minimum, however often', () => {
    let control = begun(5);
    for (let i = 0; i < 100; i += 1) control = onThrottle(control, 0.001, T0 + i);
    expect(control.rate).toBe(RATE_MIN_PER_S);
  });
});

describe('before the first throttling', () => {
  it('the rate doubles every ten clean seconds up to the ceiling', () => {
    let control = begun(1, 20);
    const seen: number[] = [];
    for (let s = 1; s <= 60; s += 1) {
      control = onSuccess(control, control.rate, 20, T0 + s * 1000);
      if (s % 10 === 0) seen.push(control.rate);
    }
    expect(seen).toEqual([2, 4, 8, 16, 20, 20]);
  });

  it('time alone learns nothing: a day without requests doubles once', () => {
    expect(onSuccess(begun(1), 0, 1000, T0 + 86_400_000).rate).toBe(2);
  });
});

it('what was kept is taken up again, within the ceiling of today', () => {
  const kept = { rate: 40, lastMax: 50, throttledAt: T0 - 1000 };
  expect(beginControl(kept, 1, 100, T0)).toMatchObject(kept);
  expect(beginControl(kept, 1, 5, T0).rate).toBe(5);
});
