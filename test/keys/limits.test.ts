import { expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { makeKeys } from '../../src/keys/keys.ts';
import type { KeyLimits } from '../../src/resources/admin/key.ts';
import { useDatabase } from '../harness/database.ts';

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
