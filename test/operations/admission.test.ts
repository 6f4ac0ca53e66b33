/** When a write may go beside open ones: cases by hand, and every subset by brute force. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  canTellApart,
  conflictKeyOf,
  conflictsOf,
  lockNamesOf,
  OPEN_MAX,
  type OpenWrite,
} from '../../src/operations/intake/conflicts.ts';

const big = (amounts: readonly number[]) => amounts.map(BigInt);

describe('An amount', () => {
  it.each([
    [10, [], true],
    [0, [10, 10], true],
    [10, [10], false],
    [10, [-10], false],
    [10, [7], true],
    [10, [3, 7], false],
    [10, [15, 5], false],
    [10, [15, -5], false],
    [10, [5, 5], false],
    [3, [5, 5], true],
    [1, [2, 4, 8, 16], true],
    [32, [2, 4, 8, 16], true],
    [14, [2, 4, 8, 16], false],
  ])('Of %i beside %j may go: %s', (own, others, may) => {
    expect(canTellApart(BigInt(own), big(others))).toBe(may);
  });

  test('Is told apart beside twelve others, and beside no more', () => {
    const powers = Array.from({ length: OPEN_MAX + 1 }, (_, i) => 2n ** BigInt(i + 1));
    expect(canTellApart(1n, powers.slice(0, OPEN_MAX))).toBe(true);
    expect(canTellApart(1n, powers)).toBe(false);
  });
});

/** Whether two sets of executed writes, one with this and one without, look the same. */
function looksAlike(own: bigint, others: readonly bigint[]): boolean {
  const sums = [...Array(2 ** others.length).keys()].map((mask) =>
    others.reduce((sum, amount, i) => (mask & (1 << i) ? sum + amount : sum), 0n),
  );
  return sums.some((withOwn) => sums.some((without) => withOwn + own === without));
}

const amount = fc.bigInt({ min: -9n, max: 9n });
const wallet = fc.constantFrom('a', 'b', 'c');
const marks = fc.record({
  effects: fc.uniqueArray(fc.tuple(wallet, amount), { maxLength: 2, selector: ([key]) => key }),
  conflictKey: fc.option(fc.constantFrom('t', 'u'), { nil: undefined }),
});
const write = marks.map(({ effects, conflictKey }) => ({ effects: new Map(effects), conflictKey }));

describe('The rule', () => {
  test('Agrees with every pair of subsets', () => {
    fc.assert(
      fc.property(amount, fc.array(amount, { maxLength: 6 }), (own, others) => {
        const apart = own === 0n || !looksAlike(own, others);
        expect(canTellApart(own, others)).toBe(apart);
      }),
      { numRuns: 500 },
    );
  });

  test('Finds conflicts on every wallet and token, and names only writes that share one', () => {
    fc.assert(
      fc.property(write, fc.array(write, { maxLength: 5 }), (own, given) => {
        const open: OpenWrite[] = given.map((marks, i) => ({ ...marks, id: `op_${i}` }));
        const alike = [...own.effects].some(([key, effect]) => {
          const others = open.map(({ effects }) => effects.get(key) ?? 0n);
          return (
            effect !== 0n &&
            looksAlike(
              effect,
              others.filter((other) => other !== 0n),
            )
          );
        });
        const mates = open.filter(
          ({ conflictKey }) => conflictKey !== undefined && conflictKey === own.conflictKey,
        );
        const found = conflictsOf(own, open);
        expect(found.length > 0).toBe(alike || mates.length > 0);
        expect(new Set(found).size).toBe(found.length);
        for (const mate of mates) expect(found).toContain(mate.id);
        for (const id of found) {
          const other = open.find((one) => one.id === id);
          const shares = [...own.effects.keys()].some((key) => other?.effects.get(key));
          expect(shares || other?.conflictKey === own.conflictKey).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('What a write acts on', () => {
  const token = { contractId: 5n, tokenId: 7n };
  const minted = { contractId: 5n, toAddr: '0xAB', tokenUri: 'u', metaData: 'm', extraData: 'e' };

  it.each([
    ['burn', 'a token', token, 'burn:5:7'],
    ['mint', 'a chosen token', token, 'mint:5:7'],
    ['mint', 'no token', { contractId: 5n }, undefined],
    ['burn', 'no contract', { tokenId: 7n }, undefined],
    ['give', 'a token by mistake', token, undefined],
    ['other', 'what nobody reads', token, undefined],
    ['mint_sequential', 'no receiver', { contractId: 5n }, undefined],
  ] as const)('Is for %s of %s its own or none', (kind, _, fields, conflictKey) => {
    expect(conflictKeyOf(kind, fields)).toBe(conflictKey);
  });

  test('Is for sequential mints everything that they ask for, the spelling of an address aside', () => {
    const conflictKey = conflictKeyOf('mint_sequential', minted);
    expect(conflictKey).toBeDefined();
    expect(conflictKeyOf('mint_sequential', { ...minted, toAddr: '0xab' })).toBe(conflictKey);
    const others = [
      ...[{ contractId: 6n }, { toAddr: '0xAC' }, { tokenUri: 'v' }],
      ...[{ metaData: null }, { extraData: '' }],
    ];
    const told = others.map((other) => conflictKeyOf('mint_sequential', { ...minted, ...other }));
    expect(new Set([conflictKey, ...told]).size).toBe(others.length + 1);
  });

  test('Names the wallets of users and the token, whatever is done to it', () => {
    const effects = new Map([['a', 1n]]);
    expect(lockNamesOf('give', {}, { effects, conflictKey: undefined })).toEqual(['wallet:a']);
    const none = new Map<string, bigint>();
    const named = (kind: 'burn' | 'transfer_from') =>
      lockNamesOf(kind, token, { effects: none, conflictKey: conflictKeyOf(kind, token) });
    expect(named('burn')).toEqual(['token:5:7']);
    expect(named('transfer_from')).toEqual(named('burn'));
    const conflictKey = conflictKeyOf('mint_sequential', minted);
    expect(lockNamesOf('mint_sequential', minted, { effects: none, conflictKey })).toEqual([
      'token:5:0xab',
    ]);
  });
});
