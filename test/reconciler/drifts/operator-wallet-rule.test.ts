/** The rule that recognises the wallet of an operator by its drifts. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sumOf } from '../../../src/kernel/amounts.ts';
import { must } from '../../../src/kernel/errors.ts';
import {
  type DriftOfWallet,
  type OperatorGive,
  operatorOf,
} from '../../../src/reconciler/drifts/operator-wallet.ts';

/** A drift whose window ends then, ten seconds long. */
const drift = (end: number, amount: bigint | null, windowFrom: number | null = end - 10) => ({
  id: `d${end}`,
  amount,
  windowFrom,
  windowTo: end,
});
/** A give that took effect then, or up to a second later. */
const give = (from: number, amount: bigint, operatorNo = '1') => {
  return { id: `${operatorNo}@${from}`, operatorNo, amount, from, to: from + 1 };
};
/** Three drifts of 5, 7 and 5 tokens. */
const DRIFTS = [drift(10, -5n), drift(30, -7n), drift(50, -5n)];
const GIVES = [give(5, 5n), give(25, 7n), give(45, 5n)];
const EACH = { d10: ['1@5'], d30: ['1@25'], d50: ['1@45'] };
const ofTwo = GIVES.map(({ from, amount }) => give(from, amount, '2'));

it.each<[string, DriftOfWallet[], OperatorGive[], Record<string, string[]> | undefined]>([
  ['recognised when three drifts equal the gives of their windows', DRIFTS, GIVES, EACH],
  [
    'not recognised when only two drifts equal the gives of their windows',
    DRIFTS.slice(1),
    GIVES.slice(1),
    undefined,
  ],
  [
    'not recognised when a drift has another amount',
    [drift(10, -6n), ...DRIFTS.slice(1)],
    GIVES,
    undefined,
  ],
  [
    'recognised when a fourth drift has another amount',
    [...DRIFTS, drift(70, -9n)],
    [...GIVES, give(65, 8n)],
    EACH,
  ],
  [
    'recognised when one more drift is a change that came in',
    [...DRIFTS, drift(40, 900n)],
    GIVES,
    EACH,
  ],
  [
    'not recognised when all drifts are changes that came in',
    [10, 30, 50].map((end) => drift(end, 5n)),
    GIVES,
    undefined,
  ],
  [
    'not recognised when a give between the drifts left the balance as it was',
    DRIFTS,
    [...GIVES, give(35, 5n)],
    undefined,
  ],
  [
    'recognised when a give before the first drift left the balance as it was',
    DRIFTS,
    [give(-9, 5n), ...GIVES],
    EACH,
  ],
  [
    'recognised when a give after the last drift does not show yet',
    DRIFTS,
    [...GIVES, give(55, 5n)],
    EACH,
  ],
  [
    'recognised when a give of another operator is between the drifts',
    DRIFTS,
    [...GIVES, give(35, 5n, '2')],
    EACH,
  ],
  ['not recognised when another operator fits as well', DRIFTS, [...GIVES, ...ofTwo], undefined],
  [
    'recognised when another operator fits, but this one does not',
    DRIFTS,
    [...ofTwo, give(35, 5n), give(5, 1n)],
    {
      d10: ['2@5'],
      d30: ['2@25'],
      d50: ['2@45'],
    },
  ],
  [
    'recognised when two gives of one window sum to its drift',
    [...DRIFTS, drift(70, -9n)],
    [...GIVES, give(63, 4n), give(64, 5n)],
    { ...EACH, d70: ['1@63', '1@64'] },
  ],
  [
    'recognised when gives share their windows with other changes, but not most of them',
    [...DRIFTS, drift(40, null)],
    [...GIVES, give(33, 1n), give(35, 2n)],
    EACH,
  ],
  [
    'not recognised when most gives share their windows with other changes',
    [...DRIFTS, drift(40, 100n)],
    [...GIVES, give(33, 1n), give(35, 2n), give(36, 3n)],
    undefined,
  ],
  [
    'not recognised when a give was not shown in the window of a drift that others equal',
    [...DRIFTS, drift(70, -9n)],
    [...GIVES, give(62, 1n), give(63, 4n), give(64, 5n)],
    undefined,
  ],
  [
    'not recognised when a drift has no begin',
    [drift(10, -5n, null), ...DRIFTS.slice(1)],
    GIVES,
    undefined,
  ],
  ['not recognised when there are no gives', DRIFTS, [], undefined],
  ['not recognised when there are no drifts', [], GIVES, undefined],
])('The operator is %s', (_, drifts, gives, expected) => {
  const found = operatorOf(drifts, gives);
  expect(found && Object.fromEntries(found.gives)).toEqual(expected);
});

const amount = fc.bigInt(1n, 4n);
const world = fc.record({
  /** Gives of operator 1 that the wallet pays, and how long their windows are. */
  paid: fc.array(fc.record({ amount, length: fc.integer({ min: 4, max: 20 }) }), { maxLength: 8 }),
  /** Gives of operator 2 that another wallet pays, and changes elsewhere; by their window. */
  others: fc.array(fc.record({ amount, at: fc.nat(200) }), { maxLength: 6 }),
  changes: fc.array(fc.record({ amount: fc.bigInt(-4n, 4n), at: fc.nat(200) }), { maxLength: 6 }),
});

/** The drifts and gives of a world in which each window has one give at most. */
function drawn({ paid, others, changes }: typeof world extends fc.Arbitrary<infer T> ? T : never) {
  const drifts: DriftOfWallet[] = [];
  const gives: OperatorGive[] = [];
  let at = 0;
  for (const { amount, length } of paid) {
    drifts.push({ id: `d${at}`, amount: -amount, windowFrom: at, windowTo: at + length });
    gives.push(give(at + 1, amount));
    at += length + 2;
  }
  const elsewhere = others.map(({ amount, at }, i) => ({ ...give(at, amount, '2'), id: `o${i}` }));
  const more = changes.map(({ amount, at }, i) => ({ ...drift(at, amount || 1n), id: `c${i}` }));
  return { drifts, gives, elsewhere, more };
}

it('A wallet that pays the gives of an operator is recognised from the third on', () => {
  fc.assert(
    fc.property(world, (given) => {
      const { drifts, gives } = drawn(given);
      const found = operatorOf(drifts, gives);
      const ids = gives.length < 3 ? undefined : gives.map(({ id }) => id);
      expect(found && [...found.gives.values()].flat()).toEqual(ids);
    }),
  );
});

it('Each give of a recognised operator explains one drift at most, and they sum to its amount', () => {
  fc.assert(
    fc.property(world, (given) => {
      const { drifts, gives, elsewhere, more } = drawn(given);
      const all = [...drifts, ...more];
      const found = operatorOf(all, [...gives, ...elsewhere]);
      if (!found) return;
      expect(found.gives.size).toBeGreaterThanOrEqual(3);
      const used = [...found.gives.values()].flat();
      expect(new Set(used).size).toBe(used.length);
      for (const [id, ids] of found.gives) {
        const { amount, windowFrom, windowTo } = must(
          all.find((one) => one.id === id),
          'drift',
        );
        const own = [...gives, ...elsewhere].filter((one) => ids.includes(one.id));
        expect(own.every(({ operatorNo }) => operatorNo === found.operatorNo)).toBe(true);
        expect(sumOf(own.map((one) => one.amount))).toBe(-(amount ?? 0n));
        for (const { from, to } of own) {
          expect(from).toBeLessThanOrEqual(windowTo);
          expect(to).toBeGreaterThanOrEqual(windowFrom ?? 0);
        }
      }
    }),
  );
});

it('A give that the balance did not show between the drifts tells that another wallet pays', () => {
  fc.assert(
    fc.property(world, fc.nat(), (given, place) => {
      const { drifts, gives } = drawn(given);
      if (drifts.length < 4) return;
      // Between the windows of two drifts the balance stayed as it was.
      const before = must(drifts[1 + (place % (drifts.length - 3))], 'drift');
      const unseen = { ...give(0, 9n), from: before.windowTo + 0.5, to: before.windowTo + 1 };
      expect(operatorOf(drifts, [...gives, unseen])).toBeUndefined();
    }),
  );
});
