/** When a new write may be sent beside open ones: checked by brute force over all subsets. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canTellApart,
  conflictsOf,
  impactOf,
  lockNamesOf,
  OPEN_MAX,
  type OpenWrite,
  type SentWrite,
  usefulWaitMs,
  walletsApart,
} from '../../src/operations/intake/conflicts.ts';
import type { Kind, WriteFields } from '../../src/operations/operations.ts';
import { addr } from '../ledger/builders.ts';

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

describe('How long it helps to wait for the writes in the way (at most 2,000 ms)', () => {
  const own = { effects: new Map([['a', 5n]]), conflictKey: undefined };
  const sent = (id: string, sentAt: number, ambiguous = false, amount = 5n): SentWrite => ({
    id,
    sentAt,
    ambiguous,
    effects: new Map([['a', amount]]),
    conflictKey: undefined,
  });
  it.each<[string, SentWrite[], number]>([
    ['Until the wait for it is over', [sent('x', 9_500)], 1_500],
    ['Until the wait for the last one is over', [sent('x', 9_000), sent('y', 9_500)], 1_500],
    ['Not where one is open for so long', [sent('x', 8_000), sent('y', 9_500)], 0],
    ['Still a moment before that', [sent('x', 8_001)], 1],
    ['Not beside an ambiguous one', [sent('x', 9_500, true)], 0],
    [
      'But beside an ambiguous one that is not in the way',
      [sent('x', 9_500, true, 7n), sent('y', 9_600)],
      1_600,
    ],
    ['Not behind thirteen', Array.from({ length: 13 }, (_, i) => sent(`${i}`, 9_500)), 0],
    ['But behind twelve', Array.from({ length: 12 }, (_, i) => sent(`${i}`, 9_500)), 1_500],
  ])('%s', (_title, conflicts, waitMs) => {
    expect(usefulWaitMs(own, conflicts, 10_000, 2_000)).toBe(waitMs);
  });
});

describe('Where a write may conflict', () => {
  const settings = {
    feeMode: 'on_top' as const,
    feesAddr: addr(8),
    collectionAddr: addr(9),
    operators: new Map([['7', addr(7)]]),
  };
  const impact = (kind: Kind, fields: WriteFields) => impactOf({ kind, fields, at: 5 }, settings);
  const mint = { contractId: 3n, toAddr: addr(1), tokenUri: 'u', metaData: 'm', extraData: 'e' };

  it('It is on the wallets of users, and not on those of operators, fees and collection', () => {
    const transfer = { fromAddr: addr(1), toAddr: addr(2), amount: 10n, feeAmount: 2n };
    const { scope, feeMode, effects } = impact('transfer', transfer);
    expect([...scope.effects]).toEqual([
      [addr(1).toLowerCase(), -12n],
      [addr(2).toLowerCase(), 10n],
    ]);
    expect([scope.conflictKey, feeMode, effects.length]).toEqual([undefined, 'on_top', 3]);
    const give = { operationNo: 7n, toAddr: addr(1), amount: 10n };
    expect([...impact('give', give).scope.effects]).toEqual([[addr(1).toLowerCase(), 10n]]);
  });

  it.each<[string, Kind, WriteFields, string | undefined, string[]]>([
    ['its token', 'burn', { contractId: 3n, tokenId: 4n }, 'burn:3:4', ['token:3:4']],
    ['nothing without a token', 'burn', { contractId: 3n }, undefined, []],
    ['nothing without a contract', 'burn', { tokenId: 4n }, undefined, []],
    [
      'nothing of a contract where it moves tokens',
      'give',
      { contractId: 3n, tokenId: 4n },
      undefined,
      [],
    ],
    [
      'nothing of a mint in sequence without receiver',
      'mint_sequential',
      { contractId: 3n },
      undefined,
      [],
    ],
  ])('It is on %s', (_what, kind, fields, conflictKey, names) => {
    const { scope } = impact(kind, fields);
    expect(scope.conflictKey).toBe(conflictKey);
    expect(lockNamesOf(kind, fields, scope)).toEqual(names);
  });

  it('Mints in sequence conflict where contract, receiver, URI and data are equal', () => {
    const keyOf = (fields: WriteFields) => impact('mint_sequential', fields).scope.conflictKey;
    expect(keyOf(mint)).toMatch(/^mint_sequential:3:[0-9a-f]{64}$/);
    expect(keyOf({ ...mint, toAddr: addr(1).toUpperCase() })).toBe(keyOf(mint));
    const others = [
      { contractId: 4n },
      { toAddr: addr(2) },
      { tokenUri: 'v' },
      { metaData: 'n' },
      { extraData: null },
    ];
    const keys = [mint, ...others.map((other) => ({ ...mint, ...other }))].map(keyOf);
    expect(new Set(keys).size).toBe(6);
    const { scope } = impact('mint_sequential', mint);
    expect(lockNamesOf('mint_sequential', mint, scope)).toEqual([
      `token:3:${addr(1).toLowerCase()}`,
    ]);
    const { tokenUri: _, ...without } = mint;
    expect(keyOf(without)).toBe(keyOf({ ...mint, tokenUri: null }));
  });

  it('A wallet tells a write apart where another does not', () => {
    const open = [{ id: 'x', effects: new Map([['a', 5n]]), conflictKey: undefined }];
    const effects = new Map([
      ['a', 5n],
      ['b', -5n],
    ]);
    expect(walletsApart({ effects, conflictKey: undefined }, open)).toEqual(['b']);
    const names = lockNamesOf('transfer', {}, { effects, conflictKey: undefined });
    expect(names).toEqual(['wallet:a', 'wallet:b']);
  });
});
