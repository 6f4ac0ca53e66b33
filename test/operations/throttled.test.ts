/** A deadline that the service set for writes, and that another daemon received. */
import { beforeEach, expect, it } from 'vitest';
import { freshWallet, giveTo, queuedId, useOperations, write } from './rig.ts';

const rig = useOperations();
const now = () => rig.clock.now();
const WAIT_MS = 60_000;
const setUntil = (until: number) => rig.database.owner.sql`
  insert into tallyhook.quota (name, blocked_until)
  values ('app-write', ${new Date(until).toISOString()})
  on conflict (name) do update set blocked_until = excluded.blocked_until`;

beforeEach(async () => {
  await rig.keepAlive();
  await setUntil(0);
});

it('A write is not recorded while it stands, and the caller is told until when', async () => {
  const until = now() + WAIT_MS;
  await setUntil(until);
  const key = { idempotencyKey: 'told' };
  const record = () => rig.first.operations.record(write({ ...giveTo(), ...key }));
  expect(await record()).toEqual({ throttledUntil: until });
  rig.clock.set(until);
  expect(await record()).toMatchObject({ id: expect.any(String) });
});

it('A repeat while it stands still finds the operation that holds its key', async () => {
  const key = { ...giveTo(), idempotencyKey: 'held' };
  const id = await rig.record(key);
  await setUntil(now() + WAIT_MS);
  const repeated = await rig.first.operations.record(write(key));
  expect(repeated).toMatchObject({ held: { operation: { id } } });
});

it('A write whose caller chose to wait is queued while it stands, and claimed after it', async () => {
  const until = now() + WAIT_MS;
  await setUntil(until);
  const input = write({ ...giveTo(freshWallet()), expiresAt: until + WAIT_MS });
  const id = queuedId(await rig.first.operations.record(input));
  expect(await rig.claim()).toEqual([]);
  rig.clock.set(until);
  expect(await rig.claim()).toEqual([id]);
});

it('A second send is not recorded while it stands', async () => {
  const id = await rig.record(giveTo());
  await setUntil(now() + WAIT_MS);
  const resend = () => rig.first.operations.recordResend(id, 'unauthorized', now() + WAIT_MS);
  await expect(resend()).rejects.toMatchObject({ code: 'lease_lost' });
  await setUntil(0);
  await resend();
});
