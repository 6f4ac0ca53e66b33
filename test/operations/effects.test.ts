/** What each write does to accounts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sumOf } from '../../src/kernel/amounts.ts';
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

function effects(input: Partial<Operation>, settings: EffectSettings): Record<string, string> {
  const found = effectsOf(operation(input), settings);
  return Object.fromEntries(found.map(({ account, amount }) => [account, amount.toString()]));
}

describe('The effects of a write', () => {
  it.each<[string, Partial<Operation>, EffectSettings, Record<string, string>]>([
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
      'Without a fee the fee account has no effect',
      { ...move, feeAmount: 0n },
      PLAIN,
      { [`wallet:${A}`]: '-10', [`wallet:${B}`]: '10' },
    ],
    [
      'Effects on one wallet in two spellings are merged',
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
    ['An NFT write has no effects', { kind: 'mint', contractId: 1n, tokenId: 1n }, PLAIN, {}],
    ['A write of kind other has no effects', { kind: 'other', amount: 5n }, PLAIN, {}],
  ])('%s', (_title, input, settings, expected) => {
    expect(effects(input, settings)).toEqual(expected);
  });

  it('A transfer to oneself without a fee keeps both effects', () => {
    expect(effectsOf(operation({ ...move, toAddr: A, feeAmount: 0n }), PLAIN)).toEqual([
      { account: `wallet:${A}`, amount: -10n },
      { account: `wallet:${A}`, amount: 10n },
    ]);
  });

  it.each<[string, Partial<Operation>, EffectSettings]>([
    ['the amount is not known', { ...give, amount: null }, PLAIN],
    ['the amount is not positive', { ...give, amount: 0n }, PLAIN],
    ['the amount is not positive', { ...move, amount: -1n }, PLAIN],
    ['the fee is negative', { ...move, feeAmount: -1n }, PLAIN],
    ['a give has no fee', { ...give, feeAmount: 1n }, PLAIN],
    ['the fee exceeds the amount it is deducted from', { ...move, feeAmount: 11n }, DEDUCTED],
    ['the sender is not an address', { ...move, fromAddr: null }, PLAIN],
    ['the receiver is not an address', { ...give, toAddr: 'short' }, PLAIN],
    ['the operator is not known', { ...give, operationNo: null }, PLAIN],
  ])('A write cannot be posted when %s', (problem, input, settings) => {
    expect(() => effectsOf(operation(input), settings)).toThrow(problem);
    expect(effectOn(operation(input), `wallet:${A}`, settings)).toBe(0n);
  });

  it('Effects sum to zero, none is zero, and effectOn agrees with them', () => {
    const wallets = fc.constantFrom(A, A.toLowerCase(), B, OPERATOR, FEES.toUpperCase(), POT);
    fc.assert(
      fc.property(
        fc.constantFrom('give' as const, 'receive_from' as const, 'transfer' as const),
        fc.record({ fromAddr: wallets, toAddr: wallets, amount: fc.bigInt(1n, 10n ** 60n) }),
        fc.bigInt(0n, 10n ** 60n),
        fc.constantFrom(PLAIN, DEDUCTED, MAPPED),
        (kind, input, fee, settings) => {
          const feeAmount = kind === 'give' ? 0n : fee % input.amount;
          const made = operation({ ...input, kind, feeAmount, operationNo: 7n });
          const found = effectsOf(made, settings);
          expect(sumOf(found.map((effect) => effect.amount))).toBe(0n);
          expect(found.length).toBeGreaterThanOrEqual(2);
          const names = [...new Set(found.map((effect) => effect.account.toLowerCase()))];
          expect(sumOf(names.map((name) => effectOn(made, name, settings)))).toBe(0n);
          expect(found.every((effect) => effect.amount !== 0n)).toBe(true);
        },
      ),
    );
  });
});
