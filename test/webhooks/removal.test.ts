/** Bodies of events can be removed early: what is left of them, and of what waited for them. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { makePartitions } from '../../src/db/partitions.ts';
import { findEvent, readFeed, sequence } from '../../src/outbox/outbox.ts';
import { typesByAge } from '../../src/webhooks/delivery/removal.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { useRig, walletEvent } from './rig.ts';

const DAY_MS = 86_400_000;
const rig = useRig();

const bodyOf = async (id = '') => (await findEvent(rig.database.db, id)) ?? '';
const received = () => rig.receiver.requests.map((r) => String(r.headers['webhook-id']));
const statesOf = async (endpointId: string) =>
  (await rig.deliveriesOf(endpointId)).map(({ eventId, state }) => [eventId, state] as const);
const remove = (id = '') => rig.webhooks.removeBody(id);
const removeOld = (ages: Record<string, number>, webhooks = rig.webhooks) =>
  webhooks.removeOldBodies(ages, rig.clock.now(), new AbortController().signal);
const testEvent = (reason: string) =>
  ({ ...walletEvent(), type: 'endpoint.test', subject: 'endpoint:e', data: { reason } }) as never;

it('What is left of a removed body is when, its hash, and its place in feed and subject', async () => {
  const addr = `0x${'b'.repeat(40)}`;
  const [before, id, after] = await rig.emit(
    walletEvent(addr),
    walletEvent(addr, '9007199254740993'),
    walletEvent(addr),
  );
  while ((await sequence(rig.database.db)) > 0);
  const query = { cursor: '', types: ['wallet.*'], limit: 100 };
  const feed = await readFeed(rig.database.db, query);
  const body = await bodyOf(id);
  const sha256 = createHash('sha256').update(body).digest('hex');
  const removedAt = rig.clock.now();
  expect(await remove(id)).toEqual({
    id,
    type: 'wallet.observed',
    removedAt,
    sha256,
    deliveriesCancelled: 0,
  });
  const { data, ...rest } = JSON.parse(body);
  const left = JSON.parse(await bodyOf(id));
  expect(left).toEqual({
    ...rest,
    data: {
      body_removed_at: new Date(removedAt).toISOString(),
      body_sha256: sha256,
      subject_seq: data.subject_seq,
    },
  });
  expect(await bodyOf(before)).toContain('"current"');
  expect(await bodyOf(after)).toContain('"current"');
  const now = await readFeed(rig.database.db, query);
  expect(now.rows.map(({ seq, type }) => [seq, type])).toEqual(
    feed.rows.map(({ seq, type }) => [seq, type]),
  );
  expect(now.rows.filter(({ body }) => body.includes('body_removed_at'))).toHaveLength(1);
  rig.clock.advance(DAY_MS);
  expect(await remove(id)).toMatchObject({ removedAt, sha256, deliveriesCancelled: 0 });
  await expect(remove('evt_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b')).rejects.toMatchObject({
    code: 'not_found',
  });
});

it('Deliveries that wait for a removed body are cancelled, and the next of its subject is sent', async () => {
  const ordered = await rig.subscribe('/ordered', {
    ordering: 'subject',
    eventTypes: ['wallet.*'],
  });
  const plain = await rig.subscribe('/plain', { eventTypes: ['wallet.*'] });
  rig.receiver.answer(500);
  const [first = '', second = ''] = await rig.emit(walletEvent(), walletEvent());
  await rig.deliver();
  rig.receiver.answer(200);
  const before = rig.receiver.requests.length;
  expect((await remove(first)).deliveriesCancelled).toBe(2);
  await rig.deliver();
  rig.clock.advance(DAY_MS);
  await rig.deliver();
  expect(new Set(received().slice(before))).toEqual(new Set([second]));
  for (const { endpoint } of [ordered, plain])
    expect(new Map(await statesOf(endpoint.id))).toEqual(
      new Map([
        [second, 'delivered'],
        [first, 'cancelled'],
      ]),
    );
  const deliveries = await rig.deliveriesOf(plain.endpoint.id);
  const id = deliveries.find(({ eventId }) => eventId === first)?.id ?? '';
  expect(await rig.webhooks.getDelivery(id)).toMatchObject({
    state: 'cancelled',
    requestBody: null,
    bodyRemovedAt: expect.any(Number),
  });
  expect(await rig.webhooks.listAttempts(id)).toHaveLength(1);
  await expect(rig.webhooks.retryDelivery(id)).rejects.toMatchObject({ code: 'conflict' });
});

it.each([
  [200, 'delivered'],
  [500, 'cancelled'],
])(
  'An attempt in flight that ends with %i is logged, not repeated, and its delivery %s',
  async (status, state) => {
    const { endpoint } = await rig.subscribe('/hook', { eventTypes: ['wallet.*'] });
    rig.receiver.behave({ do: 'hang' });
    const [id = ''] = await rig.emit(walletEvent());
    await rig.deliverUntil(1);
    expect((await remove(id)).deliveriesCancelled).toBe(0);
    rig.receiver.release(status);
    await rig.webhooks.drain(20_000);
    rig.clock.advance(DAY_MS);
    await rig.deliver();
    expect(rig.receiver.requests).toHaveLength(1);
    const [delivery] = await rig.deliveriesOf(endpoint.id);
    expect(delivery?.state).toBe(state);
    const attempts = await rig.webhooks.listAttempts(delivery?.id ?? '');
    expect(attempts).toMatchObject([{ n: 1, status }]);
  },
);

it('Replays, and a claim that a removal overtakes, send no removed body', async () => {
  const since = rig.clock.now();
  const { endpoint } = await rig.subscribe('/hook', { eventTypes: ['wallet.*'] });
  const [id = '', other = ''] = await rig.emit(walletEvent(), walletEvent());
  await rig.deliver();
  await remove(id);
  rig.clock.advance(1);
  const input = { endpointId: endpoint.id, since, types: [], which: 'all' as const };
  expect(await rig.webhooks.countReplay(input)).toMatchObject({ queued: 1 });
  await rig.webhooks.startReplay(input, 'ann');
  await rig.webhooks.replayOnce(rig.clock.now());
  await rig.deliver();
  expect(received()).toEqual(expect.arrayContaining([id, other, other]));
  expect(received().filter((one) => one === id)).toHaveLength(1);
  // As a fan-out or retry leaves it that read the event before the removal was committed.
  await rig.database.owner.sql`
    insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, event_type,
      due_at, queued_at)
    select tallyhook.delivery_id(e.id, ${endpoint.id}), e.recorded_at,
      ${endpoint.id.slice(3)}::uuid, e.id, e.type, e.recorded_at, e.recorded_at
    from tallyhook.events e where e.id = ${id.slice(4)}`;
  await rig.database.owner.sql`
    delete from tallyhook.deliveries d using tallyhook.pending_deliveries q where d.id = q.id`;
  await rig.deliver();
  expect(received().filter((one) => one === id)).toHaveLength(1);
  expect(await statesOf(endpoint.id)).toContainEqual([id, 'cancelled']);
});

it('Bodies end by the age of their type, the most exact one first, in pages', async () => {
  await makePartitions(rig.database.db, rig.clock.now());
  const addr = `0x${'c'.repeat(40)}`;
  const many = await rig.emit(...Array.from({ length: 2_100 }, () => walletEvent(addr)));
  const [exact = ''] = await rig.emit(testEvent('old'));
  rig.clock.advance(20 * DAY_MS);
  const [young = ''] = await rig.emit(walletEvent(addr));
  rig.clock.advance(11 * DAY_MS);
  const ages = { 'wallet.*': 30, '*': 10, 'endpoint.test': 365 };
  const isRemoved = async (id = '') => (await bodyOf(id)).includes('body_removed_at');
  await removeOld(ages);
  for (const id of [many[0], many[1_000], many.at(-1)]) expect(await isRemoved(id)).toBe(true);
  expect([await isRemoved(exact), await isRemoved(young)]).toEqual([false, false]);
  rig.clock.advance(20 * DAY_MS);
  await removeOld(ages);
  expect([await isRemoved(exact), await isRemoved(young)]).toEqual([false, true]);
  // Another process examines all once.
  await removeOld({ 'endpoint.*': 50 }, rig.another(webhookDefaults));
  expect(await isRemoved(exact)).toBe(true);
  await removeOld({});
});

it('The age of a type is that of its exact name, of its group, or of all', () => {
  const ages = typesByAge({ '*': 5, 'wallet.*': 4, 'wallet.observed': 3 });
  expect(ages.get(3)).toEqual(['wallet.observed']);
  expect(ages.get(4)).toContain('wallet.vanished');
  expect(ages.get(5)).toContain('operation.settled');
  expect(typesByAge({ 'period.*': 9 })).toEqual(
    new Map([[9, ['period.closed', 'period.reopened']]]),
  );
});
