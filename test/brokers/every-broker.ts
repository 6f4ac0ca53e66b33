/** What holds of every kind of broker that deliveries are sent to, proved on a real server. */
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { must } from '../../src/kernel/errors.ts';
import type { DestinationSettings } from '../../src/webhooks/endpoints/destination/destination.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { makeApp } from '../harness/app.ts';
import { createWorld, type DaemonProcess, startDaemon, type World } from '../harness/daemon.ts';
import { useFolder } from '../harness/folder.ts';
import { until } from '../harness/until.ts';
import { type Rig, useRig, verifyV1a, walletEvent } from '../webhooks/rig.ts';
import { type Broker, type StartBroker, type Stored, snakeOf } from './broker.ts';

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
const SETTINGS = {
  send: { ...webhookDefaults.send, deadlineMs: 5 * SECOND },
  retry: { scheduleMs: Array.from({ length: 200 }, () => SECOND), jitter: 0, giveUpMs: DAY },
  health: { ...webhookDefaults.health, openAfter: 1_000, disableAfterMs: DAY },
};
const addr = (n: number) => `0x${String(n).padStart(40, '0')}`;

/** @param has what its `Broker` has */
export function describeBroker(
  name: string,
  start: StartBroker,
  has: { secure?: boolean; elsewhere?: boolean; failure?: string } = {},
): void {
  const folder = useFolder();
  let broker: Broker;
  beforeAll(async () => {
    broker = await start(folder);
  });
  afterAll(() => broker?.close());
  describe(name, () => {
    // One for all: the ids of a second one would be the same, and be taken for repeats.
    const rig = useRig(SETTINGS);
    testDeliveries(name, rig, () => broker);
    testOrder(`${has.failure ?? 'A restart'} of ${name}`, name, rig, () => broker);
    if (has.secure) testTls(name, rig, () => broker);
    if (has.elsewhere) testElsewhere(name, rig, () => broker);
    testDaemon(name, () => broker);
  });
}

/** What the tests of one broker share. */
function makeHelpers(rig: Rig, broker: () => Broker) {
  return {
    subscribe: (destination: DestinationSettings, ordering: 'none' | 'subject' = 'none') =>
      rig.webhooks.createEndpoint({ destination, ordering, eventTypes: ['wallet.*'] }, 'ann'),
    async lastAttempt(endpointId: string) {
      const [delivery] = await rig.deliveriesOf(endpointId);
      return (await rig.webhooks.listAttempts(delivery?.id ?? '')).at(-1);
    },
    /** What the broker has stored of these events, once it has all of them. */
    async storedOf(ids: readonly string[]): Promise<Stored[]> {
      const isOne = ({ id }: Stored) => id !== undefined && ids.includes(id);
      const stored = await until(async () => {
        const all = (await broker().stored()).filter(isOne);
        return new Set(all.map(({ id }) => id)).size === ids.length ? all : undefined;
      });
      return stored ?? (await broker().stored()).filter(isOne);
    },
  };
}

function testDeliveries(name: string, rig: Rig, broker: () => Broker): void {
  const { subscribe, lastAttempt, storedOf } = makeHelpers(rig, broker);

  it(`${name} gets the body byte for byte, signed, keyed by its subject`, async () => {
    const created = await subscribe(broker().destination);
    const ids = await rig.emit(walletEvent(addr(1), '1"é\u2028'));
    await rig.deliver();
    const [message, ...others] = await storedOf(ids);
    expect(others).toEqual([]);
    expect(message?.key).toBe(`wallet:${addr(1)}`);
    const [row] = await rig.database.db.sql`
      select tallyhook.event_body(events) as body from tallyhook.events
      where 'evt_' || id = ${ids[0] ?? ''}`;
    expect(message?.body.toString()).toBe(row?.body);
    const { headers = {}, body = Buffer.alloc(0) } = message ?? {};
    const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = headers;
    expect([id, at]).toEqual([ids[0], String(Math.floor(rig.clock.now() / SECOND))]);
    const [v1, v1a = ''] = (signature ?? '').split(' ');
    const secret = created.secret ?? '';
    expect(new Webhook(secret).sign(id ?? '', new Date(rig.clock.now()), body.toString())).toBe(v1);
    const content = Buffer.concat([Buffer.from(`${id}.${at}.`), body]);
    expect(verifyV1a(created.newPublicKey ?? '', content, v1a)).toBe(true);
    expect(await rig.deliveriesOf(created.endpoint.id)).toMatchObject([{ state: 'delivered' }]);
    expect(await lastAttempt(created.endpoint.id)).toMatchObject({
      result: 'delivered',
      error: null,
    });
  });

  it(`Credentials that ${name} refuses are an attempt error that does not show them`, async () => {
    const { destination, secret, refusal } = broker().wrong;
    const { endpoint } = await subscribe(destination);
    const ids = await rig.emit(walletEvent(addr(21)));
    await rig.deliver();
    expect(await lastAttempt(endpoint.id)).toMatchObject({ result: 'retry', ...refusal });
    const shown = JSON.stringify([
      await lastAttempt(endpoint.id),
      await rig.webhooks.getEndpoint(endpoint.id),
      rig.logged,
    ]);
    expect(shown).not.toContain(secret);
    await rig.webhooks.updateEndpoint(endpoint.id, { destination: broker().destination });
    rig.clock.advance(SECOND);
    await rig.deliver();
    expect((await storedOf(ids)).map(({ id }) => id)).toEqual(ids);
  });

  it(`What ${name} does not have is an attempt error`, async () => {
    const { destination, refusal } = broker().missing;
    const { endpoint } = await subscribe(destination);
    await rig.emit(walletEvent(addr(31)));
    await rig.deliver();
    expect(await lastAttempt(endpoint.id)).toMatchObject({ result: 'retry', ...refusal });
  });

  it(`${name} is not connected to at an address that is not allowed`, async () => {
    const { endpoint } = await subscribe(broker().destination);
    const strict = rig.another({ ...SETTINGS, allowCidrs: [] });
    await rig.emit(walletEvent(addr(51)));
    await rig.deliver(strict);
    expect(await lastAttempt(endpoint.id)).toMatchObject({ error: 'blocked_address' });
  });
}

function testTls(name: string, rig: Rig, broker: () => Broker): void {
  const { subscribe, lastAttempt, storedOf } = makeHelpers(rig, broker);

  it(`${name} is reached over TLS by its own authority, and its name is checked`, async () => {
    const secure = must(broker().secure, 'secure destination');
    await subscribe(secure);
    const unknown = await subscribe({ ...secure, ca: undefined });
    const named = (server: string) => server.replace('localhost', '127.0.0.1');
    const other = await subscribe({ ...secure, servers: secure.servers.map(named) });
    const ids = await rig.emit(walletEvent(addr(61)));
    await rig.deliver();
    expect((await storedOf(ids)).map(({ id }) => id)).toEqual(ids);
    const errors = [unknown, other].map(async ({ endpoint }) => lastAttempt(endpoint.id));
    expect(await Promise.all(errors)).toMatchObject([
      { error: 'tls_unknown_ca' },
      { error: 'tls_wrong_host' },
    ]);
  });
}

function testElsewhere(name: string, rig: Rig, broker: () => Broker): void {
  const { subscribe, lastAttempt } = makeHelpers(rig, broker);

  it(`A server that ${name} names is not connected to at a private address`, async () => {
    const { endpoint } = await subscribe(must(broker().elsewhere, 'destination elsewhere'));
    await rig.emit(walletEvent(addr(71)));
    await rig.deliver();
    expect(await lastAttempt(endpoint.id)).toMatchObject({ error: 'blocked_address' });
  });
}

function testOrder(failure: string, name: string, rig: Rig, broker: () => Broker): void {
  const { subscribe, storedOf } = makeHelpers(rig, broker);
  const seqOf = ({ body }: Stored) => Number(JSON.parse(body.toString()).data.subject_seq);
  const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

  it(`With ordering the events of a subject are in ${name} in their order`, async () => {
    await subscribe(broker().destination, 'subject');
    const ids: string[] = [];
    for (let n = 0; n < 10; n++)
      ids.push(...(await rig.emit(walletEvent(addr(41), String(n)), walletEvent(addr(42)))));
    await rig.deliver();
    const stored = await storedOf(ids);
    for (const n of [41, 42]) {
      const own = stored.filter(({ key }) => key === `wallet:${addr(n)}`);
      expect(own.map(seqOf)).toEqual(upTo(10));
    }
  });

  it(`${failure} loses no event, and repeats only what was in flight`, async () => {
    const { endpoint } = await subscribe(broker().destination, 'subject');
    const wallets = [11, 12, 13, 14];
    const ids: string[] = [];
    const emitMore = async () =>
      ids.push(...(await rig.emit(...wallets.map((n) => walletEvent(addr(n))))));
    const daemons = [rig.webhooks, rig.another()];
    const pass = async () => {
      rig.clock.advance(SECOND);
      for (const one of daemons) await one.runOnce(rig.clock.now());
    };
    for (let n = 0; n < 5; n++) {
      await emitMore();
      await pass();
    }
    const failing = broker().fail();
    await emitMore();
    await pass();
    await failing;
    const failed = await until(async () => {
      await pass();
      const { health } = await rig.webhooks.getEndpoint(endpoint.id);
      return health.consecutiveFailures > 0 ? true : undefined;
    });
    expect(failed).toBe(true);
    await emitMore();
    await broker().recover();
    await until(async () => {
      await pass();
      const deliveries = await rig.deliveriesOf(endpoint.id);
      return deliveries.every(({ state }) => state === 'delivered') ? true : undefined;
    });
    const stored = await storedOf(ids);
    expect(new Set(stored.map(({ id }) => id))).toEqual(new Set(ids));
    const deliveries = await rig.deliveriesOf(endpoint.id);
    expect(deliveries.length).toBe(ids.length);
    for (const { eventId, attempts } of deliveries) {
      const copies = stored.filter(({ id }) => id === eventId).length;
      expect(copies).toBeLessThanOrEqual(attempts);
    }
    for (const n of wallets) {
      const own = stored.filter(({ key }) => key === `wallet:${addr(n)}`);
      expect([...new Set(own.map(seqOf))]).toEqual(upTo(7));
    }
  });
}

function testDaemon(name: string, broker: () => Broker): void {
  let world: World;
  let daemon: DaemonProcess;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(async () => {
    await daemon?.stop();
    await world?.close();
  });

  it(`Daemons that are killed while they deliver to ${name} lose no event`, async () => {
    const settings = { webhooks: { attempt_timeout_ms: 3_000 } };
    daemon = await startDaemon(world, settings);
    const app = makeApp(() => daemon.url);
    const created = await app.call('POST', '/api/endpoints', {
      destination: snakeOf(broker().destination),
      event_types: ['operation.*', 'wallet.*'],
    });
    expect(created).toMatchObject({ status: 201, json: { kind: broker().destination.kind } });
    let answered = 0;
    for (let round = 1; round <= 2; round++) {
      const writes = Array.from({ length: 12 }, async (_, n) => {
        const { status } = await app.give(world.ada, round * 100 + n).catch(() => ({ status: 0 }));
        if (status === 200) answered++;
      });
      await until(async () => (answered >= round * 4 ? true : undefined));
      await daemon.kill();
      await Promise.all(writes);
      daemon = await startDaemon(world, settings);
    }
    const last = await app.give(world.ben, 1);
    const operation = String(last.headers['tallyhook-operation']);
    await app.until(
      ({ type, data }) => type === 'operation.settled' && data.operation_id === operation,
    );
    const delivered = await until(async () => {
      const path = `/api/deliveries?endpoint_id=${created.json.id}&state=pending`;
      const { json } = await app.call('GET', path);
      if (json.data.length > 0) return undefined;
      const ids = new Set((await broker().stored()).map(({ id }) => id));
      const events = (await app.events()).filter(({ type }) => /^(operation|wallet)\./.test(type));
      const left = events.filter(({ id }) => !ids.has(id));
      return left.length === 0 ? events.length : undefined;
    });
    expect(delivered).toBeGreaterThan(answered);
  });
}
