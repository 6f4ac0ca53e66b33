/** Which writes the limits of a key allow. */
import { expect, it } from 'vitest';
import {
  checkLimits,
  dayLimitOf,
  keyLimitsSchema,
  type LimitedWrite,
  limitsOf,
} from '../../src/keys/limits.ts';
import type { KeyLimits } from '../../src/resources/admin/key.ts';

const GIVE: LimitedWrite = { kind: 'give', operationNo: 1n, amount: 10n, feeAmount: null };
const MOVE: LimitedWrite = { kind: 'transfer', operationNo: null, amount: 10n, feeAmount: 2n };
const MINT: LimitedWrite = { kind: 'mint', operationNo: null, amount: null, feeAmount: null };
const OTHER: LimitedWrite = { ...MINT, kind: 'other' };

it.each<[string, KeyLimits | undefined, LimitedWrite]>([
  ['of a key without limits', undefined, OTHER],
  ['of a key with empty limits', {}, OTHER],
  ['of an allowed kind', { kinds: ['give', 'other'] }, OTHER],
  ['of an allowed operator', { operators: ['7', '1'] }, GIVE],
  ['without an operator', { operators: ['7'] }, MOVE],
  ['of exactly the amount per call', { amount_per_call: '10' }, GIVE],
  ['of exactly the amount with its fee', { amount_per_call: '12', amount_per_day: '12' }, MOVE],
  ['that moves no tokens', { amount_per_call: '0' }, MINT],
  ['beyond 2^53', { amount_per_call: '9'.repeat(60) }, { ...GIVE, amount: 10n ** 59n }],
])('A write %s is within the limits', (_what, limits, write) => {
  expect(() => checkLimits(limits, write)).not.toThrow();
});

it.each<[string, keyof KeyLimits, KeyLimits, LimitedWrite]>([
  ['of another kind', 'kinds', { kinds: ['give'] }, MOVE],
  ['of an unknown kind, with limited kinds,', 'kinds', { kinds: ['give'] }, OTHER],
  ['of another operator', 'operators', { operators: ['11'] }, GIVE],
  ['with an unknown operator', 'operators', { operators: ['1'] }, { ...GIVE, operationNo: null }],
  ['of an unknown kind, with limited operators,', 'operators', { operators: ['1'] }, OTHER],
  ['of one token too many', 'amount_per_call', { amount_per_call: '9' }, GIVE],
  ['of one token too many with its fee', 'amount_per_call', { amount_per_call: '11' }, MOVE],
  [
    'of more than the amount per day',
    'amount_per_day',
    { amount_per_call: '99', amount_per_day: '9' },
    GIVE,
  ],
  ['with an unknown amount', 'amount_per_day', { amount_per_day: '9' }, { ...GIVE, amount: null }],
  [
    'with an unknown fee',
    'amount_per_call',
    { amount_per_call: '99' },
    { ...MOVE, feeAmount: null },
  ],
  ['of a negative amount', 'amount_per_call', { amount_per_call: '9' }, { ...GIVE, amount: -1n }],
  ['with a negative fee', 'amount_per_call', { amount_per_call: '9' }, { ...MOVE, feeAmount: -5n }],
  ['of an unknown kind, with limited amounts,', 'amount_per_day', { amount_per_day: '9' }, OTHER],
])('A write %s is refused with the name of the limit', (_what, limit, limits, write) => {
  expect(() => checkLimits(limits, write)).toThrow(
    expect.objectContaining({ code: 'key_limit', members: { limit } }),
  );
});

it.each<[string, KeyLimits, LimitedWrite, string]>([
  ['kind', { kinds: ['give'] }, MOVE, 'the key does not allow transfer'],
  ['operator', { operators: ['7'] }, GIVE, 'the key does not allow this operator'],
  ['unknown amount', { amount_per_call: '9' }, OTHER, 'the amount of this write cannot be parsed'],
  ['amount per call', { amount_per_call: '9' }, GIVE, 'the write exceeds 9'],
  ['amount per day', { amount_per_day: '8' }, GIVE, 'the write exceeds 8'],
])('A refusal says why: %s', (_what, limits, write, detail) => {
  expect(() => checkLimits(limits, write)).toThrow(expect.objectContaining({ detail }));
});

it('Limits on operators concern gives alone, and those on amounts no write of a token', () => {
  const limits: KeyLimits = { operators: ['7'], amount_per_call: '12' };
  expect(() => checkLimits(limits, { ...MOVE, operationNo: 1n })).not.toThrow();
  expect(() => checkLimits(limits, { ...GIVE, operationNo: 7n, feeAmount: 2n })).not.toThrow();
  expect(() => checkLimits(limits, { ...GIVE, operationNo: 7n, feeAmount: 3n })).toThrow();
  expect(() => checkLimits({ amount_per_call: '0' }, { ...GIVE, amount: 0n })).not.toThrow();
  expect(() => checkLimits({ amount_per_day: '0' }, MINT)).not.toThrow();
});

it.each([
  [undefined, undefined],
  [null, undefined],
  [{}, {}],
  [{ amount_per_day: '9' }, { amount_per_day: '9' }],
])('Stored limits %j are %j', (stored, limits) => {
  expect(limitsOf(stored)).toEqual(limits);
});

it.each([
  [false],
  ['all'],
  [{ amount: 1 }],
  [{ amount_per_day: '1.5' }],
  [{ amount_per_call: '-1' }],
  [{ kinds: [] }],
  [{ operators: [] }],
  [{ operators: [''] }],
  [{ operators: Array.from({ length: 1_001 }, () => '1') }],
  [{ kinds: Array.from({ length: 99 }, () => 'give') }],
])('Stored limits that cannot be parsed never become no limits: %j', (stored) => {
  expect(() => limitsOf(stored)).toThrow(
    expect.objectContaining({
      code: 'internal',
      detail: 'the limits of a key cannot be parsed',
    }),
  );
});

it('The limit of a day is a number of any size, and a thousand operators may be named', () => {
  expect(dayLimitOf({ amount_per_day: '9'.repeat(40) })).toBe(10n ** 40n - 1n);
  expect(dayLimitOf({ amount_per_call: '1' })).toBeUndefined();
  expect(dayLimitOf(undefined)).toBeUndefined();
  const operators = Array.from({ length: 1_000 }, (_, i) => String(i));
  expect(limitsOf({ operators })).toEqual({ operators });
  const [issue] = keyLimitsSchema.safeParse({ amount_per_call: 'x' }).error?.issues ?? [];
  expect(issue?.message).toBe('must be a non-negative integer in decimal digits');
});
