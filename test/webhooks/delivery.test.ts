/** Delivery to one endpoint: the request, what counts as success, retries. */
import { createHook } from 'node:async_hooks';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { storeResults } from '../../src/webhooks/delivery/result-writer.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { type Behaviour, startReceiver } from '../harness/receiver.ts';
import { useRig, verifyV1a, walletEvent } from './rig.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const QUICK = { send: { ...webhookDefaults.send, deadlineMs: 1_500 } };

const rig = useRig(QUICK);

/** The only delivery of an endpoint, with its attempts. */
const only = async (endpointId: string) => {
  const [delivery, ...others] = await rig.deliveriesOf(endpointId);
  if (!delivery || others.length > 0) throw new Error(`${others.length + 1} deliveries`);
  return { ...delivery, log: await rig.webhooks.listAttempts(delivery.id) };
};
/** Emits one event and delivers what is due. */
const deliverOne = async () => {
  const [id = ''] = await rig.emit(walletEvent());
  await rig.deliver();
  return id;
};

it('A delivery is a POST of the recorded body, signed with every scheme', async () => {
  const created = await rig.subscribe('/hook', { headers: { Authorization: 'Bearer receivers' } });
  const id = await deliverOne();
  const { method, path, headers, rawBody, body } = await rig.receiver.next();
  expect([method, path]).toEqual(['POST', '/hook']);
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    authorization: 'Bearer receivers',
    'webhook-id': id,
    'webhook-timestamp': String(rig.clock.now() / 1000),
  });
  const [row] = await rig.database.db.sql`
    select tallyhook.event_body(events) as body from tallyhook.events where 'evt_' || id = ${id}`;
  expect(body).toBe(row?.body);
  const [v1 = '', v1a = ''] = (headers['webhook-signature'] ?? '').split(' ');
  // `verify` of standardwebhooks compares with the machine's clock, so the test compares `sign`.
  expect(new Webhook(created.secret ?? '').sign(id, new Date(rig.clock.now()), body)).toBe(v1);
  const content = Buffer.concat([Buffer.from(`${id}.${headers['webhook-timestamp']}.`), rawBody]);
  expect(v1a.startsWith('v1a,')).toBe(true);
  expect(verifyV1a(created.newPublicKey ?? '', content, v1a)).toBe(true);
  expect(await only(created.endpoint.id)).toMatchObject({
    state: 'delivered',
    attempts: 1,
    log: [{ n: 1, result: 'delivered', status: 200 }],
  });
});

it('An attempt that delivers at once is in the row of its delivery, and stays when that is sent again', async () => {
  const { endpoint } = await rig.subscribe();
  await deliverOne();
  const rows = () => rig.database.db.sql`
    select a.n from tallyhook.attempts a join tallyhook.deliveries d on d.id = a.delivery_id
    where 'ep_' || d.endpoint_id = ${endpoint.id} order by a.n`;
  expect((await rows()).length).toBe(0);
  const { id } = await only(endpoint.id);
  await rig.webhooks.retryDelivery(id);
  expect((await only(endpoint.id)).log.map(({ n }) => n)).toEqual([1]);
  await rig.deliver();
  expect(await only(endpoint.id)).toMatchObject({
    attempts: 2,
    log: [
      { n: 1, result: 'delivered' },
      { n: 2, result: 'delivered' },
    ],
  });
  expect((await rows()).map(({ n }) => n)).toEqual([1, 2]);
});

it('A delivery is failing while it waits, pending or held, after an attempt that failed', async () => {
  const { endpoint } = await rig.subscribe();
  const shown = async () => {
    const { state, attempts, failing } = await only(endpoint.id);
    return { state, attempts, failing };
  };
  await rig.emit(walletEvent());
  expect(await shown()).toEqual({ state: 'pending', attempts: 0, failing: false });
  await rig.deliver();
  expect(await shown()).toEqual({ state: 'delivered', attempts: 1, failing: false });
  const { id } = await only(endpoint.id);
  await rig.webhooks.retryDelivery(id);
  expect(await shown()).toEqual({ state: 'pending', attempts: 1, failing: false });
  rig.receiver.answer(500);
  await rig.deliver();
  expect(await shown()).toEqual({ state: 'pending', attempts: 2, failing: true });
  await rig.webhooks.disable(endpoint.id);
  expect(await shown()).toEqual({ state: 'held', attempts: 2, failing: true });
  await rig.webhooks.enable(endpoint.id);
  rig.receiver.answer(200);
  await rig.webhooks.retryDelivery(id);
  await rig.deliver();
  expect(await shown()).toEqual({ state: 'delivered', attempts: 3, failing: false });
});

it('A message for a broker has the subject of its event as its key, whatever the order', async () => {
  for (const ordering of ['none', 'subject'] as const) {
    const destination = {
      kind: 'sqs',
      queueUrl: `${rig.receiver.url}/000000000000/events-${ordering}.fifo`,
      region: 'eu-west-1',
      accessKeyId: 'an id',
      secretAccessKey: 'a key of SQS',
    } as const;
    await rig.webhooks.createEndpoint({ destination, ordering }, 'ann');
  }
  const [one, other] = ['a', 'b'].map((digit) => `0x${digit.repeat(40)}`);
  await rig.emit(walletEvent(one), walletEvent(other), walletEvent(one));
  await rig.deliver();
  const messages = rig.receiver.requests.map(({ body }) => JSON.parse(body));
  expect(messages).toHaveLength(6);
  for (const { MessageBody, MessageAttributes, MessageGroupId } of messages) {
    const subject = `wallet:${JSON.parse(MessageBody).data.addr}`;
    expect(MessageAttributes['webhook-subject'].StringValue).toBe(subject);
    expect(MessageGroupId).toBe(subject);
  }
});

it('Every attempt has the same webhook-id and body, and its own timestamp', async () => {
  await rig.subscribe();
  rig.receiver.answer(500);
  const id = await deliverOne();
  rig.clock.advance(6 * SECOND);
  rig.receiver.answer(200);
  await rig.deliver();
  const [first, second] = await rig.receiver.count(2);
  expect([first?.headers['webhook-id'], second?.headers['webhook-id']]).toEqual([id, id]);
  const [t1, t2] = [first, second].map((r) => Number(r?.headers['webhook-timestamp']));
  expect((t2 ?? 0) - (t1 ?? 0)).toBe(6);
  expect(second?.body).toBe(first?.body);
});

it.each([200, 201, 202, 204, 299])('A response with status %i is a success', async (status) => {
  const { endpoint } = await rig.subscribe();
  rig.receiver.answer(status);
  await deliverOne();
  expect((await only(endpoint.id)).state).toBe('delivered');
});

it.each([300, 301, 302, 304, 307, 308, 400, 401, 404, 418, 500, 502])(
  'A response with status %i is a failure, and no redirect is followed',
  async (status) => {
    const { endpoint } = await rig.subscribe();
    rig.receiver.answer(status, { location: `${rig.receiver.url}/redirected` });
    await deliverOne();
    expect(await only(endpoint.id)).toMatchObject({
      state: 'pending',
      log: [{ result: 'retry', status, error: null }],
    });
    expect(rig.receiver.requests.map((r) => r.path)).toEqual(['/hook']);
  },
);

it('A failing delivery follows the schedule of ten attempts, then is exhausted', async () => {
  const { endpoint } = await rig.subscribe();
  const operational = await rig.subscribe('/operational', { eventTypes: ['delivery.*'] });
  rig.receiver.answer(500, {}, '/hook');
  const [eventId] = await rig.emit(walletEvent());
  const steps = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR].concat(
    [10, 14, 20, 24].map((hours) => hours * HOUR),
  );
  for (const step of steps) {
    await rig.deliver();
    const before = rig.receiver.requests.length;
    rig.clock.advance(step - 1);
    await rig.deliver();
    expect(rig.receiver.requests.length).toBe(before);
    rig.clock.advance(step * 0.1 + 1);
  }
  await rig.deliver();
  const delivery = await only(endpoint.id);
  expect(delivery).toMatchObject({ state: 'exhausted', attempts: 10 });
  expect(delivery.log.map((attempt) => attempt.n)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(delivery.log.at(-1)).toMatchObject({ result: 'exhausted', status: 500 });
  expect(await rig.events('delivery.exhausted')).toEqual([
    expect.objectContaining({
      endpoint_id: endpoint.id,
      delivery_id: delivery.id,
      event_id: eventId,
      attempts: 10,
    }),
  ]);
  expect((await only(operational.endpoint.id)).state).toBe('delivered');
});

it('A delivery whose secret cannot be decrypted uses no attempt, and is sent once it can', async () => {
  const { endpoint } = await rig.subscribe();
  const { sql } = rig.database.owner;
  const changeTo = (text: string) =>
    sql`update tallyhook.endpoints set encrypted_secrets = ${text} where id = ${endpoint.id}`;
  const [row] = await sql<{ text: string }[]>`
    select encrypted_secrets as text from tallyhook.endpoints where id = ${endpoint.id}`;
  await changeTo(`${row?.text.slice(0, -4)}AAAA`);
  await rig.emit(walletEvent());
  for (let minute = 0; minute < 20; minute++) {
    await rig.deliver();
    rig.clock.advance(MINUTE);
  }
  expect(await only(endpoint.id)).toMatchObject({ state: 'pending', attempts: 0, log: [] });
  const [health] = await sql`select consecutive_failures, failing_since
    from tallyhook.endpoint_health where endpoint_id = ${endpoint.id}`;
  expect(health).toMatchObject({ consecutiveFailures: 0, failingSince: null });
  expect(rig.logged.filter((line) => line.includes('could not be built')).length).toBe(20);
  await changeTo(row?.text ?? '');
  rig.clock.advance(MINUTE);
  await rig.deliver();
  expect(await only(endpoint.id)).toMatchObject({ state: 'delivered', attempts: 1 });
});

it.each([
  ['in seconds', () => '60', 60 * SECOND],
  ['as a date', (now: number) => new Date(now + 90_000).toUTCString(), 90 * SECOND],
  ['of more than a day', () => '999999', 24 * HOUR],
])('Retry-After %s is obeyed and uses no schedule step', async (_, text, wait) => {
  const { endpoint } = await rig.subscribe();
  // HTTP dates have whole seconds.
  rig.clock.set(Math.ceil(rig.clock.now() / SECOND) * SECOND);
  // The clock of the receiver is three hours ahead.
  const theirs = rig.clock.now() + 3 * HOUR;
  const date = new Date(theirs).toUTCString();
  rig.receiver.answer(429, { 'retry-after': text(theirs), date });
  await deliverOne();
  const { health } = await rig.webhooks.getEndpoint(endpoint.id);
  expect(health.pausedUntil).toBe(rig.clock.now() + wait);
  rig.clock.advance(wait - 1);
  await rig.deliver();
  expect(rig.receiver.requests.length).toBe(1);
  rig.receiver.answer(200);
  rig.clock.advance(2);
  await rig.deliver();
  const { sql } = rig.database.db;
  const [row] = await sql`
    select attempts, state from tallyhook.deliveries
    where 'ep_' || endpoint_id = ${endpoint.id}`;
  expect(row).toEqual({ attempts: 2, state: 'delivered' });
});

it('Retry-After pauses all deliveries of the endpoint', async () => {
  await rig.subscribe();
  rig.receiver.answer(503, { 'retry-after': '120' });
  await deliverOne();
  rig.receiver.answer(200);
  await rig.emit(walletEvent());
  const pass = await rig.webhooks.runOnce(rig.clock.now());
  expect(pass).toEqual({ claimed: 0, more: false, nextDueAt: rig.clock.now() + 120 * SECOND });
  rig.clock.advance(119 * SECOND);
  await rig.deliver();
  expect(rig.receiver.requests.length).toBe(1);
  rig.clock.advance(SECOND);
  await rig.deliver();
  expect(rig.receiver.requests.length).toBe(3);
});

it.each([
  ['that never arrives', { do: 'hang' }, null, 'timeout'],
  ['cut off before its head', { do: 'reset', when: 'before_head' }, null, 'reset'],
  ['with 500 whose body never ends', { do: 'drip', status: 500, everyMs: 20 }, 500, null],
  ['with 500 cut off in its body', { do: 'reset', when: 'in_body', status: 500 }, 500, null],
] as const)('A response %s is a failure', async (_, behaviour, status, error) => {
  const { endpoint } = await rig.subscribe();
  rig.receiver.behave(behaviour);
  await deliverOne();
  expect(await only(endpoint.id)).toMatchObject({
    state: 'pending',
    log: [{ result: 'retry', status, error }],
  });
});

it.each<[string, Behaviour, string]>([
  ['never ends', { do: 'drip', status: 201, everyMs: 20 }, '.'],
  ['never begins', { do: 'stall', status: 202 }, ''],
  ['is cut off', { do: 'reset', when: 'in_body', status: 200 }, 'half'],
  ['is not what its head says', { do: 'garble', status: 200 }, ''],
  ['is longer than what is read', { do: 'flood', status: 200 }, 'x'],
])(
  'A response 2xx whose body %s is a success: the receiver has the event',
  async (_, does, begins) => {
    const { endpoint } = await rig.subscribe();
    rig.receiver.behave(does);
    await deliverOne();
    const { state, log } = await only(endpoint.id);
    expect({ state, log }).toMatchObject({
      state: 'delivered',
      log: [
        { result: 'delivered', error: null, responseBody: expect.stringMatching(`^${begins}`) },
      ],
    });
    expect(log[0]?.durationMs).toBeLessThan(QUICK.send.bodyMs + 1_000);
    await rig.deliver();
    expect(rig.receiver.requests).toHaveLength(1);
  },
);

it('After a body that stalls the endpoint still gets its events without a pause', async () => {
  await rig.subscribe();
  rig.receiver.behave({ do: 'stall', status: 200 });
  await deliverOne();
  await deliverOne();
  expect(rig.receiver.requests).toHaveLength(2);
});

it('An endless response is read up to 64 KiB and stored up to 16 KiB', async () => {
  const { endpoint } = await rig.subscribe();
  rig.receiver.behave({ do: 'flood', status: 200 });
  await deliverOne();
  const { state, log } = await only(endpoint.id);
  expect(state).toBe('delivered');
  expect(log[0]?.responseBody?.length).toBe(16 * 1024);
  expect(log[0]?.durationMs).toBeLessThan(QUICK.send.deadlineMs);
});

it('Response bytes that Postgres text cannot contain are replaced', async () => {
  const { endpoint } = await rig.subscribe();
  rig.receiver.behave({ do: 'answer', status: 200, body: Buffer.from([0x61, 0, 0xff, 0x62]) });
  await deliverOne();
  expect((await only(endpoint.id)).log[0]?.responseBody).toBe('a\ufffd\ufffdb');
});

it("An endpoint's secrets in a response are redacted before it is stored", async () => {
  const created = await rig.subscribe('/hook', { headers: { 'X-Api-Key': 'planted-secret' } });
  const echo = `${created.secret} and planted-secret`;
  rig.receiver.behave({ do: 'answer', status: 500, body: echo });
  await deliverOne();
  const { log } = await only(created.endpoint.id);
  expect(log[0]?.responseBody).toBe('[secret] and [secret]');
});

it('Secrets that a receiver repeats in headers, a body, or where it redirects are not stored, however written', async () => {
  const authorization = `Basic ${Buffer.from('shop-user:pass&word').toString('base64')}`;
  const created = await rig.subscribe('/hook', { headers: { Authorization: authorization } });
  const bare = String(created.secret).slice('whsec_'.length);
  const bytes = Buffer.from(bare, 'base64');
  const spelled = [encodeURIComponent(bare), bytes.toString('hex'), bytes.toString('base64url')];
  const got = JSON.stringify({ got: bytes.toString('latin1') });
  const body = `${got} pass&amp;word <b>shop-user</b>`;
  const location = `/login?key=${spelled[0]}&user=shop-user&h=${spelled[1]}`;
  const headers = { location, server: spelled[2] ?? '' };
  rig.receiver.behave({ do: 'answer', status: 302, headers, body });
  await deliverOne();
  const { log } = await only(created.endpoint.id);
  expect(log[0]).toMatchObject({
    responseBody: '{"got":"[secret]"} [secret] <b>[secret]</b>',
    responseHeaders: {
      location: '/login?key=[secret]&user=[secret]&h=[secret]',
      server: '[secret]',
    },
  });
});

it('A secret is not stored in part where the response is cut', async () => {
  const created = await rig.subscribe('/hook');
  const secret = String(created.secret);
  const cut = webhookDefaults.send.keepBytesMax - 30;
  rig.receiver.behave({ do: 'answer', status: 500, body: `${' '.repeat(cut)}${secret}` });
  await deliverOne();
  const { log } = await only(created.endpoint.id);
  expect(log[0]?.responseBody?.trim()).toBe('[secret]');
});

it('Tokens in the URL of an endpoint are redacted in a response, its names are not', async () => {
  const { endpoint } = await rig.subscribe('/webhooks/T0123456789ABCDEF?key=s%C3%A9cret&v=1');
  const location = '/webhooks/T0123456789ABCDEF/login?key=s%C3%A9cret&v=1';
  const body = 'Cannot POST /webhooks/T0123456789ABCDEF with s\u00e9cret';
  rig.receiver.behave({ do: 'answer', status: 404, headers: { location }, body });
  await deliverOne();
  const { log } = await only(endpoint.id);
  expect(log[0]).toMatchObject({
    responseBody: 'Cannot POST /webhooks/[secret] with [secret]',
    responseHeaders: { location: '/webhooks/[secret]/login?key=[secret]&v=1' },
  });
});

it('A refused connection is a failure', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.receiver.close();
  await deliverOne();
  expect((await only(endpoint.id)).log[0]).toMatchObject({ status: null, error: 'refused' });
  rig.receiver = await startReceiver();
});

it('A receiver is reached by a name of the hosts file', async () => {
  const url = `http://localhost:${rig.receiver.port}/by-name`;
  const { endpoint } = await rig.webhooks.createEndpoint({ url }, 'ann');
  await deliverOne();
  expect((await only(endpoint.id)).state).toBe('delivered');
  expect(rig.receiver.requests[0]?.headers.host).toBe(`localhost:${rig.receiver.port}`);
});

it('A name is looked up without the threads of the system resolver, which others need', async () => {
  const types = new Set<string>();
  const hook = createHook({ init: (_id, type) => void types.add(type) }).enable();
  await rig.webhooks.createEndpoint({ url: 'http://receiver.invalid/' }, 'ann');
  await deliverOne();
  hook.disable();
  expect([types.has('QUERYWRAP'), types.has('GETADDRINFOREQWRAP')]).toEqual([true, false]);
});

it('Nothing is sent to an address whose range is no longer allowed', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.emit(walletEvent());
  await rig.deliver(rig.another({ ...QUICK, allowCidrs: [] }));
  expect(rig.receiver.requests).toEqual([]);
  const { log } = await only(endpoint.id);
  expect(log[0]).toMatchObject({ status: null, error: 'blocked_address' });
});

it('A group of results can be stored again after the response to its commit was lost', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.emit(walletEvent(), walletEvent());
  const now = rig.clock.now();
  const attempt = {
    n: 1,
    at: now,
    durationMs: 5,
    result: 'retry' as const,
    status: 500,
    error: null,
    responseBody: '',
    responseHeaders: null,
  };
  const updates = (await rig.deliveriesOf(endpoint.id)).map(({ id }) => ({
    id,
    fence: 0,
    attempt,
    state: 'pending' as const,
    dueAt: now + 1,
    scheduleStep: 1,
    outOfOrder: false,
  }));
  // The second group repeats a result of the first.
  await storeResults(rig.database.db, updates.slice(0, 1), now);
  await storeResults(rig.database.db, updates, now);
  for (const { id, attempts } of await rig.deliveriesOf(endpoint.id)) {
    expect(attempts).toBe(1);
    expect(await rig.webhooks.listAttempts(id)).toMatchObject([{ n: 1, status: 500 }]);
  }
});
