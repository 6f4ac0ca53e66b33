/**
 * Webhooks on a real database with a receiver on loopback. `useRig` opens them for a test file,
 * with a new receiver for each test.
 */
import { createPublicKey, verify } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { connect, type Db, type Tx } from '../../src/db/connect.ts';
import { after } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import type { EventDraft } from '../../src/outbox/events.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import { makeEncryption } from '../../src/webhooks/encryption.ts';
import {
  type EndpointInput,
  makeWebhooks,
  type WebhookSettings,
  type Webhooks,
  webhookDefaults,
} from '../../src/webhooks/webhooks.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { seededRandom } from '../harness/seeded-random.ts';

export interface Rig {
  database: TestDatabase;
  clock: ManualClock;
  webhooks: Webhooks;
  receiver: Receiver;
  /** Log lines. */
  logged: string[];
  /** A second daemon on the same database, with its own connections. */
  another(settings?: Partial<WebhookSettings>): Webhooks;
  /** Creates an endpoint at this path of the receiver. */
  subscribe(path?: string, input?: Partial<EndpointInput>): ReturnType<Webhooks['createEndpoint']>;
  emitIn(tx: Tx, ...drafts: EventDraft[]): Promise<string[]>;
  /** Commits events and returns their ids. */
  emit(...drafts: EventDraft[]): Promise<string[]>;
  /** Runs passes until nothing is due and all sends have ended. */
  deliver(webhooks?: Webhooks): Promise<number>;
  /** Runs passes like the daemon until the receiver has so many requests, in all or of one path. */
  deliverUntil(
    requests: number,
    path?: string,
    by?: { receiver?: Receiver; webhooks?: Webhooks },
  ): Promise<void>;
  /** The data of the recorded events of this type, oldest first. */
  events(type: string): Promise<Record<string, unknown>[]>;
  deliveriesOf(endpointId: string): ReturnType<Webhooks['listDeliveries']>;
  close(): Promise<void>;
}

/** Opens the rig for the tests of a file. After each test its endpoints are deleted. */
export function useRig(settings: Partial<WebhookSettings> = {}): Rig {
  const rig = {} as Rig;
  beforeAll(() => openRig(rig, settings));
  afterAll(() => rig.close());
  beforeEach(async () => {
    rig.receiver = await startReceiver();
  });
  afterEach(async () => {
    rig.receiver.answer(200);
    rig.receiver.release();
    const endpoints = await rig.webhooks.listEndpoints({ after: '', limit: 100 });
    for (const { id } of endpoints) await rig.webhooks.deleteEndpoint(id);
    await rig.deliver();
    await rig.receiver.close();
  });
  return rig;
}

async function openRig(rig: Rig, settings: Partial<WebhookSettings>): Promise<void> {
  const database = await createDatabase();
  const clock = manualClock();
  const logged: string[] = [];
  const log = makeLog('debug', { write: (line) => void logged.push(line) });
  const signal = makeSignal();
  const opened: { webhooks: Webhooks; db?: Db }[] = [];
  const build = (db: Db, seed: number, changed: Partial<WebhookSettings>) => {
    const random = seededRandom(seed);
    const ids = makeIds(clock, random);
    const outbox = makeOutbox({ clock, ids });
    const webhooks = makeWebhooks({
      db,
      clock,
      wallClock: clock,
      random,
      ids,
      log,
      metrics: makeMetrics(),
      encryption: makeEncryption(new Uint8Array(32).fill(7), random),
      settings: { ...webhookDefaults, allowCidrs: ['127.0.0.0/8'], ...changed },
      emit: outbox.emit,
      wake: signal.send,
    });
    return { webhooks, outbox };
  };
  const { webhooks: first, outbox } = build(database.db, 1, settings);
  opened.push({ webhooks: first });
  Object.assign(rig, {
    database,
    clock,
    logged,
    webhooks: first,
    another(changed = settings) {
      const db = connect({ url: database.url, role: 'tallyhook_writer', max: 4 });
      const { webhooks } = build(db, 100 + opened.length, changed);
      opened.push({ webhooks, db });
      return webhooks;
    },
    subscribe(path = '/hook', input = {}) {
      const url = `${rig.receiver.url}${path}`;
      return first.createEndpoint({ url, ...input }, 'ann');
    },
    async emitIn(tx, ...drafts) {
      return (await outbox.emit(tx, drafts)).map(({ id }) => id);
    },
    emit: (...drafts) => database.db.begin((tx) => rig.emitIn(tx, ...drafts)),
    deliver: (webhooks = first) => deliver(webhooks, clock),
    async deliverUntil(requests, path, { receiver = rig.receiver, webhooks = first } = {}) {
      const isCounted = (one: { path: string }) => path === undefined || one.path === path;
      const isDone = () => receiver.requests.filter(isCounted).length >= requests;
      for (let passes = 0; !isDone(); passes++) {
        if (passes > 5_000) throw new Error(`request ${requests} did not arrive`);
        const { more } = await webhooks.runOnce(clock.now());
        if (!more && !isDone()) await signal.received(5);
      }
    },
    async events(type) {
      const rows = await database.db.sql<{ body: string }[]>`
        select tallyhook.event_body(events) as body from tallyhook.events
        where type = ${type} order by recorded_at, id`;
      return rows.map((row) => JSON.parse(row.body).data);
    },
    deliveriesOf: (endpointId) =>
      first.listDeliveries({ endpointId }, { before: '', limit: 2_000 }),
    async close() {
      for (const { webhooks, db } of opened) {
        await webhooks.drain(2_000);
        await webhooks.close();
        await db?.end();
      }
      await database.drop();
    },
  } satisfies Omit<Rig, 'receiver'>);
}

/** `received` resolves at the next `send`, or after `ms`; a `send` before it is not lost. */
function makeSignal() {
  let waiting: (() => void) | undefined;
  let isEarly = false;
  return {
    send() {
      isEarly = waiting === undefined;
      waiting?.();
    },
    received: (ms: number) =>
      new Promise<void>((resolve) => {
        const cancel = after(isEarly ? 0 : ms, () => waiting?.());
        isEarly = false;
        waiting = () => {
          cancel();
          waiting = undefined;
          resolve();
        };
      }),
  };
}

async function deliver(webhooks: Webhooks, clock: ManualClock): Promise<number> {
  let claimed = 0;
  for (let passes = 0; passes < 10_000; passes++) {
    const pass = await webhooks.runOnce(clock.now());
    claimed += pass.claimed;
    if (pass.more) continue;
    await webhooks.drain(20_000);
    // A finished send may have made another delivery due.
    const again = await webhooks.runOnce(clock.now());
    claimed += again.claimed;
    if (again.claimed === 0 && !again.more) return claimed;
  }
  throw new Error('deliveries do not end');
}

/** The smallest event, about a wallet. */
export function walletEvent(addr = `0x${'a'.repeat(40)}`, balance = '1'): EventDraft {
  return {
    type: 'wallet.observed',
    subject: `wallet:${addr}`,
    occurredAt: Date.UTC(2026, 0, 1),
    data: { addr, current: { balance, status: 1 } },
  };
}

export function walletEvents(count: number, addr?: string): EventDraft[] {
  return Array.from({ length: count }, () => walletEvent(addr));
}

/** Verifies a `v1a,…` signature with a `whpk_…` key, by node:crypto alone. */
export function verifyV1a(publicKey: string, content: Uint8Array, signature: string): boolean {
  const x = Buffer.from(publicKey.slice('whpk_'.length), 'base64').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  return verify(null, content, key, Buffer.from(signature.slice('v1a,'.length), 'base64'));
}
