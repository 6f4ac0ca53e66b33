/** One endpoint, one receiver: what is sent, what counts as success, and when it is sent again. */
import { verify } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { verifyingKey } from '../../src/webhooks/endpoints/keys.ts';
import { type EndpointInput, webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { openRig, type Rig, walletEvent } from './house.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const QUICK = { send: { ...webhookDefaults.send, deadlineMs: 300 } };

let rig: Rig;
let receiver: Receiver;
beforeAll(async () => {
  rig = await openRig(QUICK);
});
afterAll(() => rig.close());
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(async () => {
  const { data } = await rig.webhooks.listEndpoints({ cursor: '', limit: 100 });
  for (const { id } of data) await rig.webhooks.deleteEndpoint(id);
  await rig.deliver();
  await receiver.close();
});

const subscribe = (input: Partial<EndpointInput> = {}) =>
  rig.webhooks.createEndpoint({ url: `${receiver.url}/hook`, ...input }, 'ann');

const only = async (endpointId: string) => {
  const page = await rig.webhooks.listDeliveries({ endpointId }, { cursor: '', limit: 10 });
  const [delivery] = page.data;
  if (!delivery || page.data.length > 1) throw new Error(`${page.data.length} deliveries`);
  return { ...delivery, log: await rig.webhooks.listAttempts(delivery.id) };
};

describe('a delivery', () => {
  test('is a POST of the body as it was recorded, signed with every scheme', async () => {
    const made = await subscribe({ headers: { Authorization: 'Bearer receivers-own' } });
    const [id = ''] = await rig.emit(walletEvent());
    await rig.deliver();
    const { method, path, headers, rawBody, body } = await receiver.next();
    expect([method, path]).toEqual(['POST', '/hook']);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      authorization: 'Bearer receivers-own',
      'webhook-id': id,
      'webhook-timestamp': String(rig.clock.now() / 1000),
    });
    const [row] = await rig.database.db.sql`select body from tallyhook.events where id = ${id}`;
    expect(body).toBe(row?.body);
    const [v1 = '', v1a = ''] = (headers['webhook-signature'] ?? '').split(' ');
    // That verifier believes the machine's clock only, so it signs anew instead.
    const verifier = new Webhook(made.secret ?? '');
    expect(verifier.sign(id, new Date(rig.clock.now()), body)).toBe(v1);
    const content = Buffer.concat([Buffer.from(`${id}.${headers['webhook-timestamp']}.`), rawBody]);
    const key = verifyingKey(made.publicKey ?? '');
    expect(v1a.startsWith('v1a,')).toBe(true);
    expect(verify(null, content, key, Buffer.from(v1a.slice(4), 'base64'))).toBe(true);
    expect(await only(made.endpoint.id)).toMatchObject({
      state: 'delivered',
      attempts: 1,
      log: [{ n: 1, verdict: 'delivered', status: 200 }],
    });
  });

  test('keeps its id on every attempt and gets the timestamp of each', async () => {
    await subscribe();
    receiver.answer(500);
    const [id] = await rig.emit(walletEvent());
    await rig.deliver();
    rig.clock.advance(6 * SECOND);
    receiver.answer(200);
    await rig.deliver();
    const [first, second] = await receiver.count(2);
    expect([first?.headers['webhook-id'], second?.headers['webhook-id']]).toEqual([id, id]);
    const [t1, t2] = [first, second].map((r) => Number(r?.headers['webhook-timestamp']));
    expect((t2 ?? 0) - (t1 ?? 0)).toBe(6);
    expect(second?.body).toBe(first?.body);
  });

  test.each([200, 201, 202, 204, 299])('is delivered by status %i', async (status) => {
    const { endpoint } = await subscribe();
    receiver.answer(status);
    await rig.emit(walletEvent());
    await rig.deliver();
    expect((await only(endpoint.id)).state).toBe('delivered');
  });

  test.each([300, 301, 302, 304, 307, 308, 400, 401, 404, 418, 500, 502])(
    'is not delivered by status %i, and nothing is followed',
    async (status) => {
      const { endpoint } = await subscribe();
      receiver.answer(status, { location: `${receiver.url}/elsewhere` });
      await rig.emit(walletEvent());
      await rig.deliver();
      expect(await only(endpoint.id)).toMatchObject({
        state: 'pending',
        log: [{ verdict: 'retry', status, error: null }],
      });
      expect(receiver.requests.map((r) => r.path)).toEqual(['/hook']);
    },
  );

  test('follows the schedule of ten tries, never earlier, and then is exhausted', async () => {
    const { endpoint } = await subscribe();
    const told = await subscribe({ url: `${receiver.url}/told`, eventTypes: ['delivery.*'] });
    receiver.answer(500, {}, '/hook');
    const [eventId] = await rig.emit(walletEvent());
    const steps = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR].concat(
      [10, 14, 20, 24].map((hours) => hours * HOUR),
    );
    for (const step of steps) {
      await rig.deliver();
      const before = receiver.requests.length;
      rig.clock.advance(step - 1);
      await rig.deliver();
      expect(receiver.requests.length).toBe(before);
      rig.clock.advance(step * 0.1 + 1);
    }
    await rig.deliver();
    const delivery = await only(endpoint.id);
    expect(delivery).toMatchObject({ state: 'exhausted', attempts: 10 });
    expect(delivery.log.map((attempt) => attempt.n)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(delivery.log.at(-1)).toMatchObject({ verdict: 'exhausted', status: 500 });
    expect(await rig.events('delivery.exhausted')).toEqual([
      expect.objectContaining({
        endpoint_id: endpoint.id,
        delivery_id: delivery.id,
        event_id: eventId,
        attempts: 10,
      }),
    ]);
    expect((await only(told.endpoint.id)).state).toBe('delivered');
  });

  test.each([
    ['seconds', () => '60', 60 * SECOND],
    ['a date', (now: number) => new Date(now + 90_000).toUTCString(), 90 * SECOND],
    ['more than a day', () => '999999', 24 * HOUR],
  ])('deferred by Retry-After in %s waits for it and uses up no try', async (_, text, wait) => {
    const { endpoint } = await subscribe();
    // A date has whole seconds.
    rig.clock.set(Math.ceil(rig.clock.now() / SECOND) * SECOND);
    receiver.answer(429, { 'retry-after': text(rig.clock.now()) });
    await rig.emit(walletEvent());
    await rig.deliver();
    expect((await rig.webhooks.getEndpoint(endpoint.id)).health.holdUntil).toBe(
      rig.clock.now() + wait,
    );
    rig.clock.advance(wait - 1);
    await rig.deliver();
    expect(receiver.requests.length).toBe(1);
    receiver.answer(200);
    rig.clock.advance(2);
    await rig.deliver();
    const { sql } = rig.database.db;
    const [row] = await sql`
      select attempts, tries, state from tallyhook.deliveries where endpoint_id = ${endpoint.id}`;
    expect(row).toEqual({ attempts: 2, tries: 1, state: 'delivered' });
  });

  test('holds back the other deliveries of an endpoint that asked to wait', async () => {
    await subscribe();
    receiver.answer(503, { 'retry-after': '120' });
    await rig.emit(walletEvent());
    await rig.deliver();
    receiver.answer(200);
    await rig.emit(walletEvent());
    rig.clock.advance(119 * SECOND);
    await rig.deliver();
    expect(receiver.requests.length).toBe(1);
    rig.clock.advance(SECOND);
    await rig.deliver();
    expect(receiver.requests.length).toBe(3);
  });

  test('answered 410 disables its endpoint at once', async () => {
    const { endpoint } = await subscribe();
    receiver.answer(410);
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(await rig.webhooks.getEndpoint(endpoint.id)).toMatchObject({
      state: 'disabled',
      stateReason: 'gone',
    });
    expect((await rig.events('endpoint.disabled')).at(-1)).toMatchObject({
      endpoint_id: endpoint.id,
      reason: 'gone',
    });
    await rig.emit(walletEvent());
    rig.clock.advance(48 * HOUR);
    await rig.deliver();
    expect(receiver.requests.length).toBe(1);
    receiver.answer(200);
    await rig.webhooks.enable(endpoint.id);
    await rig.deliver();
    expect(await only(endpoint.id)).toMatchObject({ state: 'delivered', attempts: 2 });
  });
});

describe('an answer', () => {
  test.each([
    ['that never comes', { do: 'hang' }, null, 'timeout'],
    ['that drips without an end', { do: 'drip', status: 200, everyMs: 20 }, 200, 'timeout'],
    ['that is cut before its head', { do: 'reset', when: 'before_head' }, null, 'reset'],
    ['that is cut in its body', { do: 'reset', when: 'in_body' }, 200, 'reset'],
  ] as const)('%s is a failure', async (_, behaviour, status, error) => {
    const { endpoint } = await subscribe();
    receiver.behave(behaviour);
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(await only(endpoint.id)).toMatchObject({
      state: 'pending',
      log: [{ verdict: 'retry', status, error }],
    });
  });

  test('without an end is read to 64 KiB, kept to 16 KiB, and then cut off', async () => {
    const { endpoint } = await subscribe();
    receiver.behave({ do: 'flood', status: 200 });
    await rig.emit(walletEvent());
    await rig.deliver();
    const { state, log } = await only(endpoint.id);
    expect(state).toBe('delivered');
    expect(log[0]?.responseBody?.length).toBe(16 * 1024);
    expect(log[0]?.durationMs).toBeLessThan(QUICK.send.deadlineMs);
  });

  test('with bytes that Postgres does not take is kept without them', async () => {
    const { endpoint } = await subscribe();
    receiver.behave({ do: 'answer', status: 200, body: Buffer.from([0x61, 0, 0xff, 0x62]) });
    await rig.emit(walletEvent());
    await rig.deliver();
    expect((await only(endpoint.id)).log[0]?.responseBody).toBe('a\ufffd\ufffdb');
  });

  test('that repeats our secrets is kept without them', async () => {
    const made = await subscribe({ headers: { 'X-Api-Key': 'planted-header-secret' } });
    const echo = `${made.secret} and planted-header-secret`;
    receiver.behave({ do: 'answer', status: 500, body: echo });
    await rig.emit(walletEvent());
    await rig.deliver();
    const { log } = await only(made.endpoint.id);
    expect(log[0]?.responseBody).toBe('[secret] and [secret]');
  });

  test('cannot come from where nobody listens', async () => {
    const { endpoint } = await subscribe();
    await receiver.close();
    await rig.emit(walletEvent());
    await rig.deliver();
    expect((await only(endpoint.id)).log[0]).toMatchObject({ status: null, error: 'refused' });
    receiver = await startReceiver();
  });
});

describe('nothing is sent', () => {
  test('to an address whose range is no longer allowed', async () => {
    const { endpoint } = await subscribe();
    const strict = rig.another({ ...QUICK, allowCidrs: [] });
    await rig.emit(walletEvent());
    await rig.deliver(strict);
    expect(receiver.requests).toEqual([]);
    const { log } = await only(endpoint.id);
    expect(log[0]).toMatchObject({ status: null, error: 'blocked_address' });
  });
});
