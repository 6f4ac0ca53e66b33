/** Queued writes that are never sent, and those that wait for days. */
import { expect, it } from 'vitest';
import { retireDaemon } from '../../src/db/leases.ts';
import { findByIdempotencyKey } from '../../src/operations/operations.ts';
import { useOperations } from './rig.ts';

const rig = useOperations();
const DAY_MS = 24 * 3_600_000;
const now = () => rig.clock.now();

it('An expired write is rejected once, with its event, and its key is released', async () => {
  const id = await rig.queue({ idempotencyKey: 'expired', expiresAt: now() + 100 });
  rig.clock.advance(98);
  expect(await rig.first.operations.runOnce(now())).toBe(0);
  rig.clock.advance(2);
  expect(await rig.claim()).toEqual([]);
  const ended = await Promise.all([rig.first, rig.other].map((by) => by.operations.runOnce(now())));
  expect(ended.toSorted()).toEqual([0, 1]);
  expect(await rig.eventsOf(id)).toMatchObject([
    { type: 'operation.rejected', error: { class: 'not_sent', code: 'expired' } },
  ]);
  expect(await findByIdempotencyKey(rig.database.db, 'app', 'expired')).toBeUndefined();
});

it('A write that is claimed while it expires is either sent or rejected, never both', async () => {
  const expiresAt = now() + 1_000;
  for (let round = 0; round < 15; round++) {
    const id = await rig.queue({ expiresAt });
    const [got] = await Promise.all([rig.claim(), rig.other.operations.runOnce(expiresAt)]);
    expect(await rig.stateOf(id)).toBe(got.includes(id) ? 'sending' : 'rejected');
  }
});

it('A queued write is cancelled once, by its owner or an admin, until it is claimed', async () => {
  const { operations } = rig.first;
  const id = await rig.queue({ idempotencyKey: 'cancelled' });
  const cancel = (owner: string, admin = false, which = id) =>
    operations.cancel(which, { owner, admin });
  await expect(cancel('app', true, 'op_none')).rejects.toMatchObject({ code: 'not_found' });
  await expect(cancel('else')).rejects.toMatchObject({ code: 'forbidden' });
  const results = await Promise.allSettled([cancel('app'), cancel('ops', true)]);
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(await rig.stateOf(id)).toBe('cancelled');
  await expect(cancel('app')).rejects.toMatchObject({ code: 'conflict' });
  expect(await rig.claim()).toEqual([]);
  const held = await findByIdempotencyKey(rig.database.db, 'app', 'cancelled');
  expect(held?.operation.id).toBe(id);
  await rig.queue();
  const [sending] = await rig.claim();
  await expect(cancel('app', false, sending)).rejects.toMatchObject({ code: 'conflict' });
});

it('A write that was claimed by a daemon that dies is unknown and never sent again', async () => {
  const id = await rig.queue();
  expect(await rig.claim(10, rig.other)).toEqual([id]);
  await rig.keepAlive();
  await retireDaemon(rig.database.db, { id: rig.other.id }, now());
  rig.clock.advance(30_001);
  expect(await rig.claim()).toEqual([]);
  expect(await rig.first.operations.runOnce(now())).toBe(1);
  expect(await rig.stateOf(id)).toBe('unknown');
});

it('A write that was tried 32,767 times is handed out again', async () => {
  const id = await rig.queue();
  await rig.database.owner.sql`
    insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, deadline_at)
    select ${id}, 'queued', 'sending', now(), 'send', now() from generate_series(1, 32767)`;
  expect(await rig.claim()).toEqual([id]);
});

it('A queued write counts towards the daily limit while it waits and for a day after its send', async () => {
  const limited = () =>
    rig.queue({ keyId: 'key_late', dayLimit: 10n, expiresAt: now() + 7 * DAY_MS });
  await rig.keepAlive();
  const id = await limited();
  rig.clock.advance(2 * DAY_MS);
  await expect(limited()).rejects.toMatchObject({ code: 'key_limit' });
  expect(await rig.claim()).toEqual([id]);
  await rig.conclude(id, 'accepted');
  rig.clock.advance(DAY_MS - 1);
  await expect(limited()).rejects.toMatchObject({ code: 'key_limit' });
  rig.clock.advance(3_600_001);
  await limited();
});

it('A queued write whose key is revoked is not sent, and rejected', async () => {
  const keyId = 'key_stolen';
  await rig.database.owner.sql`insert into tallyhook.owners (name) values ('app')`;
  await rig.database.owner.sql`
    insert into tallyhook.keys (id, name, owner, hash, scopes, created_at)
    values (${keyId}, 'stolen', 'app', 'hash', '{gateway}', now())`;
  const [id, kept] = [await rig.queue({ keyId }), await rig.queue()];
  await rig.database.owner.sql`update tallyhook.keys set revoked_at = now() where id = ${keyId}`;
  expect(await rig.claim()).toEqual([kept]);
  expect(await rig.first.operations.runOnce(now())).toBe(1);
  expect(await rig.stateOf(id)).toBe('rejected');
  expect(await rig.eventsOf(id)).toMatchObject([
    { type: 'operation.rejected', error: { class: 'not_sent', code: 'key_revoked' } },
  ]);
});
