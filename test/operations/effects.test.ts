/** What each write does to accounts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sumOf } from '../../src/kernel/amounts.ts';
import {
  effectsOrNone,
  effectsUnder,
  feeModeOf,
  ownWalletsOf,
  recordedEffectsOf,
  walletEffectsOf,
  walletKeysOf,
} from '../../src/operations/effects/effects.ts';
import {
  type EffectSettings,
  effectOn,
  effectsOf,
  type Operation,
} from '../../src/operations/operations.ts';
import { addr, operation, PLAIN, START } from '../ledger/builders.ts';

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

describe('What is stored with a write', () => {
  const stored = (input: Partial<Operation>, settings: EffectSettings) => {
    const { effects: lines, feeMode } = recordedEffectsOf(operation(input), settings);
    return [feeMode, ...lines.map(({ account, amount }) => `${account} ${amount}`)];
  };
  const SELF = { ...move, fromAddr: FEES, toAddr: B };

  it.each<[string, Partial<Operation>, EffectSettings, unknown[]]>([
    ['no rule for a give', give, PLAIN, [null, 'operator:7 -10', `wallet:${A} 10`]],
    [
      'no rule for a transfer without a fee',
      { ...move, feeAmount: 0n },
      DEDUCTED,
      [null, `wallet:${A} -10`, `wallet:${B} 10`],
    ],
    [
      'no rule for a transfer with an unknown fee',
      { ...move, feeAmount: null },
      PLAIN,
      [null, `wallet:${A} -10`, `wallet:${B} 10`],
    ],
    [
      'the rule of a transfer',
      move,
      PLAIN,
      ['on_top', `wallet:${A} -12`, `wallet:${B} 10`, 'fees 2'],
    ],
    [
      'the rule of a deduction',
      take,
      DEDUCTED,
      ['deducted', `wallet:${A} -10`, 'collection 8', 'fees 2'],
    ],
    [
      'a line of zero for a fee that is the whole amount',
      { ...move, feeAmount: 10n },
      DEDUCTED,
      ['deducted', `wallet:${A} -10`, `wallet:${B} 0`, 'fees 10'],
    ],
    [
      'lines of zero for a fee that cannot be deducted',
      { ...move, feeAmount: 11n },
      DEDUCTED,
      ['deducted', `wallet:${A} 0`, `wallet:${B} 0`, 'fees 0'],
    ],
    [
      'one line per account where the payer gets the fee',
      SELF,
      MAPPED,
      ['on_top', `wallet:${FEES} -10`, `wallet:${B} 10`],
    ],
    [
      'all lines where the payer gets the fee and it is the whole amount',
      { ...SELF, feeAmount: 10n },
      MAPPED,
      ['on_top', `wallet:${FEES} -20`, `wallet:${B} 10`, `wallet:${FEES} 10`],
    ],
    [
      'one line per account where the receiver gets a fee that is the whole amount',
      { ...move, toAddr: FEES, feeAmount: 10n },
      MAPPED,
      ['on_top', `wallet:${A} -20`, `wallet:${FEES} 20`],
    ],
    [
      'no rule for a give with a fee, which cannot be posted',
      { ...give, feeAmount: 1n },
      PLAIN,
      [null],
    ],
    ['nothing of a write that cannot be posted', { ...move, fromAddr: null }, PLAIN, ['on_top']],
    ['nothing of a give that cannot be posted', { ...give, amount: null }, PLAIN, [null]],
  ])('Stored is %s', (_what, input, settings, lines) => {
    expect(stored(input, settings)).toEqual(lines);
  });

  it('A write falls under the rule in force when it was sent', () => {
    const changed = { ...PLAIN, feeChanges: [{ from: START + 5, mode: 'deducted' as const }] };
    const modeAt = (sentAt: number) => feeModeOf(operation({ ...move, sentAt }), changed);
    expect([modeAt(START + 4), modeAt(START + 5)]).toEqual(['on_top', 'deducted']);
    const sent = operation({ ...move, sentAt: START + 5 });
    expect(effectsOf(sent, changed)).toEqual(effectsOf(sent, DEDUCTED));
  });

  it.each<[string, Partial<Operation>, EffectSettings, EffectSettings]>([
    ['other wallets by now', move, { ...MAPPED, feeMode: 'on_top' }, PLAIN],
    ['no wallets then, and some by now', take, PLAIN, MAPPED],
    ['the same wallets', take, MAPPED, MAPPED],
    ['a collection and fees of their own', take, { ...MAPPED, collectionAddr: B }, MAPPED],
  ])('Another rule changes amounts, and keeps the accounts: %s', (_title, input, then, now) => {
    const write = operation(input);
    const before = recordedEffectsOf(write, { ...then, feeMode: 'on_top' }).effects;
    const after = recordedEffectsOf(write, { ...then, feeMode: 'deducted' }).effects;
    const change = { from: 'on_top', to: 'deducted', settings: now } as const;
    expect(effectsUnder(write, before, change)).toEqual(after);
    const back = { from: 'deducted', to: 'on_top', settings: now } as const;
    expect(effectsUnder(write, after, back)).toEqual(before);
  });

  it('What is not of a write stays as it is', () => {
    const change = { from: 'on_top', to: 'deducted', settings: PLAIN } as const;
    const other = [
      { account: `wallet:${A}`, amount: -11n },
      { account: 'fees', amount: 11n },
    ];
    expect(effectsUnder(operation(move), other, change)).toBeUndefined();
    expect(effectsUnder(operation(move), [], change)).toEqual([]);
  });
});

describe('The wallets of a write', () => {
  it('Effects are summed by wallet, in one spelling, and accounts that are no wallets are left out', () => {
    const own = { ...move, toAddr: A.toUpperCase().replace('0X', '0x') };
    expect([...walletEffectsOf(operation(own), PLAIN)]).toEqual([[A.toLowerCase(), -2n]]);
    expect(walletKeysOf(operation(move), PLAIN)).toEqual([A.toLowerCase(), B.toLowerCase()]);
    expect(walletKeysOf(operation({ ...move, amount: null }), PLAIN)).toEqual([]);
    const free = operation({ ...move, toAddr: A, feeAmount: 0n });
    expect([...walletEffectsOf(free, PLAIN)]).toEqual([[A.toLowerCase(), 0n]]);
  });

  it('Own wallets are those of operators, fees and collection, as far as they have one', () => {
    expect(ownWalletsOf(MAPPED)).toEqual([OPERATOR, FEES, POT]);
    expect(ownWalletsOf(PLAIN)).toEqual([]);
  });

  it('The effect on an account is that of its own lines, in any spelling', () => {
    const write = operation(move);
    const on = (account: string) => effectOn(write, account, PLAIN);
    expect([
      on(`wallet:${A}`),
      on(`WALLET:${B.toLowerCase()}`),
      on('fees'),
      on('collection'),
    ]).toEqual([-12n, 10n, 2n, 0n]);
  });
});

it('A fee of the whole amount can be deducted, and operator 0 gives', () => {
  expect(effects({ ...move, feeAmount: 10n }, DEDUCTED)).toEqual({
    [`wallet:${A}`]: '-10',
    fees: '10',
  });
  expect(effects({ ...move, feeAmount: 11n }, PLAIN)).toMatchObject({ fees: '11' });
  expect(effects({ ...give, operationNo: 0n }, PLAIN)).toMatchObject({ 'operator:0': '-10' });
  const unknown = { ...give, operationNo: -1n };
  expect(() => effectsOf(operation(unknown), PLAIN)).toThrow('the operator is not known');
  expect(() => effectsOf(operation(unknown), PLAIN)).toThrow(
    expect.objectContaining({ name: 'Unpostable' }),
  );
});

it('A fault that is not of the write is no write without effects', () => {
  const broken = {
    ...PLAIN,
    get operators(): never {
      throw new TypeError('broken');
    },
  };
  expect(() => effectsOrNone(operation(give), broken)).toThrow('broken');
});
