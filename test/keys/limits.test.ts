/** What a key may do at most: every limit, and what cannot be read is refused. */
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import {
  insistOnLimits,
  type KeyLimits,
  LIMITED_KINDS,
  type LimitedWrite,
  makeKeys,
} from '../../src/keys/keys.ts';
import { KINDS } from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';

const GIVE: LimitedWrite = { kind: 'give', operationNo: 1n, amount: 10n, feeAmount: null };
const MOVE: LimitedWrite = { kind: 'transfer', operationNo: null, amount: 10n, feeAmount: 2n };
const MINT: LimitedWrite = { kind: 'mint', operationNo: null, amount: null, feeAmount: null };
const OTHER: LimitedWrite = { ...MINT, kind: 'other' };

describe('A write', () => {
  it.each<[string, KeyLimits | undefined, LimitedWrite]>([
    ['of a key without limits', undefined, OTHER],
    ['of a key with empty limits', {}, OTHER],
    ['of a kind that is named', { kinds: ['give', 'other'] }, OTHER],
    ['of an operator that is named', { operators: ['7', '1'] }, GIVE],
    ['that names no operator', { operators: ['7'] }, MOVE],
    ['of exactly the amount per call', { amount_per_call: '10' }, GIVE],
    ['of exactly the amount with its fee', { amount_per_call: '12', amount_per_day: '12' }, MOVE],
    ['that moves no tokens', { amount_per_call: '0' }, MINT],
    ['beyond 2^53', { amount_per_call: '9'.repeat(60) }, { ...GIVE, amount: 10n ** 59n }],
  ])('Passes: one %s', (_what, limits, write) => {
    expect(() => insistOnLimits(limits, write)).not.toThrow();
  });

  it.each<[string, keyof KeyLimits, KeyLimits, LimitedWrite]>([
    ['of a kind that is not named', 'kinds', { kinds: ['give'] }, MOVE],
    ['nobody knows, when kinds are limited', 'kinds', { kinds: ['give'] }, OTHER],
    ['of another operator', 'operators', { operators: ['11'] }, GIVE],
    [
      'without an operator to read',
      'operators',
      { operators: ['1'] },
      { ...GIVE, operationNo: null },
    ],
    ['nobody knows, when operators are limited', 'operators', { operators: ['1'] }, OTHER],
    ['of one more', 'amount_per_call', { amount_per_call: '9' }, GIVE],
    ['of one more with its fee', 'amount_per_call', { amount_per_call: '11' }, MOVE],
    ['of more than a day', 'amount_per_day', { amount_per_call: '99', amount_per_day: '9' }, GIVE],
    [
      'without an amount to read',
      'amount_per_day',
      { amount_per_day: '9' },
      { ...GIVE, amount: null },
    ],
    [
      'without a fee to read',
      'amount_per_call',
      { amount_per_call: '99' },
      { ...MOVE, feeAmount: null },
    ],
    ['of less than nothing', 'amount_per_call', { amount_per_call: '9' }, { ...GIVE, amount: -1n }],
    [
      'whose fee hides it',
      'amount_per_call',
      { amount_per_call: '9' },
      { ...MOVE, feeAmount: -5n },
    ],
    ['nobody knows, when amounts are limited', 'amount_per_day', { amount_per_day: '9' }, OTHER],
  ])('Is refused, with the limit named: one %s', (_what, limit, limits, write) => {
    expect(() => insistOnLimits(limits, write)).toThrow(
      expect.objectContaining({ code: 'key_limit', members: { limit } }),
    );
  });

  test('Is limited by the kinds that the journal knows', () => {
    expect([...LIMITED_KINDS]).toEqual([...KINDS]);
  });
});

describe('The limits of a key', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());
  const keys = () =>
    makeKeys({
      db: database.db,
      clock: systemClock,
      random: systemRandom,
      ids: makeIds(systemClock, systemRandom),
    });
  const given = { name: 'app', owner: 'team', scopes: ['gateway'] as const };

  test('Are kept with it and come with its caller', async () => {
    const limits: KeyLimits = {
      kinds: ['give'],
      operators: ['1', '9007199254740993'],
      amount_per_call: '10',
      amount_per_day: '9007199254740993',
    };
    const { key, secret } = await keys().create({ ...given, limits });
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
  ])('Are refused when they are none: %s %j', async (name, limits) => {
    await expect(keys().create({ ...given, limits: limits as KeyLimits })).rejects.toMatchObject({
      code: 'invalid_request',
      detail: expect.stringContaining(`limits.${name}`),
    });
  });

  test('That cannot be read are not taken for none', async () => {
    const { key, secret } = await keys().create(given);
    await database.owner.sql`
      update tallyhook.keys set limits = '{"amount": 1}' where id = ${key.id}`;
    await expect(keys().authenticate(secret)).rejects.toMatchObject({ code: 'internal' });
  });
});
