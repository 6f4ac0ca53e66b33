/** Who may call: secrets are shown once and kept as hashes, and end when they are revoked. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import {
  type Caller,
  insistOnScope,
  isSecret,
  type Keys,
  makeKeys,
  newSecret,
  SCOPES,
} from '../../src/keys/keys.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';

let database: TestDatabase;
let clock: ManualClock;
let keys: Keys;
beforeAll(async () => {
  database = await createDatabase();
});
beforeEach(() => {
  clock = manualClock();
  keys = openKeys();
});
afterAll(() => database.drop());

const openKeys = () =>
  makeKeys({ db: database.db, clock, random: systemRandom, ids: makeIds(clock, systemRandom) });
const create = (scopes: Caller['scopes'] = ['gateway']) =>
  keys.create({ name: 'app', owner: 'team', scopes });

describe('A key', () => {
  test('Authenticates by the secret that was shown once', async () => {
    const { key, secret } = await create(['read', 'gateway']);
    expect(isSecret(secret)).toBe(true);
    expect(await keys.authenticate(secret)).toEqual({
      keyId: key.id,
      owner: 'team',
      scopes: ['read', 'gateway'],
    });
  });

  test('Is not readable in the database', async () => {
    const { key, secret } = await create();
    const rows = await database.owner.sql`
      select k::text as row from tallyhook.keys k where id = ${key.id}`;
    expect(rows[0]?.row).toContain(key.id);
    expect(rows[0]?.row).not.toContain(secret.slice(4, 20));
  });

  test('Revoked ends at once here, and within a second at another daemon', async () => {
    const { key, secret } = await create();
    const elsewhere = openKeys();
    expect(await elsewhere.authenticate(secret)).toBeDefined();
    expect(await keys.authenticate(secret)).toBeDefined();
    await keys.revoke(key.id);
    expect(await keys.authenticate(secret)).toBeUndefined();
    clock.advance(1_000);
    expect(await elsewhere.authenticate(secret)).toBeUndefined();
    const listed = (await keys.list()).find(({ id }) => id === key.id);
    expect(listed?.revokedAt).toBe(clock.now() - 1_000);
  });

  test('Revoked twice keeps its first time; one that never was is not found', async () => {
    const { key } = await create();
    await keys.revoke(key.id);
    clock.advance(50);
    await keys.revoke(key.id);
    const listed = (await keys.list()).find(({ id }) => id === key.id);
    expect(listed?.revokedAt).toBe(clock.now() - 50);
    await expect(keys.revoke('key_none')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('For the admin is made once from its secret, and is refused when it is weak', async () => {
    const secret = newSecret(systemRandom);
    await Promise.all([keys.ensureAdmin(secret), openKeys().ensureAdmin(secret)]);
    await keys.ensureAdmin(secret);
    const caller = await keys.authenticate(secret);
    expect(caller).toMatchObject({ owner: 'admin', scopes: [...SCOPES] });
    expect((await keys.list()).filter(({ owner }) => owner === 'admin')).toHaveLength(1);
    await expect(keys.ensureAdmin('admin')).rejects.toMatchObject({ code: 'bad_setting' });
  });

  it.each([
    '',
    'thk_',
    `thk_${'x'.repeat(31)}`,
    `thk_${'x'.repeat(201)}`,
    `thk_${'x'.repeat(40)} `,
    `thx_${'x'.repeat(40)}`,
    `thk_${'x'.repeat(31)}'`,
    `Bearer thk_${'x'.repeat(40)}`,
  ])('Is not %j', async (text) => {
    expect(isSecret(text)).toBe(false);
    expect(await keys.authenticate(text)).toBeUndefined();
  });

  test('Of the right shape that nobody made is nobody', async () => {
    expect(await keys.authenticate(newSecret(systemRandom))).toBeUndefined();
  });
});

describe('A scope', () => {
  const caller = (...scopes: Caller['scopes']): Caller => ({ keyId: 'k', owner: 'o', scopes });

  it.each(SCOPES)('%s is had by those who have it, and by admins', (scope) => {
    const others = SCOPES.filter((other) => other !== scope && other !== 'admin');
    expect(() => insistOnScope(caller(scope), scope)).not.toThrow();
    expect(() => insistOnScope(caller('admin'), scope)).not.toThrow();
    for (const refused of [caller(...others), caller()])
      expect(() => insistOnScope(refused, scope)).toThrow(
        expect.objectContaining({ code: 'forbidden', detail: `the key needs the scope ${scope}` }),
      );
  });
});
