/**
 * Endpoints as people handle them, on a real database: who gets what, secrets, rotation, on and
 * off.
 */
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { must } from '../../src/kernel/assert.ts';
import { type EndpointInput, webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { openRig, type Rig, walletEvent } from './house.ts';

const HOUR = 3_600_000;

let rig: Rig;
let receiver: Receiver;
beforeAll(async () => {
  rig = await openRig();
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

const create = (input: Partial<EndpointInput> = {}) =>
  rig.webhooks.createEndpoint({ url: `${receiver.url}/hook`, ...input }, 'ann');
const attempted = () => receiver.requests.length;

describe('creating', () => {
  test('answers the secret once; afterwards only the public key is shown', async () => {
    const made = await create({ headers: { 'X-Key': 'value-of-a-header' } });
    expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(made.publicKey).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
    const shown = await rig.webhooks.getEndpoint(made.endpoint.id);
    expect(shown).toMatchObject({ publicKey: made.publicKey, headerNames: ['X-Key'] });
    expect(JSON.stringify(shown)).not.toMatch(/whsec_|whsk_|value-of-a-header/);
    expect(await rig.webhooks.publicKeys()).toEqual([
      { endpointId: made.endpoint.id, publicKey: made.publicKey },
    ]);
  });

  test('leaves no secret readable in the database or the log', async () => {
    const made = await create({ headers: { 'X-Key': 'value-of-a-header' } });
    await rig.emit(walletEvent());
    receiver.behave({ do: 'answer', status: 500, body: made.secret ?? '' });
    await rig.deliver();
    const { sql } = rig.database.owner;
    const tables = await sql<{ name: string }[]>`
      select tablename as name from pg_tables where schemaname = 'tallyhook'`;
    for (const { name } of tables) {
      const rows = await sql`select t::text as row from ${sql(`tallyhook.${name}`)} t`;
      const text = rows.map(({ row }) => row).join('\n');
      expect(text).not.toContain((made.secret ?? '').slice('whsec_'.length));
      expect(text).not.toContain('value-of-a-header');
    }
    expect(rig.logged.join('')).not.toContain((made.secret ?? '').slice('whsec_'.length));
  });

  test.each<[string, Partial<EndpointInput>, string]>([
    ['an unknown type', { eventTypes: ['wallet.exploded'] }, 'invalid_request'],
    ['an unknown group', { eventTypes: ['purse.*'] }, 'invalid_request'],
    ['half a pattern', { eventTypes: ['wallet.bal*'] }, 'invalid_request'],
    ['no types', { eventTypes: [] }, 'invalid_request'],
    ['no scheme', { signing: [] }, 'invalid_request'],
    ['a scheme twice', { signing: ['v1', 'v1'] }, 'invalid_request'],
    ['no rate', { ratePerS: 0 }, 'invalid_request'],
    ['a rate that is no number', { ratePerS: Number.NaN }, 'invalid_request'],
    ['a header of ours', { headers: { 'Webhook-Id': 'x' } }, 'invalid_request'],
    ['a header of HTTP', { headers: { 'content-length': '0' } }, 'invalid_request'],
    ['a header with a line break', { headers: { 'X-A': 'a\r\nX-B: b' } }, 'invalid_request'],
    ['a header twice', { headers: { 'X-A': '1', 'x-a': '2' } }, 'invalid_request'],
    ['a private address', { url: 'http://10.0.0.1/' }, 'url_refused'],
    ['another protocol', { url: 'ftp://example.com/' }, 'url_refused'],
  ])('refuses %s', async (_, input, code) => {
    await expect(create(input)).rejects.toMatchObject({ code });
  });
});

describe('an event', () => {
  test.each([
    [['*'], true],
    [['wallet.*'], true],
    [['wallet.observed'], true],
    [['token.*', 'wallet.observed'], true],
    [['wallet.balance_changed'], false],
    [['operation.*', 'service.*'], false],
  ])('of type wallet.observed for %j is delivered: %s', async (eventTypes, wanted) => {
    await create({ eventTypes });
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(attempted()).toBe(wanted ? 1 : 0);
  });

  test('has one delivery per endpoint, with the same id for every event and endpoint', async () => {
    const wanting = [(await create()).endpoint.id, (await create()).endpoint.id];
    await create({ eventTypes: ['token.*'] });
    const [eventId = ''] = await rig.emit(walletEvent(), walletEvent());
    const page = await rig.webhooks.listDeliveries({ eventId }, { cursor: '', limit: 10 });
    expect(page.data.map((d) => d.endpointId).sort()).toEqual(wanting.sort());
    expect(page.data[0]?.id).toMatch(/^dlv_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-/);
  });

  test('rolled back leaves no delivery', async () => {
    const { endpoint } = await create();
    const { db } = rig.database;
    await expect(
      db.begin(async (tx) => {
        await tx.sql`insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id,
          event_type, subject, subject_seq, state, due_at, queued_at)
          values ('dlv_x', now(), ${endpoint.id}, 'evt_x', 'wallet.observed', 's', 1, 'pending',
            now(), now())`;
        throw new Error('the producer fails');
      }),
    ).rejects.toThrow('the producer fails');
    const page = await rig.webhooks.listDeliveries({}, { cursor: '', limit: 10 });
    expect(page.data.some((d) => d.id === 'dlv_x')).toBe(false);
  });
});

describe('changing', () => {
  test('applies to the next attempt: where, what and with which headers', async () => {
    const { endpoint } = await create();
    receiver.answer(500);
    await rig.emit(walletEvent());
    await rig.deliver();
    await rig.webhooks.updateEndpoint(endpoint.id, {
      url: `${receiver.url}/moved`,
      headers: { 'X-New': 'yes' },
      eventTypes: ['token.*'],
    });
    receiver.answer(200);
    await rig.emit(walletEvent());
    rig.clock.advance(6_000);
    await rig.deliver();
    expect(receiver.requests.map((r) => r.path)).toEqual(['/hook', '/moved']);
    expect(receiver.requests[1]?.headers['x-new']).toBe('yes');
  });

  test('adds a scheme with its key, and takes one away', async () => {
    const { endpoint } = await create({ signing: ['v1'] });
    const added = await rig.webhooks.updateEndpoint(endpoint.id, { signing: ['v1', 'v1a'] });
    expect([added.secret, added.publicKey]).toEqual([null, expect.stringMatching(/^whpk_/)]);
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(receiver.requests.at(-1)?.headers['webhook-signature']).toMatch(/^v1\S+ v1a|^v1a\S+ v1/);
    const less = await rig.webhooks.updateEndpoint(endpoint.id, { signing: ['v1a'] });
    expect(less.endpoint.keys.map((key) => key.scheme)).toEqual(['v1a']);
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(receiver.requests.at(-1)?.headers['webhook-signature']).toMatch(/^v1a,\S+$/);
  });

  test.each(['updateEndpoint', 'enable', 'disable', 'rotateSecret', 'sendTest'] as const)(
    'by %s needs an endpoint that is there',
    async (method) => {
      const call = rig.webhooks[method] as (id: string, input: object) => Promise<unknown>;
      const argument = method === 'rotateSecret' ? undefined : {};
      await expect(call('ep_none', argument as object)).rejects.toMatchObject({
        code: 'not_found',
      });
    },
  );
});

describe('rotating', () => {
  test('signs with the old and the new key until the overlap ends', async () => {
    const made = await create({ signing: ['v1'] });
    const rotated = await rig.webhooks.rotateSecret(made.endpoint.id, HOUR);
    expect(rotated.secret).not.toBe(made.secret);
    await rig.emit(walletEvent());
    await rig.deliver();
    rig.clock.advance(HOUR);
    await rig.emit(walletEvent());
    await rig.deliver();
    const signs = (secret: string | null, n: number) => {
      const { headers, body } = must(receiver.requests[n], 'request');
      const at = new Date(Number(headers['webhook-timestamp']) * 1000);
      const sign = new Webhook(secret ?? '').sign(headers['webhook-id'] ?? '', at, body);
      return headers['webhook-signature']?.split(' ').includes(sign);
    };
    expect([signs(made.secret, 0), signs(rotated.secret, 0)]).toEqual([true, true]);
    expect([signs(made.secret, 1), signs(rotated.secret, 1)]).toEqual([false, true]);
  });
});

describe('switching off and on', () => {
  test('a disabled endpoint gets nothing, and goes on with what waited when enabled', async () => {
    const { endpoint } = await create();
    const watcher = await create({ url: `${receiver.url}/told`, eventTypes: ['endpoint.*'] });
    await rig.emit(walletEvent());
    await rig.webhooks.disable(endpoint.id);
    await rig.webhooks.disable(endpoint.id);
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(receiver.requests.map((r) => [r.path, JSON.parse(r.body).data.reason])).toEqual([
      ['/told', 'requested'],
    ]);
    await rig.webhooks.disable(watcher.endpoint.id);
    await rig.webhooks.enable(endpoint.id);
    await rig.deliver();
    // The event of the time when it was off is not among them: a replay brings that.
    expect(receiver.requests.filter((r) => r.path === '/hook').length).toBe(1);
  });

  test('days of failures disable it, and a success after a failing time is told', async () => {
    const { endpoint } = await create();
    await create({ url: `${receiver.url}/told`, eventTypes: ['endpoint.*'] });
    receiver.answer(500, {}, '/hook');
    await rig.emit(...Array.from({ length: 30 }, () => walletEvent()));
    for (let i = 0; i < 12; i++) {
      await rig.deliver();
      rig.clock.advance(HOUR);
    }
    const failing = await rig.webhooks.getEndpoint(endpoint.id);
    expect(failing.health.consecutiveFailures).toBeGreaterThanOrEqual(
      webhookDefaults.health.openAfter,
    );
    receiver.answer(200, {}, '/hook');
    await rig.deliver();
    expect((await rig.events('endpoint.recovered')).at(-1)).toMatchObject({
      endpoint_id: endpoint.id,
    });
    receiver.answer(500, {}, '/hook');
    await rig.emit(...Array.from({ length: 100 }, () => walletEvent()));
    for (let i = 0; i < 6 * 24; i++) {
      await rig.deliver();
      rig.clock.advance(HOUR);
    }
    expect(await rig.webhooks.getEndpoint(endpoint.id)).toMatchObject({
      state: 'disabled',
      stateReason: 'failing',
    });
    expect((await rig.events('endpoint.disabled')).at(-1)).toMatchObject({
      endpoint_id: endpoint.id,
      reason: 'failing',
    });
  });
});

describe('a test', () => {
  test('goes to its endpoint alone, whatever that subscribed to', async () => {
    const { endpoint } = await create({ eventTypes: ['token.*'] });
    await create({ url: `${receiver.url}/other` });
    const { eventId } = await rig.webhooks.sendTest(endpoint.id);
    await rig.deliver();
    expect(receiver.requests.map((r) => [r.path, r.headers['webhook-id']])).toEqual([
      ['/hook', eventId],
    ]);
    await rig.webhooks.disable(endpoint.id);
    await expect(rig.webhooks.sendTest(endpoint.id)).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe('once more', () => {
  test('sends a finished delivery again with the same id, and counts on', async () => {
    const { endpoint } = await create();
    const [eventId] = await rig.emit(walletEvent());
    await rig.deliver();
    const page = await rig.webhooks.listDeliveries(
      { endpointId: endpoint.id },
      { cursor: '', limit: 10 },
    );
    const id = page.data[0]?.id ?? '';
    expect((await rig.webhooks.retryDelivery(id)).state).toBe('pending');
    await rig.deliver();
    expect(receiver.requests.map((r) => r.headers['webhook-id'])).toEqual([eventId, eventId]);
    expect((await rig.webhooks.listAttempts(id)).map((a) => a.n)).toEqual([1, 2]);
    await rig.webhooks.disable(endpoint.id);
    await expect(rig.webhooks.retryDelivery(id)).rejects.toMatchObject({ code: 'conflict' });
    await expect(rig.webhooks.retryDelivery('dlv_none')).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test('lists pages of deliveries, newest first, by state', async () => {
    const { endpoint } = await create();
    await rig.emit(...Array.from({ length: 25 }, () => walletEvent()));
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: { data: { id: string }[]; nextCursor: string | null } =
        await rig.webhooks.listDeliveries(
          { endpointId: endpoint.id, state: 'pending' },
          { cursor, limit: 10 },
        );
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.nextCursor;
    }
    expect(seen.length).toBe(25);
    expect(seen).toEqual([...seen].sort().reverse());
  });
});
