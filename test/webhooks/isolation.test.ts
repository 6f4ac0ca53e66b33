/**
 * A bad receiver hurts only itself; several daemons share the work; a crash repeats with the same
 * id.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EndpointInput, webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { openRig, type Rig, walletEvent } from './house.ts';

const SETTINGS = {
  send: { ...webhookDefaults.send, deadlineMs: 2_000 },
  slowAfterMs: 50,
  concurrency: 8,
  inFlightPerEndpoint: 4,
};

let rig: Rig;
let receiver: Receiver;
beforeAll(async () => {
  rig = await openRig(SETTINGS);
});
afterAll(() => rig.close());
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(async () => {
  receiver.answer(200);
  receiver.release();
  const { data } = await rig.webhooks.listEndpoints({ cursor: '', limit: 100 });
  for (const { id } of data) await rig.webhooks.deleteEndpoint(id);
  await rig.deliver();
  await receiver.close();
});

const subscribe = async (path: string, input: Partial<EndpointInput> = {}) => {
  const url = `${receiver.url}${path}`;
  return (await rig.webhooks.createEndpoint({ url, ...input }, 'ann')).endpoint.id;
};

/** Passes until the receiver has that many requests in all; sends are not waited for. */
const until = (requests: number) => rig.loop(() => receiver.requests.length >= requests);

const statesOf = async (endpointId: string) => {
  const { sql } = rig.database.db;
  const rows = await sql<{ state: string; n: number }[]>`
    select state, count(*)::int as n from tallyhook.deliveries
    where endpoint_id = ${endpointId} group by state`;
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
};

describe('an endpoint that hangs', () => {
  test('has at most its cap on the wire, and the others get everything meanwhile', async () => {
    receiver.behave({ do: 'hang' }, '/hangs');
    await subscribe('/hangs');
    await rig.emit(...Array.from({ length: 30 }, () => walletEvent()));
    await until(4);
    const healthy = await subscribe('/healthy');
    await rig.emit(...Array.from({ length: 50 }, () => walletEvent()));
    await until(54);
    expect(receiver.open('/hangs')).toBe(4);
    expect(receiver.openMax('/hangs')).toBe(4);
    expect(receiver.requests.filter((r) => r.path === '/healthy').length).toBe(50);
    receiver.release(503);
    await rig.webhooks.drain(5_000);
    expect(await statesOf(healthy)).toEqual({ delivered: 50 });
  });

  test('among many that hang leaves room for one that does not', async () => {
    // Five times four sends that hang are more than all the quick slots.
    for (let i = 0; i < 5; i++) {
      receiver.behave({ do: 'hang' }, `/hangs${i}`);
      await subscribe(`/hangs${i}`);
    }
    await rig.emit(...Array.from({ length: 10 }, () => walletEvent()));
    await until(20);
    const healthy = await subscribe('/healthy', { eventTypes: ['wallet.observed'] });
    await rig.emit(walletEvent());
    await until(21);
    expect(receiver.requests.at(-1)?.path).toBe('/healthy');
    receiver.release(503);
    await rig.webhooks.drain(5_000);
    expect(await statesOf(healthy)).toEqual({ delivered: 1 });
  });
});

describe('a backlog', () => {
  test('of one endpoint is not served before the single delivery of another', async () => {
    const { sql } = rig.database.db;
    const crowded = await subscribe('/crowded');
    await rig.emit(walletEvent());
    await sql`
      insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, subject,
        subject_seq, state, due_at, queued_at)
      select id || n, created_at, endpoint_id, event_id, event_type, subject, subject_seq, state,
        due_at, queued_at
      from tallyhook.deliveries, generate_series(1, 20000) n where endpoint_id = ${crowded}`;
    await subscribe('/single');
    await rig.emit(walletEvent());
    for (let i = 0; i < 3; i++) await rig.webhooks.runOnce(rig.clock.now());
    await rig.webhooks.drain(5_000);
    const paths = receiver.requests.map((r) => r.path);
    expect(paths).toContain('/single');
    expect(paths.length).toBeLessThan(200);
  });

  test('is delivered whole, each event once', async () => {
    const endpoints = await Promise.all(['/a', '/b', '/c'].map((path) => subscribe(path)));
    for (let i = 0; i < 10; i++)
      await rig.emit(...Array.from({ length: 100 }, () => walletEvent()));
    await rig.deliver();
    const seen = new Set(receiver.requests.map((r) => `${r.path} ${r.headers['webhook-id']}`));
    expect(seen.size).toBe(3_000);
    expect(receiver.requests.length).toBe(3_000);
    for (const id of endpoints) expect(await statesOf(id)).toEqual({ delivered: 1_000 });
    expect(receiver.openMax('/a')).toBeLessThanOrEqual(4);
    expect(receiver.openMax()).toBeLessThanOrEqual(8);
  });

  test('of a deleted endpoint is cancelled', async () => {
    const id = await subscribe('/gone');
    await rig.emit(...Array.from({ length: 5 }, () => walletEvent()));
    await rig.webhooks.deleteEndpoint(id);
    await rig.deliver();
    expect(receiver.requests).toEqual([]);
    expect(await statesOf(id)).toEqual({ cancelled: 5 });
  });
});

describe('a rate', () => {
  test('is kept over all passes and daemons', async () => {
    await subscribe('/slow', { ratePerS: 10 });
    const other = rig.another();
    await rig.emit(...Array.from({ length: 25 }, () => walletEvent()));
    for (let ms = 0; ms <= 1_000; ms += 20) {
      await Promise.all([rig.webhooks.runOnce(rig.clock.now()), other.runOnce(rig.clock.now())]);
      rig.clock.advance(20);
    }
    await Promise.all([rig.webhooks.drain(5_000), other.drain(5_000)]);
    expect(receiver.requests.length).toBeGreaterThanOrEqual(10);
    expect(receiver.requests.length).toBeLessThanOrEqual(12);
    const { nextDueAt } = await rig.webhooks.runOnce(rig.clock.now());
    expect((nextDueAt ?? rig.clock.now()) - rig.clock.now()).toBeLessThanOrEqual(100);
  });
});

describe('several daemons', () => {
  test('deliver everything once between them', async () => {
    await subscribe('/shared');
    await subscribe('/shared2');
    const others = [rig.another(), rig.another()];
    for (let i = 0; i < 5; i++) await rig.emit(...Array.from({ length: 100 }, () => walletEvent()));
    await Promise.all([rig.webhooks, ...others].map((webhooks) => rig.deliver(webhooks)));
    const seen = new Set(receiver.requests.map((r) => `${r.path} ${r.headers['webhook-id']}`));
    expect([seen.size, receiver.requests.length]).toEqual([1_000, 1_000]);
  });

  test('take over what another left, with the same id, when its lease has ended', async () => {
    receiver.behave({ do: 'hang' });
    const endpoint = await subscribe('/left');
    const [id] = await rig.emit(walletEvent());
    const dead = rig.another();
    await dead.runOnce(rig.clock.now());
    await receiver.count(1);
    receiver.answer(200);
    await rig.deliver();
    expect(receiver.requests.length).toBe(1);
    rig.clock.advance(SETTINGS.send.deadlineMs + webhookDefaults.leaseMarginMs);
    await rig.deliver();
    expect(receiver.requests.map((r) => r.headers['webhook-id'])).toEqual([id, id]);
    expect(await statesOf(endpoint)).toEqual({ delivered: 1 });
    // The late answer of the first is logged, and changes nothing.
    receiver.release(500);
    await dead.drain(5_000);
    expect(await statesOf(endpoint)).toEqual({ delivered: 1 });
    const page = await rig.webhooks.listDeliveries(
      { endpointId: endpoint },
      { cursor: '', limit: 2 },
    );
    const attempts = await rig.webhooks.listAttempts(page.data[0]?.id ?? '');
    expect(attempts.map((a) => a.status).sort()).toEqual([200, 500]);
    expect(page.data[0]).toMatchObject({ state: 'delivered', attempts: 1 });
  });
});

describe('draining', () => {
  test('waits for what is on the wire and settles it', async () => {
    receiver.behave({ do: 'delay', ms: 100, status: 200 });
    const endpoint = await subscribe('/slow');
    await rig.emit(walletEvent());
    await rig.webhooks.runOnce(rig.clock.now());
    await rig.webhooks.drain(5_000);
    expect(rig.webhooks.held()).toBe(0);
    expect(await statesOf(endpoint)).toEqual({ delivered: 1 });
  });

  test('breaks off what takes too long, logs it, and repeats it without using a try', async () => {
    receiver.behave({ do: 'hang' });
    const endpoint = await subscribe('/hangs');
    await rig.emit(walletEvent());
    await rig.webhooks.runOnce(rig.clock.now());
    await receiver.count(1);
    await rig.webhooks.drain(0);
    const { sql } = rig.database.db;
    const rows = await sql`
      select d.tries, d.attempts, a.error from tallyhook.deliveries d
      join tallyhook.attempts a on a.delivery_id = d.id where d.endpoint_id = ${endpoint}`;
    expect([...rows]).toEqual([{ tries: 0, attempts: 1, error: 'interrupted' }]);
    expect((await rig.webhooks.getEndpoint(endpoint)).health.consecutiveFailures).toBe(0);
  });
});
