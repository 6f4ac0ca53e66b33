/** Isolation of endpoints from each other, several daemons, rates and shutdown. */
import { expect, it } from 'vitest';
import { type EndpointInput, webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const SETTINGS = {
  send: { ...webhookDefaults.send, deadlineMs: 2_000 },
  slowAfterMs: 50,
  concurrency: 8,
  slowConcurrency: 12,
  connectionsPerOrigin: 12,
  inFlightPerEndpoint: 4,
};

const rig = useRig(SETTINGS);
const subscribe = async (path: string, input: Partial<EndpointInput> = {}) =>
  (await rig.subscribe(path, input)).endpoint.id;

const statesOf = async (endpointId: string) => {
  const counts: Record<string, number> = {};
  for (const { state } of await rig.deliveriesOf(endpointId))
    counts[state] = (counts[state] ?? 0) + 1;
  return counts;
};
/** Distinct pairs of path and event. */
const distinct = () =>
  new Set(rig.receiver.requests.map((r) => `${r.path} ${r.headers['webhook-id']}`)).size;

/** Emits an event to each endpoint that hangs, as many as `n`, and waits until all are slow. */
const hang = async (n: number, path = (i: number) => `/hangs${i}`) => {
  for (let i = 0; i < n; i++) {
    rig.receiver.behave({ do: 'hang' }, path(i));
    await subscribe(path(i));
  }
  await rig.emit(...walletEvents(30));
  await rig.deliverUntil(n);
};

it('An endpoint that hangs has one request in flight and does not delay others', async () => {
  await hang(1);
  const healthy = await subscribe('/healthy');
  await rig.emit(...walletEvents(50));
  await rig.deliverUntil(51);
  expect(rig.receiver.openMax('/hangs0')).toBe(1);
  expect(rig.receiver.requests.filter((r) => r.path === '/healthy').length).toBe(50);
  rig.receiver.release(503);
  await rig.webhooks.drain(5_000);
  expect(await statesOf(healthy)).toEqual({ delivered: 50 });
});

it('An endpoint that keeps up gets up to its cap in flight, from one on', async () => {
  rig.receiver.behave({ do: 'delay', ms: 10, status: 200 });
  const id = await subscribe('/quick');
  await rig.emit(...walletEvents(100));
  await rig.webhooks.runOnce(rig.clock.now());
  await rig.receiver.count(1);
  expect(rig.receiver.open()).toBe(1);
  await rig.deliver();
  expect(rig.receiver.openMax('/quick')).toBe(SETTINGS.inFlightPerEndpoint);
  expect(await statesOf(id)).toEqual({ delivered: 100 });
});

it('A full pool of slow sends holds back only endpoints known to be slow', async () => {
  await hang(SETTINGS.slowConcurrency + 2);
  const healthy = await subscribe('/healthy', { eventTypes: ['wallet.observed'] });
  await rig.emit(...walletEvents(20));
  await rig.deliverUntil(20, '/healthy');
  rig.receiver.release(503);
  await rig.webhooks.drain(5_000);
  expect(await statesOf(healthy)).toEqual({ delivered: 20 });
});

it('A slow endpoint that succeeds shares the slow slots with the others', async () => {
  rig.receiver.behave({ do: 'delay', ms: 2 * SETTINGS.slowAfterMs, status: 200 });
  for (let i = 0; i < 4; i++) await subscribe(`/slow${i}`);
  await rig.emit(...walletEvents(15));
  await rig.deliver();
  expect(rig.receiver.requests.length).toBe(60);
  expect(rig.receiver.openMax()).toBeGreaterThan(4);
  expect(rig.receiver.openMax()).toBeLessThanOrEqual(SETTINGS.slowConcurrency + 4);
});

it('A backlog of 20,000 does not delay the single delivery of another endpoint', async () => {
  const { sql } = rig.database.db;
  const crowded = await subscribe('/crowded');
  await rig.emit(walletEvent());
  await sql`
    insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, event_type,
      due_at, queued_at)
    select gen_random_uuid(), created_at, endpoint_id, event_id, event_type, due_at, queued_at
    from tallyhook.pending_deliveries, generate_series(1, 20000)
    where 'ep_' || endpoint_id = ${crowded}`;
  await subscribe('/single');
  await rig.emit(walletEvent());
  for (let i = 0; i < 3; i++) await rig.webhooks.runOnce(rig.clock.now());
  await rig.webhooks.drain(5_000);
  const paths = rig.receiver.requests.map((r) => r.path);
  expect(paths).toContain('/single');
  expect(paths.length).toBeLessThan(200);
});

it('A backlog is delivered completely, once per endpoint, within the concurrency', async () => {
  const endpoints = await Promise.all(['/a', '/b', '/c'].map((path) => subscribe(path)));
  for (let i = 0; i < 10; i++) await rig.emit(...walletEvents(100));
  await rig.deliver();
  expect([distinct(), rig.receiver.requests.length]).toEqual([3_000, 3_000]);
  for (const id of endpoints) expect(await statesOf(id)).toEqual({ delivered: 1_000 });
  expect(rig.receiver.openMax('/a')).toBeLessThanOrEqual(4);
  expect(rig.receiver.openMax()).toBeLessThanOrEqual(8);
});

it('The deliveries of a deleted endpoint are cancelled', async () => {
  const id = await subscribe('/deleted');
  await rig.emit(...walletEvents(5));
  await rig.webhooks.deleteEndpoint(id);
  await rig.deliver();
  expect(rig.receiver.requests).toEqual([]);
  expect(await statesOf(id)).toEqual({ cancelled: 5 });
});

it('A rate holds over all passes and daemons', async () => {
  await subscribe('/slow', { ratePerS: 10 });
  const other = rig.another();
  await rig.emit(...walletEvents(25));
  for (let ms = 0; ms <= 1_000; ms += 20) {
    await Promise.all([rig.webhooks.runOnce(rig.clock.now()), other.runOnce(rig.clock.now())]);
    await Promise.all([rig.webhooks.drain(5_000), other.drain(5_000)]);
    rig.clock.advance(20);
  }
  expect(rig.receiver.requests.length).toBeGreaterThanOrEqual(10);
  expect(rig.receiver.requests.length).toBeLessThanOrEqual(12);
  const { nextDueAt } = await rig.webhooks.runOnce(rig.clock.now());
  expect((nextDueAt ?? rig.clock.now()) - rig.clock.now()).toBeLessThanOrEqual(100);
});

it('Several daemons together deliver everything once', async () => {
  await subscribe('/shared');
  await subscribe('/shared2');
  const others = [rig.another(), rig.another()];
  for (let i = 0; i < 5; i++) await rig.emit(...walletEvents(100));
  await Promise.all([rig.webhooks, ...others].map((webhooks) => rig.deliver(webhooks)));
  expect([distinct(), rig.receiver.requests.length]).toEqual([1_000, 1_000]);
});

it('An expired claim of another daemon is sent again with the same event id', async () => {
  rig.receiver.behave({ do: 'hang' });
  const endpoint = await subscribe('/left');
  const [id] = await rig.emit(walletEvent());
  const dead = rig.another();
  await dead.runOnce(rig.clock.now());
  await rig.receiver.count(1);
  rig.receiver.answer(200);
  await rig.deliver();
  expect(rig.receiver.requests.length).toBe(1);
  rig.clock.advance(SETTINGS.send.deadlineMs + webhookDefaults.leaseMarginMs);
  await rig.deliver();
  expect(rig.receiver.requests.map((r) => r.headers['webhook-id'])).toEqual([id, id]);
  expect(await statesOf(endpoint)).toEqual({ delivered: 1 });
  // The late response of the first daemon is logged and does not change the delivery.
  rig.receiver.release(500);
  await dead.drain(5_000);
  const [delivery] = await rig.deliveriesOf(endpoint);
  expect(delivery).toMatchObject({ state: 'delivered', attempts: 1 });
  const attempts = await rig.webhooks.listAttempts(delivery?.id ?? '');
  expect(attempts.map((a) => a.status).sort()).toEqual([200, 500]);
});

it('A late success of an expired claim is logged beside the attempt that delivered', async () => {
  rig.receiver.behave({ do: 'hang' });
  const endpoint = await subscribe('/late');
  await rig.emit(walletEvent());
  const dead = rig.another();
  await dead.runOnce(rig.clock.now());
  await rig.receiver.count(1);
  rig.clock.advance(SETTINGS.send.deadlineMs + webhookDefaults.leaseMarginMs);
  rig.receiver.answer(202);
  await rig.deliver();
  rig.receiver.release(200);
  await dead.drain(5_000);
  const [delivery] = await rig.deliveriesOf(endpoint);
  expect(delivery).toMatchObject({ state: 'delivered', attempts: 1 });
  const attempts = await rig.webhooks.listAttempts(delivery?.id ?? '');
  expect(attempts.map((a) => a.status).sort()).toEqual([200, 202]);
});

it('Draining waits for deliveries in flight and stores their results', async () => {
  rig.receiver.behave({ do: 'delay', ms: 100, status: 200 });
  const endpoint = await subscribe('/slow');
  await rig.emit(walletEvent());
  await rig.webhooks.runOnce(rig.clock.now());
  await rig.webhooks.drain(5_000);
  expect(await statesOf(endpoint)).toEqual({ delivered: 1 });
});

it('Draining interrupts a send after its timeout, without using a schedule step', async () => {
  rig.receiver.behave({ do: 'hang' });
  const endpoint = await subscribe('/hangs');
  await rig.emit(walletEvent());
  await rig.webhooks.runOnce(rig.clock.now());
  await rig.receiver.count(1);
  await rig.webhooks.drain(0);
  const { sql } = rig.database.db;
  const rows = await sql`
    select d.schedule_step, d.attempts, a.error from tallyhook.pending_deliveries d
    join tallyhook.attempts a on a.delivery_id = d.id
    where 'ep_' || d.endpoint_id = ${endpoint}`;
  expect([...rows]).toEqual([{ scheduleStep: 0, attempts: 1, error: 'interrupted' }]);
  expect((await rig.webhooks.getEndpoint(endpoint)).health.consecutiveFailures).toBe(0);
});
