import { expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { checkLimits, type KeyLimits, type LimitedWrite, makeKeys } from '../../src/keys/keys.ts';
import { useDatabase } from '../harness/database.ts';

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

const database = await useDatabase();
const keys = () =>
  makeKeys({
    db: database.db,
    clock: systemClock,
    random: systemRandom,
    ids: makeIds(systemClock, systemRandom),
  });
const input = { name: 'app', owner: 'team', scopes: ['gateway'] as const };

it('The limits of a key are stored with the key and returned with its caller', async () => {
  const limits: KeyLimits = {
    kinds: ['give'],
    operators: ['1', '9007199254740993'],
    amount_per_call: '10',
    amount_per_day: '9007199254740993',
  };
  const { key, secret } = await keys().create({ ...input, limits });
  expect(await keys().authenticate(secret)).toMatchObject({ keyId: key.id, limits });
  const listed = await keys().list();
  expect(listed.find(({ id }) => id === key.id)?.limits).toEqual(limits);
});

it.each<[string, object]>([
  ['kinds', { kinds: ['steal'] }],
  ['kinds', { kinds: [] }],
  ['operators', { operators: ['-1'] }],
  ['operators', { operators: [1] }],
  ['amount_per_call', { amount_per_call: '1.5' }],
  ['amount_per_call', { amount_per_call: '-1' }],
  ['amount_per_day', { amount_per_day: 10 }],
  ['', { amount_per_week: '1' }],
])('The limits of a key are refused when %s is invalid: %j', async (name, limits) => {
  await expect(keys().create({ ...input, limits: limits as KeyLimits })).rejects.toMatchObject({
    code: 'invalid_request',
    detail: expect.stringContaining(`limits.${name}`),
  });
});

it('Invalid stored limits fail the authentication of their key', async () => {
  const { key, secret } = await keys().create(input);
  await database.owner.sql`
      update tallyhook.keys set limits = '{"amount": 1}' where id = ${key.id}`;
  await expect(keys().authenticate(secret)).rejects.toMatchObject({ code: 'internal' });
});
