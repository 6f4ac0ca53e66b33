/** The rules that decide, without clock, network or database. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import {
  foldHealth,
  HEALTHY,
  type Health,
  isOpen,
  type Sign,
} from '../../src/webhooks/delivery/health.ts';
import {
  fromRing,
  inFlightMax,
  nextWindow,
  rateAllowance,
  rateFreeAt,
  shareOut,
} from '../../src/webhooks/delivery/limits.ts';
import { judge } from '../../src/webhooks/delivery/verdict.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';

const { retry, health: policy } = webhookDefaults;
const random = seededRandom(3);
const NOW = Date.UTC(2026, 0, 1);
const DAY = 86_400_000;

describe('a verdict', () => {
  const judged = (status: number | null, tries = 0, retryAfter?: string, queuedAt = NOW) =>
    judge(
      { status, error: status === null ? 'timeout' : null, retryAfter },
      { tries, queuedAt },
      retry,
      NOW,
      random,
    );

  test('never names an instant before the step or before Retry-After', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 599 }),
        fc.integer({ min: 0, max: 9 }),
        fc.option(fc.integer({ min: 0, max: 200_000 }), { nil: undefined }),
        (status, tries, seconds) => {
          const verdict = judged(status, tries, seconds?.toString());
          if (!('dueAt' in verdict)) return;
          const step = retry.scheduleMs[Math.max(1, verdict.tries)] ?? 0;
          expect(verdict.dueAt).toBeGreaterThanOrEqual(NOW + step);
          expect(verdict.dueAt).toBeGreaterThanOrEqual(NOW + Math.min((seconds ?? 0) * 1000, DAY));
          expect(verdict.dueAt).toBeLessThanOrEqual(
            NOW + Math.max(step * (1 + retry.jitter) + 1, Math.min((seconds ?? 0) * 1000, DAY)),
          );
        },
      ),
    );
  });

  test.each([
    [200, 0, 'delivered'],
    [299, 9, 'delivered'],
    [304, 0, 'retry'],
    [null, 0, 'retry'],
    [500, 8, 'retry'],
    [500, 9, 'exhausted'],
    [null, 9, 'exhausted'],
    [410, 0, 'gone'],
    [410, 9, 'gone'],
  ])('of status %j after %i tries is %s', (status, tries, verdict) => {
    expect(judged(status, tries).verdict).toBe(verdict);
  });

  test('of a deferral uses up no try, but ends with the time of the delivery', () => {
    expect(judged(429, 9, '60')).toMatchObject({ verdict: 'retry', tries: 9 });
    expect(judged(503, 9, '60')).toMatchObject({ verdict: 'retry', tries: 9 });
    expect(judged(429, 9).verdict).toBe('exhausted');
    expect(judged(500, 9, '60').verdict).toBe('exhausted');
    expect(judged(429, 0, '60', NOW - retry.giveUpMs).verdict).toBe('exhausted');
  });

  test('of a status whose body broke off is no success', () => {
    const broken = { status: 200, error: 'reset', retryAfter: undefined };
    const { verdict } = judge(broken, { tries: 0, queuedAt: NOW }, retry, NOW, random);
    expect(verdict).toBe('retry');
  });
});

describe('the health of an endpoint', () => {
  const failed = (at: number, extra: Partial<Sign> = {}): Sign => ({
    ...{ startedAt: at, endedAt: at, result: 'failed', holdUntil: null },
    ...extra,
  });
  const fold = (health: Health, ...signs: Sign[]) => foldHealth(health, signs, policy, random);
  const failures = (n: number, from = HEALTHY) =>
    fold(from, ...Array.from({ length: n }, (_, i) => failed(NOW + i))).health;

  test('opens the breaker at the limit and not before', () => {
    expect(isOpen(failures(policy.openAfter - 1), policy)).toBe(false);
    expect(failures(policy.openAfter - 1).holdUntil).toBeNull();
    const open = failures(policy.openAfter);
    expect(isOpen(open, policy)).toBe(true);
    expect(open.holdUntil).toBeGreaterThanOrEqual(NOW + policy.holdBaseMs / 2);
  });

  test('is not made worse by what was under way when the breaker opened', () => {
    const open = failures(policy.openAfter);
    const late = fold(open, failed(NOW), failed(NOW + 1)).health;
    expect(late.consecutiveFailures).toBe(open.consecutiveFailures);
    expect(late.holdUntil).toBe(open.holdUntil);
  });

  test('doubles the hold with each failed probe, up to the longest', () => {
    let health = failures(policy.openAfter);
    const holds: number[] = [];
    for (let i = 0; i < 20; i++) {
      const at = health.holdUntil ?? 0;
      health = fold(health, failed(at)).health;
      holds.push((health.holdUntil ?? 0) - at);
    }
    expect(holds[0]).toBeGreaterThanOrEqual(policy.holdBaseMs);
    expect(Math.max(...holds)).toBeLessThanOrEqual(policy.holdCapMs);
    expect(holds.at(-1)).toBeGreaterThanOrEqual(policy.holdCapMs / 2);
  });

  test('recovers with the first success, and says so only when the breaker was open', () => {
    const success: Sign = { ...failed(NOW + DAY), result: 'delivered' };
    const healed = { ...HEALTHY, lastSuccessAt: NOW + DAY };
    expect(fold(failures(policy.openAfter), success)).toEqual({
      health: healed,
      change: 'recovered',
    });
    expect(fold(failures(2), success)).toEqual({ health: healed, change: undefined });
  });

  test('ends in disabling after days of nothing but failures, or at once when gone', () => {
    const before = failures(3);
    const end = NOW + policy.disableAfterMs;
    expect(fold(before, failed(end - 1)).change).toBeUndefined();
    expect(fold(before, failed(end)).change).toBe('failing');
    const gone: Sign = { ...failed(NOW), result: 'gone' };
    expect(fold(HEALTHY, gone, failed(end)).change).toBe('gone');
    const healed = fold(before, { ...failed(end - 2), result: 'delivered' }, failed(end));
    expect(healed.change).toBeUndefined();
  });

  test('keeps the longest wait that anybody asked for', () => {
    const asked = failed(NOW, { holdUntil: NOW + DAY });
    expect(fold(HEALTHY, asked, failed(NOW + 1)).health.holdUntil).toBe(NOW + DAY);
  });
});

describe('the share of an endpoint', () => {
  test.each([
    [8, 0, 1, 8],
    [8, 1, 1, 4],
    [8, 2, 1, 2],
    [8, 3, 1, 1],
    [8, 1_000, 1, 1],
    [8, 0, 2, 4],
    [8, 0, 3, 2],
    [8, 0, 100, 1],
    [1, 0, 1, 1],
  ])('of cap %i after %i failures among %i daemons is %i at once', (cap, failures, n, max) => {
    expect(inFlightMax(cap, failures, n)).toBe(max);
  });

  test('grows while it is used up and falls back at the first trouble', () => {
    expect(nextWindow({ window: 8, finished: 4, troubled: false }, 8, 64)).toBe(16);
    expect(nextWindow({ window: 64, finished: 64, troubled: false }, 8, 64)).toBe(64);
    expect(nextWindow({ window: 16, finished: 3, troubled: false }, 8, 64)).toBe(16);
    expect(nextWindow({ window: 64, finished: 64, troubled: true }, 8, 64)).toBe(8);
  });

  test('is given out to the last, evenly, and never more than is wanted', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(100), { maxLength: 50 }), fc.nat(400), (rooms, total) => {
        const shares = shareOut(rooms, total);
        const sum = (of: number[]) => of.reduce((a, b) => a + b, 0);
        expect(sum(shares)).toBe(Math.min(total, sum(rooms)));
        const short = shares.filter((share, i) => share < (rooms[i] ?? 0));
        shares.forEach((share, i) => {
          expect(share).toBeLessThanOrEqual(rooms[i] ?? 0);
          // Nobody has much more than one who would have wanted more.
          if (short.length > 0) expect(share).toBeLessThanOrEqual(Math.min(...short) * 2 + 1);
        });
      }),
    );
  });

  test('comes round: the ring goes on after the one served last', () => {
    const ring = ['a', 'b', 'c', 'd'].map((endpointId) => ({ endpointId }));
    const ids = (cursor: string, max: number) =>
      fromRing(ring, cursor, max).map((e) => e.endpointId);
    expect(ids('', 2)).toEqual(['a', 'b']);
    expect(ids('b', 3)).toEqual(['c', 'd', 'a']);
    expect(ids('d', 1)).toEqual(['a']);
    expect(ids('bb', 1)).toEqual(['c']);
  });
});

describe('a rate', () => {
  test('is never exceeded by more than its small burst in any second', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 60 }),
        (rate, gaps) => {
          let now = NOW;
          let paced: number | null = null;
          const sent: number[] = [];
          for (const gap of gaps) {
            now += gap;
            const { allowed, pacedUntilAfter } = rateAllowance(paced, rate, now);
            if (allowed === 0) continue;
            paced = pacedUntilAfter(allowed);
            for (let i = 0; i < allowed; i++) sent.push(now);
          }
          for (const at of sent) {
            const inSecond = sent.filter((other) => other >= at && other < at + 1_000).length;
            expect(inSecond).toBeLessThanOrEqual(rate * 1.1 + 2);
          }
        },
      ),
    );
  });

  test('says when the next may go', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.nat(5_000), (rate, ahead) => {
        const at = rateFreeAt(NOW + ahead, rate);
        expect(rateAllowance(NOW + ahead, rate, at).allowed).toBeGreaterThanOrEqual(1);
        expect(rateAllowance(NOW + ahead, rate, at - 1).allowed).toBe(0);
      }),
    );
  });
});
