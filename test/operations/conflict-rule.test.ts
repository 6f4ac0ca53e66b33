/** When a new write may be sent beside open ones: checked by brute force over all subsets. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  canTellApart,
  conflictsOf,
  OPEN_MAX,
  type OpenWrite,
} from '../../src/operations/intake/conflicts.ts';

/** Whether two sets of executed writes, one with this and one without, give the same sum. */
function canBeConfused(own: bigint, others: readonly bigint[]): boolean {
  const sums = [...Array(2 ** others.length).keys()].map((mask) =>
    others.reduce((sum, amount, i) => (mask & (1 << i) ? sum + amount : sum), 0n),
  );
  return own !== 0n && sums.some((withOwn) => sums.some((without) => withOwn + own === without));
}

const amount = fc.bigInt({ min: -9n, max: 9n });
const wallet = fc.constantFrom('a', 'b', 'c');
const write = fc
  .record({
    effects: fc.uniqueArray(fc.tuple(wallet, amount), { maxLength: 2, selector: ([key]) => key }),
    conflictKey: fc.option(fc.constantFrom('t', 'u'), { nil: undefined }),
  })
  .map(({ effects, conflictKey }) => ({ effects: new Map(effects), conflictKey }));

it('An amount can be told apart exactly when no two subsets of open amounts differ by it', () => {
  fc.assert(
    fc.property(amount, fc.array(amount, { maxLength: 6 }), (own, others) => {
      expect(canTellApart(own, others)).toBe(!canBeConfused(own, others));
    }),
    { numRuns: 1_000 },
  );
});

it('An amount is told apart beside twelve open ones at most', () => {
  const powers = Array.from({ length: OPEN_MAX + 1 }, (_, i) => 2n ** BigInt(i + 1));
  expect(canTellApart(1n, powers.slice(0, OPEN_MAX))).toBe(true);
  expect(canTellApart(1n, powers)).toBe(false);
});

it('A write conflicts when none of its wallets tells it apart, and names only writes that share one', () => {
  fc.assert(
    fc.property(write, fc.array(write, { maxLength: 5 }), (own, others) => {
      const open: OpenWrite[] = others.map((other, i) => ({ ...other, id: `op_${i}` }));
      const wallets = [...own.effects];
      const isConfused = wallets.every(([key, effect]) => {
        const amounts = open.map(({ effects }) => effects.get(key) ?? 0n);
        return canBeConfused(effect, amounts);
      });
      const confused = wallets.length > 0 && isConfused;
      const sameKey = open.filter(
        ({ conflictKey }) => conflictKey !== undefined && conflictKey === own.conflictKey,
      );
      const found = conflictsOf(own, open);
      expect(found.length > 0).toBe(confused || sameKey.length > 0);
      expect(new Set(found).size).toBe(found.length);
      for (const { id } of sameKey) expect(found).toContain(id);
      for (const id of found) {
        const other = open.find((one) => one.id === id);
        const shares = [...own.effects.keys()].some((key) => other?.effects.get(key));
        expect(shares || other?.conflictKey === own.conflictKey).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});
