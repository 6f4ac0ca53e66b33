/** The rules of the rate: halving and linear rise, pacing, and the order of waiting polls. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RATE_MIN_PER_S, RISE_MS, rateAt, throttle } from '../../src/upstream/rate/limiter.ts';
import { makePriorityQueue } from '../../src/upstream/rate/priority-queue.ts';
import { burstOf, makeTokenBucket } from '../../src/upstream/rate/token-bucket.ts';

const T0 = Date.UTC(2026, 0, 1);

describe('The rate of polls', () => {
  const at = (rate: number, risesFrom = T0) => ({ rate, risesFrom });

  it('is half of what it was after a throttling', () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 500, noNaN: true }), (rate) => {
        const halved = throttle(at(rate), 500, T0, T0);
        expect(rateAt(halved, 500, T0)).toBe(rate / 2);
      }),
    );
  });

  it('rises linearly, from zero to its ceiling in five minutes, and never beyond', () => {
    const risen = [0, 1, 2, 3, 4, 5, 600].map((min) => rateAt(at(20), 100, T0 + min * 60_000));
    expect(risen).toEqual([20, 40, 60, 80, 100, 100, 100]);
    expect(RISE_MS).toBe(300_000);
  });

  it('rises only from the end of the silence that the service asked for', () => {
    const end = T0 + 3_600_000;
    const halved = throttle(at(10), 100, T0, end);
    expect(rateAt(halved, 100, end)).toBe(5);
    expect(rateAt(halved, 100, end + 3000)).toBe(6);
  });

  it('is lowered once by all throttlings of one silence', () => {
    const once = throttle(at(10), 100, T0, T0 + 1000);
    expect(throttle(once, 100, T0 + 500, T0 + 2000)).toEqual(at(5, T0 + 2000));
    expect(throttle(once, 100, T0 + 1000, T0 + 2000)).toEqual(at(2.5, T0 + 2000));
  });

  it('does not fall below its minimum, nor rise above a lower ceiling', () => {
    let limit = at(5);
    for (let i = 0; i < 100; i += 1) limit = throttle(limit, 5, T0 + i, T0 + i);
    expect(rateAt(limit, 5, T0 + 99)).toBe(RATE_MIN_PER_S);
    expect(rateAt(at(40), 5, T0)).toBe(5);
  });
});

describe('The token bucket', () => {
  /** Takes whatever is free in every millisecond, and returns the times of polls. */
  function run(perS: number, seconds: number, appEveryMs = Number.POSITIVE_INFINITY): number[] {
    const bucket = makeTokenBucket(() => perS, 0.2, T0);
    const polls: number[] = [];
    for (let ms = 0; ms < seconds * 1000; ms += 1) {
      if (ms > 0 && ms % appEveryMs === 0) bucket.charge(T0 + ms);
      for (let free = bucket.free(T0 + ms); free > 0; free -= 1) {
        bucket.take(T0 + ms);
        polls.push(ms);
      }
    }
    return polls;
  }

  it.each([
    [1, 2],
    [5, 2],
    [40, 2],
    [200, 10],
  ])('admits %i polls in any second, at most %i at once', (perS, burst) => {
    const polls = run(perS, 20);
    expect(burstOf(perS)).toBe(burst);
    expect(polls).toHaveLength(perS * 20);
    for (const [i, at] of polls.entries()) {
      const within = polls.slice(i).filter((other) => other < at + 1000).length;
      expect(within).toBeLessThanOrEqual(perS);
      expect(polls.filter((other) => other === at).length).toBeLessThanOrEqual(burst);
    }
  });

  it('rounds the polls of a second up, so that a low rate is reached', () => {
    expect(run(2.5, 20).length).toBeGreaterThanOrEqual(50);
    expect(run(0.2, 20).length).toBeGreaterThanOrEqual(4);
  });

  it('accumulates no more than a burst while unused', () => {
    expect(makeTokenBucket(() => 5, 0.2, T0).free(T0 + 3_600_000)).toBe(burstOf(5));
  });

  it.each([
    ['subtracts app traffic of 2 per second from 5', 500, 178, 184],
    ['keeps a fifth for polls under any app traffic', 1, 58, 62],
  ])('%s', (_title, appEveryMs, least, most) => {
    const polls = run(5, 60, appEveryMs).length;
    expect(polls).toBeGreaterThanOrEqual(least);
    expect(polls).toBeLessThanOrEqual(most);
  });

  it('forgets a burst of app traffic after ten seconds', () => {
    const bucket = makeTokenBucket(() => 5, 0.2, T0);
    for (let i = 0; i < 10_000; i += 1) bucket.charge(T0);
    expect(bucket.nextAt(T0)).toBeLessThanOrEqual(T0);
    bucket.take(T0);
    expect(bucket.nextAt(T0)).toBe(T0 + 1000);
    expect(bucket.free(T0 + 10_400)).toBe(2);
  });

  it('announces when the next poll may start', () => {
    const gap = fc.integer({ min: 0, max: 3000 });
    fc.assert(
      fc.property(fc.double({ min: 0.2, max: 50, noNaN: true }), fc.array(gap), (perS, gaps) => {
        const bucket = makeTokenBucket(() => perS, 0.2, T0);
        let now = T0;
        for (const ms of gaps) {
          now += ms;
          const next = Math.ceil(bucket.nextAt(now));
          expect(bucket.free(now) > 0).toBe(bucket.nextAt(now) <= now);
          expect(bucket.free(next)).toBeGreaterThan(0);
          now = next;
          if (ms % 3 === 0) bucket.charge(now);
          else bucket.take(now);
        }
      }),
    );
  });

  it('gains nothing from a clock that runs backwards', () => {
    const bucket = makeTokenBucket(() => 1, 0.2, T0);
    bucket.take(T0);
    bucket.take(T0);
    expect(bucket.free(T0 - 60_000)).toBe(0);
    expect(bucket.free(T0 + 1000)).toBe(1);
  });
});

it('The priority queue keeps a fifth of the slots for steady polls under any pressure', () => {
  const queue = makePriorityQueue<string>(0.2, 1000);
  for (const [priority, count] of [
    ['unknown', 500],
    ['pending', 300],
    ['steady', 200],
  ] as const)
    for (let i = 0; i < count; i += 1) queue.add(priority, `${priority} ${i}`);
  const order = Array.from({ length: 500 }, () => queue.next()?.split(' ')[0]);
  expect(order.filter((priority) => priority === 'steady')).toHaveLength(100);
  for (let i = 0; i + 5 <= order.length; i += 5) expect(order.slice(i, i + 5)).toContain('steady');
});
