/** How many deliveries are claimed and sent per endpoint, and rate limits. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  inFlightMax,
  rateAllowance,
  rateFreeAt,
  roundRobin,
  shareByGroup,
  shareEvenly,
} from '../../src/webhooks/delivery/limits.ts';

const NOW = Date.UTC(2026, 0, 1);

it.each([
  [8, 0, 1, 8],
  [8, 1, 1, 4],
  [8, 2, 1, 2],
  [8, 3, 1, 1],
  [8, 1_000, 1, 1],
  [8, 0, 2, 4],
  [8, 0, 3, 2],
  [8, 0, 100, 1],
  [1, 0, 1, 1],
])(
  'A cap of %i after %i failures among %i daemons allows %i in flight',
  (cap, failures, n, max) => {
    expect(inFlightMax(cap, failures, n)).toBe(max);
  },
);

it('Shares are even, exceed no capacity and leave nothing that fits', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100), { maxLength: 50 }), fc.nat(400), (capacities, total) => {
      const shares = shareEvenly(capacities, total);
      const sum = (of: number[]) => of.reduce((a, b) => a + b, 0);
      expect(sum(shares)).toBe(Math.min(total, sum(capacities)));
      const unfilled = shares.filter((share, i) => share < (capacities[i] ?? 0));
      shares.forEach((share, i) => {
        expect(share).toBeLessThanOrEqual(capacities[i] ?? 0);
        if (unfilled.length > 0) expect(share).toBeLessThanOrEqual(Math.min(...unfilled) * 2 + 1);
      });
    }),
  );
});

it('Shares of a group exceed neither its room nor a capacity, and leave no room that fits', () => {
  const item = fc.record({ n: fc.nat(20), group: fc.constantFrom('a', 'b', 'c') });
  fc.assert(
    fc.property(fc.array(item), fc.nat(60), (items, room) => {
      const shared = shareByGroup(
        items,
        ({ group }) => group,
        ({ group }) => (group === 'a' ? Number.POSITIVE_INFINITY : room),
      );
      shared.forEach(({ n }, i) => {
        expect(n).toBeLessThanOrEqual(items[i]?.n ?? 0);
      });
      for (const name of ['a', 'b', 'c']) {
        const sum = (of: typeof items) =>
          of.filter(({ group }) => group === name).reduce((all, { n }) => all + n, 0);
        expect(sum(shared)).toBe(name === 'a' ? sum(items) : Math.min(room, sum(items)));
      }
    }),
  );
});

it.each([
  ['', 2, ['a', 'b']],
  ['b', 3, ['c', 'd', 'a']],
  ['d', 1, ['a']],
  ['bb', 1, ['c']],
])('Round-robin after %j takes %i endpoints: %j', (cursor, max, expected) => {
  const ring = ['a', 'b', 'c', 'd'].map((endpointId) => ({ endpointId }));
  expect(roundRobin(ring, cursor, max).map((e) => e.endpointId)).toEqual(expected);
});

it('A rate is exceeded by at most its small burst in any second', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 500 }),
      fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 60 }),
      (rate, gaps) => {
        let now = NOW;
        let rateUsedUntil: number | null = null;
        const sent: number[] = [];
        for (const gap of gaps) {
          now += gap;
          const { allowed, rateUsedUntilAfter } = rateAllowance(rateUsedUntil, rate, now);
          if (allowed === 0) continue;
          rateUsedUntil = rateUsedUntilAfter(allowed);
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

it('rateFreeAt is the first instant at which the rate allows a delivery', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 500 }), fc.nat(5_000), (rate, ahead) => {
      const at = rateFreeAt(NOW + ahead, rate);
      expect(rateAllowance(NOW + ahead, rate, at).allowed).toBeGreaterThanOrEqual(1);
      expect(rateAllowance(NOW + ahead, rate, at - 1).allowed).toBe(0);
    }),
  );
});
