import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sumOf } from '../../src/kernel/amounts.ts';
import { tokenMoveOf } from '../../src/ledger/posting.ts';
import {
  type EffectSettings,
  effectOn,
  effectsOf,
  type Operation,
} from '../../src/operations/operations.ts';
import { addr, operation, PLAIN } from '../ledger/fixture.ts';

const [A, B, OPERATOR, FEES, POT] = [addr(1), addr(2), addr(7), addr(8), addr(9)];
const DEDUCTED: EffectSettings = { ...PLAIN, feeMode: 'deducted' };
const MAPPED: EffectSettings = {
  feeMode: 'on_top',
  operators: new Map([['7', OPERATOR]]),
  feesAddr: FEES,
  collectionAddr: POT,
};
const give = { kind: 'give', operationNo: 7n, toAddr: A, amount: 10n } as const;
const take = { kind: 'receive_from', fromAddr: A, amount: 10n, feeAmount: 2n } as const;
const move = { kind: 'transfer', fromAddr: A, toAddr: B, amount: 10n, feeAmount: 2n } as const;

function effects(given: Partial<Operation>, books: EffectSettings): Record<string, string> {
  const found = effectsOf(operation(given), books);
  return Object.fromEntries(found.map(({ account, amount }) => [account, amount.toString()]));
}

describe('The legs of a write', () => {
  test.each<[string, Partial<Operation>, EffectSettings, Record<string, string>]>([
    ['A give pays from its operator', give, PLAIN, { 'operator:7': '-10', [`wallet:${A}`]: '10' }],
    [
      'An operator with an address is that wallet',
      give,
      MAPPED,
      { [`wallet:${OPERATOR}`]: '-10', [`wallet:${A}`]: '10' },
    ],
    [
      'A deduction takes the fee on top',
      take,
      PLAIN,
      { [`wallet:${A}`]: '-12', collection: '10', fees: '2' },
    ],
    [
      'A deduction takes the fee out of the amount',
      take,
      DEDUCTED,
      { [`wallet:${A}`]: '-10', collection: '8', fees: '2' },
    ],
    [
      'Collection and fees with addresses are wallets',
      take,
      MAPPED,
      { [`wallet:${A}`]: '-12', [`wallet:${POT}`]: '10', [`wallet:${FEES}`]: '2' },
    ],
    [
      'A transfer takes the fee on top',
      move,
      PLAIN,
      { [`wallet:${A}`]: '-12', [`wallet:${B}`]: '10', fees: '2' },
    ],
    [
      'A transfer takes the fee out of the amount',
      move,
      DEDUCTED,
      { [`wallet:${A}`]: '-10', [`wallet:${B}`]: '8', fees: '2' },
    ],
    [
      'Without a fee there is no fee leg',
      { ...move, feeAmount: 0n },
      PLAIN,
      { [`wallet:${A}`]: '-10', [`wallet:${B}`]: '10' },
    ],
    [
      'Legs on one wallet are merged whatever the spelling',
      { ...move, toAddr: FEES.toLowerCase() },
      MAPPED,
      { [`wallet:${A}`]: '-12', [`wallet:${FEES.toLowerCase()}`]: '12' },
    ],
    [
      'A transfer to oneself leaves only its fee',
      { ...move, toAddr: A.toLowerCase() },
      PLAIN,
      { [`wallet:${A}`]: '-2', fees: '2' },
    ],
    ['An NFT write has no legs', { kind: 'mint', contractId: 1n, tokenId: 1n }, PLAIN, {}],
    ['An unknown write has no legs', { kind: 'other', amount: 5n }, PLAIN, {}],
  ])('%s', (_title, given, books, expected) => {
    expect(effects(given, books)).toEqual(expected);
  });

  test('A transfer to oneself without a fee keeps both legs', () => {
    expect(effectsOf(operation({ ...move, toAddr: A, feeAmount: 0n }), PLAIN)).toEqual([
      { account: `wallet:${A}`, amount: -10n },
      { account: `wallet:${A}`, amount: 10n },
    ]);
  });

  test.each<[string, Partial<Operation>, EffectSettings]>([
    ['the amount is not known', { ...give, amount: null }, PLAIN],
    ['the amount is not positive', { ...give, amount: 0n }, PLAIN],
    ['the amount is not positive', { ...move, amount: -1n }, PLAIN],
    ['the fee is negative', { ...move, feeAmount: -1n }, PLAIN],
    ['a give has no fee', { ...give, feeAmount: 1n }, PLAIN],
    ['the fee exceeds the amount it is deducted from', { ...move, feeAmount: 11n }, DEDUCTED],
    ['the sender is not an address', { ...move, fromAddr: null }, PLAIN],
    ['the receiver is not an address', { ...give, toAddr: 'short' }, PLAIN],
    ['the operator is not known', { ...give, operationNo: null }, PLAIN],
  ])('A write is refused when %s', (problem, given, books) => {
    expect(() => effectsOf(operation(given), books)).toThrow(problem);
    expect(effectOn(operation(given), `wallet:${A}`, books)).toBe(0n);
  });

  test('Legs sum to zero, none is zero, and the effect on an account is its leg', () => {
    const wallets = fc.constantFrom(A, A.toLowerCase(), B, OPERATOR, FEES.toUpperCase(), POT);
    fc.assert(
      fc.property(
        fc.constantFrom('give' as const, 'receive_from' as const, 'transfer' as const),
        fc.record({ fromAddr: wallets, toAddr: wallets, amount: fc.bigInt(1n, 10n ** 60n) }),
        fc.bigInt(0n, 10n ** 60n),
        fc.constantFrom(PLAIN, DEDUCTED, MAPPED),
        (kind, given, fee, books) => {
          const feeAmount = kind === 'give' ? 0n : fee % given.amount;
          const made = operation({ ...given, kind, feeAmount, operationNo: 7n });
          const found = effectsOf(made, books);
          expect(sumOf(found.map((effect) => effect.amount))).toBe(0n);
          expect(found.length).toBeGreaterThanOrEqual(2);
          const names = [...new Set(found.map((effect) => effect.account.toLowerCase()))];
          expect(sumOf(names.map((name) => effectOn(made, name, books)))).toBe(0n);
          expect(found.every((effect) => effect.amount !== 0n)).toBe(true);
        },
      ),
    );
  });
});

describe('What a write did to a token', () => {
  const token = { contractId: 3n, tokenId: 4n };
  test.each([
    ['mint', 'mint'],
    ['mint_sequential', 'mint'],
    ['burn', 'burn'],
    ['transfer_from', 'transfer'],
    ['set_extra_data', 'data_change'],
  ] as const)('%s is a %s', (kind, expected) => {
    expect(tokenMoveOf(operation({ kind, ...token, toAddr: A }))).toEqual({
      kind: expected,
      ...token,
      fromAddr: null,
      toAddr: A,
    });
  });

  test('A write whose token is not known is refused', () => {
    const made = operation({ kind: 'mint_sequential', contractId: 3n });
    expect(() => tokenMoveOf(made)).toThrow('the token is not known');
  });
});
