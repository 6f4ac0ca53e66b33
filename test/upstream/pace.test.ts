/** The bucket and the turns: what may go, and who goes first. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeTurns } from '../../src/upstream/rate/priority-queue.ts';
import { BURST, makePace } from '../../src/upstream/rate/token-bucket.ts';
import type { Priority } from '../../src/upstream/types.ts';

const T0 = Date.UTC(2026, 0, 1);

/** Asks every millisecond, takes whatever is free, and answers the instants of looks. */
function run(perS: number, seconds: number, appEveryMs = Number.POSITIVE_INFINITY): number[] {
  const pace = makePace(perS, 0.2, T0);
  const observations: number[] = [];
  for (let ms = 0; ms < seconds * 1000; ms += 1) {
    if (ms > 0 && ms % appEveryMs === 0) pace.charge(T0 + ms);
    for (let free = pace.free(T0 + ms); free > 0; free -= 1) {
      pace.take(T0 + ms);
      observations.push(ms);
    }
  }
  return observations;
}

describe('the bucket', () => {
  it.each([1, 3, 5, 40])('lets %i per second through, two at once at most', (perS) => {
    const observations = run(perS, 20);
    expect(observations.length).toBeGreaterThanOrEqual(perS * 20 + BURST - 1);
    for (const [i, at] of observations.entries()) {
      const within = observations.slice(i).filter((other) => other < at + 1000).length;
      expect(within).toBeLessThanOrEqual(perS + BURST);
    }
  });

  it('does not gather what was not used', () => {
    const pace = makePace(5, 0.2, T0);
    expect(pace.free(T0 + 3_600_000)).toBe(BURST);
  });

  it('subtracts app traffic', () => {
    // 5 a second, of which apps take 2.
    const observations = run(5, 60, 500);
    expect(observations.length).toBeGreaterThanOrEqual(178);
    expect(observations.length).toBeLessThanOrEqual(184);
  });

  it('keeps a fifth for looks under any app traffic', () => {
    const observations = run(5, 60, 1);
    expect(observations.length).toBeGreaterThanOrEqual(58);
    expect(observations.length).toBeLessThanOrEqual(62);
  });

  it('forgets a burst of app traffic after ten seconds', () => {
    const pace = makePace(5, 0.2, T0);
    for (let i = 0; i < 10_000; i += 1) pace.charge(T0);
    expect(pace.nextAt(T0)).toBeLessThanOrEqual(T0);
    pace.take(T0);
    expect(pace.nextAt(T0)).toBe(T0 + 1000);
    expect(pace.free(T0 + 10_400)).toBe(2);
  });

  it('says when the next look may go, and then it may', () => {
    const gap = fc.integer({ min: 0, max: 3000 });
    fc.assert(
      fc.property(fc.double({ min: 0.2, max: 50, noNaN: true }), fc.array(gap), (perS, gaps) => {
        const pace = makePace(perS, 0.2, T0);
        let now = T0;
        for (const ms of gaps) {
          now += ms;
          const next = Math.ceil(pace.nextAt(now));
          expect(pace.free(now) > 0).toBe(pace.nextAt(now) <= now);
          expect(pace.free(next)).toBeGreaterThan(0);
          now = next;
          if (ms % 3 === 0) pace.charge(now);
          else pace.take(now);
        }
      }),
    );
  });

  it('does not run backwards with the clock', () => {
    const pace = makePace(1, 0.2, T0);
    pace.take(T0);
    pace.take(T0);
    expect(pace.free(T0 - 60_000)).toBe(0);
    expect(pace.free(T0 + 1000)).toBe(1);
  });
});

describe('the turns', () => {
  const waiting = (counts: Record<Priority, number>) => {
    const turns = makeTurns<string>(0.2, 1000);
    for (const priority of ['steady', 'pending', 'unknown'] as const)
      for (let i = 0; i < counts[priority]; i += 1) turns.add(priority, `${priority} ${i}`);
    return turns;
  };

  it('go to unknown outcomes, then pending operations, then steady objects', () => {
    const turns = waiting({ unknown: 1, pending: 2, steady: 0 });
    turns.add('steady', 'steady 0');
    const order = Array.from({ length: 5 }, () => turns.next());
    expect(order).toEqual(['unknown 0', 'pending 0', 'pending 1', 'steady 0', undefined]);
  });

  it('keep a fifth for steady objects, under any pressure', () => {
    const turns = waiting({ unknown: 500, pending: 300, steady: 200 });
    const order = Array.from({ length: 500 }, () => turns.next());
    expect(order.filter((name) => name?.startsWith('steady'))).toHaveLength(100);
    for (let i = 0; i + 5 <= order.length; i += 5)
      expect(order.slice(i, i + 5).some((name) => name?.startsWith('steady'))).toBe(true);
  });

  it('are first come, first served within a priority', () => {
    const turns = waiting({ unknown: 0, pending: 3, steady: 0 });
    expect([turns.next(), turns.next(), turns.next()]).toEqual([
      'pending 0',
      'pending 1',
      'pending 2',
    ]);
  });

  it('are refused when the queue is full', () => {
    const turns = makeTurns<string>(0.2, 2);
    expect([
      turns.add('steady', 'a'),
      turns.add('unknown', 'b'),
      turns.add('unknown', 'c'),
    ]).toEqual([true, true, false]);
  });
});
