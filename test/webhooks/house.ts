/**
 * Everything around webhooks that a test of them needs: a database, an outbox, settings for
 * loopback.
 */
import { connect, type Db } from '../../src/db/connect.ts';
import { after } from '../../src/kernel/clock.ts';
import { makeEncryption } from '../../src/kernel/encryption.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { makeLog } from '../../src/kernel/log.ts';
import { makeMetrics } from '../../src/kernel/metrics.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import type { EventDraft } from '../../src/outbox/events.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import {
  makeWebhooks,
  type WebhookSettings,
  type Webhooks,
  webhookDefaults,
} from '../../src/webhooks/webhooks.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';

export const loopback: WebhookSettings = {
  ...webhookDefaults,
  allowCidrs: ['127.0.0.0/8', '::1/128'],
};

export interface Rig {
  database: TestDatabase;
  clock: ManualClock;
  webhooks: Webhooks;
  /** Lines of the log, as text. */
  logged: string[];
  /** A second daemon on the same database, with its own connections. */
  another(settings?: Partial<WebhookSettings>): Webhooks;
  /** Commits events; answers their ids. */
  emit(...drafts: EventDraft[]): Promise<string[]>;
  /** Passes until nothing is due now, and all sends have ended. */
  deliver(webhooks?: Webhooks): Promise<number>;
  /** Passes as the daemon's loop does, until it holds; sends are not waited for. */
  loop(holds: () => boolean, webhooks?: Webhooks): Promise<void>;
  /** What the outbox holds of these types, oldest first. */
  events(type: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

export async function openRig(settings: Partial<WebhookSettings> = {}): Promise<Rig> {
  const database = await createDatabase();
  const clock = manualClock();
  const logged: string[] = [];
  const log = makeLog('debug', { write: (line) => void logged.push(line) });
  const bell = makeBell();
  const opened: { webhooks: Webhooks; db?: Db }[] = [];
  const build = (db: Db, seed: number, changed: Partial<WebhookSettings>) => {
    const random = seededRandom(seed);
    const ids = makeIds(clock, random);
    const webhooks = makeWebhooks({
      ...{ db, clock, random, ids, log, metrics: makeMetrics() },
      seal: makeEncryption(new Uint8Array(32).fill(7), random),
      settings: { ...loopback, ...changed },
      emit: (tx, drafts) => outbox.emit(tx, drafts),
      wake: bell.ring,
    });
    const outbox = makeOutbox({ clock, ids, fanOut: webhooks.fanOut });
    return { webhooks, outbox };
  };
  const first = build(database.db, 1, settings);
  opened.push({ webhooks: first.webhooks });
  return {
    database,
    clock,
    webhooks: first.webhooks,
    logged,
    another(changed = settings) {
      const db = connect({ url: database.url, role: 'tallyhook_writer', max: 4 });
      const { webhooks } = build(db, 100 + opened.length, changed);
      opened.push({ webhooks, db });
      return webhooks;
    },
    async emit(...drafts) {
      const events = await database.db.begin((tx) => first.outbox.emit(tx, drafts));
      return events.map((event) => event.id);
    },
    deliver: (webhooks = first.webhooks) => deliver(webhooks, clock),
    async loop(holds, webhooks = first.webhooks) {
      for (let passes = 0; !holds(); passes++) {
        if (passes > 5_000) throw new Error('it never holds');
        const { more } = await webhooks.runOnce(clock.now());
        if (!more && !holds()) await bell.rung(5);
      }
    },
    async events(type) {
      const rows = await database.db.sql<{ body: string }[]>`
        select body from tallyhook.events where type = ${type} order by recorded_at, id`;
      return rows.map((row) => JSON.parse(row.body).data);
    },
    async close() {
      for (const { webhooks, db } of opened) {
        await webhooks.drain(2_000);
        await webhooks.close();
        await db?.end();
      }
      await database.drop();
    },
  };
}

/** Rung by whoever wants a pass; a wait for it ends after `ms` at the latest. */
function makeBell() {
  let waiting: (() => void) | undefined;
  let early = false;
  return {
    ring() {
      early = waiting === undefined;
      waiting?.();
    },
    rung: (ms: number) =>
      new Promise<void>((resolve) => {
        const cancel = after(early ? 0 : ms, () => waiting?.());
        early = false;
        waiting = () => {
          cancel();
          waiting = undefined;
          resolve();
        };
      }),
  };
}

async function deliver(webhooks: Webhooks, clock: ManualClock): Promise<number> {
  let attempted = 0;
  for (let passes = 0; passes < 10_000; passes++) {
    const pass = await webhooks.runOnce(clock.now());
    attempted += pass.attempted;
    if (pass.more) continue;
    await webhooks.drain(20_000);
    // What a finished send woke is due now too.
    const again = await webhooks.runOnce(clock.now());
    attempted += again.attempted;
    if (again.attempted === 0 && !again.more) return attempted;
  }
  throw new Error('deliveries never come to an end');
}

/** An event about a wallet, the shortest there is. */
export function walletEvent(addr = `0x${'a'.repeat(40)}`, balance = '1'): EventDraft {
  return {
    type: 'wallet.observed',
    subject: `wallet:${addr}`,
    occurredAt: Date.UTC(2026, 0, 1),
    data: { addr, current: { balance, status: 1 } },
  };
}
