/** The rules of the rate: halving and linear rise, pacing, and the order of waiting polls. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ceilingOf,
  FIRST_RISE_MS,
  RATE_MIN_PER_S,
  RISE_MS,
  rateAt,
  slowStart,
  throttle,
} from '../../src/upstream/rate/limiter.ts';
import { makePriorityQueue } from '../../src/upstream/rate/priority-queue.ts';
import { burstOf, makeTokenBucket } from '../../src/upstream/rate/token-bucket.ts';

const T0 = Date.UTC(2026, 0, 1);

describe('The rate of polls', () => {
  const at = (rate: number, risesFrom = T0, riseMs = RISE_MS) => ({ rate, risesFrom, riseMs });

  it.each([
    ['is five a second without traffic of apps', null, 0, 5],
    ['is five a second while a fourth of the traffic is less', null, 20, 5],
    ['is a fourth of the traffic of apps when that is more', null, 40, 10],
    ['is never above a setting, however much apps send', 5, 400, 5],
    ['is a setting below five', 0.5, 400, 0.5],
    ['is a setting above the share of apps', 100, 40, 100],
  ])('has a ceiling that %s', (_title, setting, appPerS, ceiling) => {
    expect(ceilingOf(setting, appPerS)).toBe(ceiling);
  });

  it('rises to any ceiling within half a minute while nothing was throttled', () => {
    const first = at(5, T0, FIRST_RISE_MS);
    expect([0, 15, 28.5].map((s) => rateAt(first, 100, T0 + s * 1_000))).toEqual([5, 55, 100]);
    expect(FIRST_RISE_MS).toBe(30_000);
  });

  it('after an outage is a fourth, and rises as fast as before it', () => {
    expect(slowStart(at(100, T0, FIRST_RISE_MS), 100, T0)).toEqual(at(25, T0, FIRST_RISE_MS));
    expect(slowStart(at(40), 100, T0)).toEqual(at(10));
    // It had recovered from its throttling.
    expect(slowStart(at(100), 100, T0)).toEqual(at(25, T0, FIRST_RISE_MS));
  });

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
  /** Takes all that is free in every millisecond, and returns the times of polls. */
  function run(perS: number, seconds: number): number[] {
    const bucket = makeTokenBucket(() => perS, T0);
    const polls: number[] = [];
    for (let ms = 0; ms < seconds * 1000; ms += 1) {
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
    expect(makeTokenBucket(() => 5, T0).free(T0 + 3_600_000)).toBe(burstOf(5));
  });

  it('takes a second request of a poll from the polls that follow', () => {
    const bucket = makeTokenBucket(() => 5, T0);
    for (let i = 0; i < 4; i += 1) bucket.take(T0);
    expect(bucket.free(T0 + 500)).toBe(0);
    expect(bucket.nextAt(T0 + 500)).toBe(T0 + 600);
  });

  it('announces when the next poll may start', () => {
    const gap = fc.integer({ min: 0, max: 3000 });
    fc.assert(
      fc.property(fc.double({ min: 0.2, max: 50, noNaN: true }), fc.array(gap), (perS, gaps) => {
        const bucket = makeTokenBucket(() => perS, T0);
        let now = T0;
        for (const ms of gaps) {
          now += ms;
          const next = Math.ceil(bucket.nextAt(now));
          expect(bucket.free(now) > 0).toBe(bucket.nextAt(now) <= now);
          expect(bucket.free(next)).toBeGreaterThan(0);
          now = next;
          bucket.take(now);
        }
      }),
    );
  });

  it('gains nothing from a clock that runs backwards', () => {
    const bucket = makeTokenBucket(() => 1, T0);
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
