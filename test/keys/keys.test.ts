import { beforeEach, expect, it } from 'vitest';
import type { Failure } from '../../src/kernel/errors.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import {
  type Caller,
  isSecret,
  type Keys,
  makeAudit,
  makeKeys,
  newSecret,
  requireScope,
} from '../../src/keys/keys.ts';
import { SCOPES } from '../../src/resources/admin/key.ts';
import { useDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';

const database = await useDatabase();
let clock: ManualClock;
let keys: Keys;
beforeEach(() => {
  clock = manualClock();
  keys = openKeys();
});

const openKeys = () =>
  makeKeys({ db: database.db, clock, random: systemRandom, ids: makeIds(clock, systemRandom) });
const create = (scopes: Caller['scopes'] = ['gateway']) =>
  keys.create({ name: 'app', owner: 'team', scopes });
const revokedAt = async (keyId: string) =>
  (await keys.list()).find(({ id }) => id === keyId)?.revokedAt;

it('A key authenticates by its secret', async () => {
  const { key, secret } = await create(['read', 'gateway']);
  expect(isSecret(secret)).toBe(true);
  expect(await keys.authenticate(secret)).toEqual({
    keyId: key.id,
    owner: 'team',
    scopes: ['read', 'gateway'],
    expiresAt: null,
  });
});

it('A key is stored without its secret', async () => {
  const { key, secret } = await create();
  const rows = await database.owner.sql`
      select k::text as row from tallyhook.keys k where id = ${key.id}`;
  expect(rows[0]?.row).toContain(key.id);
  expect(rows[0]?.row).not.toContain(secret.slice(4, 20));
});

it('A key that is revoked ends at once in this daemon and within a second in others', async () => {
  const { key, secret } = await create();
  const other = openKeys();
  expect(await other.authenticate(secret)).toBeDefined();
  expect(await keys.authenticate(secret)).toBeDefined();
  await keys.revoke(key.id);
  expect(await keys.authenticate(secret)).toBeUndefined();
  clock.advance(1_000);
  expect(await other.authenticate(secret)).toBeUndefined();
  expect(await revokedAt(key.id)).toBe(clock.now() - 1_000);
});

it('A key that is revoked twice keeps the first time; a missing one is not found', async () => {
  const { key } = await create();
  await keys.revoke(key.id);
  clock.advance(50);
  await keys.revoke(key.id);
  expect(await revokedAt(key.id)).toBe(clock.now() - 50);
  await expect(keys.revoke('key_none')).rejects.toMatchObject({ code: 'not_found' });
});

it('A key for the admin is created once per secret, and a weak secret is refused', async () => {
  const secret = newSecret(systemRandom);
  await Promise.all([keys.ensureAdmin(secret), openKeys().ensureAdmin(secret)]);
  await keys.ensureAdmin(secret);
  const caller = await keys.authenticate(secret);
  expect(caller).toMatchObject({ owner: 'admin', scopes: [...SCOPES] });
  expect((await keys.list()).filter(({ owner }) => owner === 'admin')).toHaveLength(1);
  await expect(keys.ensureAdmin('admin')).rejects.toMatchObject({ code: 'bad_setting' });
});

it('Another ADMIN_KEY revokes the key of the former one, and no key that was made otherwise', async () => {
  const [former, later] = [newSecret(systemRandom), newSecret(systemRandom)];
  const made = await create([...SCOPES]);
  expect(await keys.ensureAdmin(former)).toBe('valid');
  const formerId = (await keys.authenticate(former))?.keyId ?? '';
  expect(await keys.ensureAdmin(later)).toBe('valid');
  const laterId = (await keys.authenticate(later))?.keyId;
  expect(await keys.authenticate(former)).toBeUndefined();
  expect(await revokedAt(formerId)).toBe(clock.now());
  expect(await keys.authenticate(made.secret)).toBeDefined();
  const [entry, ...others] = await makeAudit({ db: database.db, clock }).list({
    before: undefined,
    limit: 10,
  });
  expect(entry).toMatchObject({
    owner: 'admin',
    keyId: laterId,
    clientAddress: null,
    action: 'DELETE /api/keys/{id}',
    detail: { id: formerId, reason: 'ADMIN_KEY has another value' },
    result: 'done',
  });
  const named = others.filter(({ detail }) => JSON.stringify(detail).includes(formerId));
  expect(named).toEqual([]);

  clock.advance(50);
  expect(await keys.ensureAdmin(former)).toBe('invalid');
  expect(await keys.authenticate(former)).toBeUndefined();
  expect(await keys.authenticate(later)).toBeDefined();
});

it('An ADMIN_KEY that is a key without the scope admin is refused, and the former key stays valid', async () => {
  const former = newSecret(systemRandom);
  await keys.ensureAdmin(former);
  const { secret } = await create(['gateway', 'read']);
  const refused = await keys.ensureAdmin(secret).catch((error: Failure) => error);
  expect(refused).toMatchObject({ code: 'bad_setting' });
  expect(String(refused)).toMatch(/ADMIN_KEY.*lacks the scope admin/);
  expect(String(refused)).not.toContain(secret.slice(4));
  expect(await openKeys().authenticate(former)).toBeDefined();
  expect(await keys.ensureAdmin(former)).toBe('valid');
});

it('An ADMIN_KEY that is an expired key changes nothing, so that a daemon that has it can restart', async () => {
  const former = newSecret(systemRandom);
  await keys.ensureAdmin(former);
  const expiresAt = clock.now() + 1_000;
  const { secret } = await keys.create({ name: 'a', owner: 'b', scopes: SCOPES, expiresAt });
  clock.advance(1_000);
  expect(await keys.ensureAdmin(secret)).toBe('invalid');
  expect(await openKeys().authenticate(secret)).toBeUndefined();
  expect(await openKeys().authenticate(former)).toBeDefined();
});

it('A key that ADMIN_KEY only named is not revoked by a later value, and the one it made is', async () => {
  const [first, last] = [newSecret(systemRandom), newSecret(systemRandom)];
  const named = await create([...SCOPES]);
  await keys.ensureAdmin(first);
  expect(await keys.ensureAdmin(named.secret)).toBe('valid');
  expect(await openKeys().authenticate(first)).toBeUndefined();
  expect(await keys.ensureAdmin(last)).toBe('valid');
  expect(await openKeys().authenticate(named.secret)).toBeDefined();
  await keys.ensureAdmin(newSecret(systemRandom));
  expect(await openKeys().authenticate(named.secret)).toBeDefined();
  expect(await openKeys().authenticate(last)).toBeUndefined();
});

it('A key that the ADMIN_KEY of release 0.2.0 made is revoked when the value changes', async () => {
  // That release did not note which key it made.
  await database.owner.sql`delete from tallyhook.installation where name = 'admin_key'`;
  const made = { name: 'admin', owner: 'admin', scopes: ['read', 'admin'] as const };
  const { secret } = await keys.create(made);
  expect(await keys.ensureAdmin(secret)).toBe('valid');
  expect(await keys.ensureAdmin(newSecret(systemRandom))).toBe('valid');
  expect(await openKeys().authenticate(secret)).toBeUndefined();
});

it('Daemons that start with one new ADMIN_KEY at the same time leave that key alone valid', async () => {
  await keys.ensureAdmin(newSecret(systemRandom));
  const secret = newSecret(systemRandom);
  const before = (await keys.list()).length;
  const starts = [keys, openKeys(), openKeys(), openKeys()];
  await Promise.all(starts.map((one) => one.ensureAdmin(secret)));
  expect((await keys.list()).length).toBe(before + 1);
  expect(await openKeys().authenticate(secret)).toMatchObject({ owner: 'admin' });
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
])('A key does not have the secret %j', async (text) => {
  expect(isSecret(text)).toBe(false);
  expect(await keys.authenticate(text)).toBeUndefined();
});

it('A key that was never created does not authenticate', async () => {
  expect(await keys.authenticate(newSecret(systemRandom))).toBeUndefined();
});

const caller = (...scopes: Caller['scopes']): Caller => ({ keyId: 'k', owner: 'o', scopes });

it.each(SCOPES)('A scope %s is granted to keys that have it and to admins only', (scope) => {
  const others = SCOPES.filter((other) => other !== scope && other !== 'admin');
  expect(() => requireScope(caller(scope), scope)).not.toThrow();
  expect(() => requireScope(caller('admin'), scope)).not.toThrow();
  for (const refused of [caller(...others), caller()])
    expect(() => requireScope(refused, scope)).toThrow(
      expect.objectContaining({ code: 'forbidden', detail: `the key needs the scope ${scope}` }),
    );
});

it('More keys than one page are listed page by page', async () => {
  const made = [];
  for (let n = 0; n < 5; n++) made.push((await create()).key.id);
  const first = await keys.list({ limit: 3, after: '' });
  const rest = await keys.list({ after: first.at(-1)?.id ?? '' });
  const listed = [...first, ...rest].map(({ id }) => id);
  expect(listed).toEqual([...new Set(listed)].toSorted());
  expect(listed).toEqual(expect.arrayContaining(made));
});

it('The use of a key is stored once a minute', async () => {
  const { key, secret } = await create();
  const usedAt = async () => (await keys.list()).find(({ id }) => id === key.id)?.lastUsedAt;
  expect(await usedAt()).toBeNull();
  const first = clock.now();
  await keys.authenticate(secret);
  clock.advance(59_999);
  await keys.authenticate(secret);
  expect(await usedAt()).toBe(first);
  clock.advance(1);
  await openKeys().authenticate(secret);
  expect(await usedAt()).toBe(first + 60_000);
});

it('A key is refused from its expiry on', async () => {
  const expiresAt = clock.now() + 10_000;
  const { secret } = await keys.create({ name: 'a', owner: 'b', scopes: ['read'], expiresAt });
  clock.set(expiresAt - 1_000);
  expect(await keys.authenticate(secret)).toBeDefined();
  clock.set(expiresAt);
  expect(await keys.authenticate(secret)).toBeUndefined();
});

it('Keys for all spellings of an owner are of one owner, by the first spelling', async () => {
  const spellings = ['Zoë Lee', ' zoë  LEE', 'Zoe\u0308\u00a0Lee', '\uff3aOË LEE'];
  const [first = '', ...others] = spellings;
  const make = (owner: string) => keys.create({ name: 'a', owner, scopes: ['decide'] });
  await make(first);
  for (const owner of others) {
    const { key, secret } = await make(owner);
    const caller = await keys.authenticate(secret);
    expect([key.owner, caller?.owner]).toEqual([first, first]);
  }
  const again = database.db.sql`insert into tallyhook.owners (name) values ('ZOË LEE')`;
  await expect(again).rejects.toMatchObject({ code: '23505', constraint_name: 'owners_once' });
  const raw = database.db.sql`
    insert into tallyhook.keys (id, hash, name, owner, scopes, created_at)
    values ('key_x', 'x', 'x', 'ZOË LEE', '{decide}', now())`;
  await expect(raw).rejects.toMatchObject({ code: '23503' });
});

it('Keys made at the same time for several spellings are of one owner', async () => {
  const spellings = ['max', 'Max', 'MAX', ' max', 'max '];
  const made = await Promise.all(
    spellings.map((owner) => keys.create({ name: 'a', owner, scopes: ['decide'] })),
  );
  expect(new Set(made.map(({ key }) => key.owner)).size).toBe(1);
});

it.each(['', ' \t', 'an\u200bn', 'ann\u202e'])('No key is made for the owner %j', async (owner) => {
  const made = keys.create({ name: 'a', owner, scopes: ['decide'] });
  await expect(made).rejects.toMatchObject({ code: 'invalid_request' });
});
