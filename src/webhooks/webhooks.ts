/**
 * How it leaves the house: who is told, what is told them, and every attempt. Deliveries are made
 * in the producer's transaction (`fanOut`) and sent by bounded passes (`runOnce`); Standard
 * Webhooks to the letter. A bad receiver hurts only itself, and no transaction is ever open while
 * something is sent.
 */
import type { Db } from '../db/connect.ts';
import { type Clock, type Instant, monotonicMs } from '../kernel/clock.ts';
import type { Encryption } from '../kernel/encryption.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { Metrics } from '../kernel/metrics.ts';
import type { Random } from '../kernel/random.ts';
import type { FanOut } from '../outbox/outbox.ts';
import { parseRanges } from './delivery/address.ts';
import { makeAttemptClient } from './delivery/attempt.ts';
import { type Pass, Worker } from './delivery/dispatcher.ts';
import { makeEnvelopes } from './delivery/envelope.ts';
import * as history from './delivery/history-store.ts';
import { type Resolve, systemResolve } from './delivery/resolve.ts';
import type { Emit } from './delivery/result-writer.ts';
import { insertDeliveries } from './delivery/store.ts';
import { type Endpoints, makeEndpoints } from './endpoints/endpoints.ts';
import type { WebhookSettings } from './settings.ts';

export { countPending } from './delivery/backlog-store.ts';
export type { Pass } from './delivery/dispatcher.ts';
export type { Health } from './delivery/health.ts';
export type { Attempt, Delivery, DeliveryFilter } from './delivery/history-store.ts';
export type { Resolve } from './delivery/resolve.ts';
export type { Emit } from './delivery/result-writer.ts';
export type { Endpoint, NewKeys } from './endpoints/endpoints.ts';
export { SCHEMES, type Scheme } from './endpoints/keys.ts';
export { type EndpointInput, ORDERINGS, type Ordering } from './endpoints/rules.ts';
export { defaults as webhookDefaults, type WebhookSettings } from './settings.ts';

export interface WebhooksDeps {
  db: Db;
  clock: Clock;
  random: Random;
  ids: Ids;
  seal: Encryption;
  log: Log;
  metrics: Metrics;
  settings: WebhookSettings;
  /** `emit` of the outbox that was built with this one's `fanOut`. */
  emit: Emit;
  /** How many daemons live on this database, this one included; absent: one. */
  daemons?: () => number;
  /** Asks the loop for a pass soon: there is room again, or the next of a subject may go. */
  wake?: () => void;
  /** Names to addresses; absent: the system's resolver. */
  resolve?: Resolve;
}

export interface Webhooks extends Endpoints {
  /** Makes the deliveries of events in their producer's transaction; for the outbox. */
  fanOut: FanOut;
  /**
   * Whether deliveries were made of late: where nobody subscribes, a pass would find nothing. They
   * are made before they are committed, so that who commits them is told of them.
   */
  isStirring(): boolean;
  /**
   * One bounded pass at `now`: claims what is due and starts to send it. The sends go on in the
   * background and settle themselves. Call again at once while `more`, else at `nextDueAt` or at
   * the next poll.
   */
  runOnce(now: Instant): Promise<Pass>;
  /**
   * Waits for the sends under way, at most `timeoutMs`; what is left then is broken off and
   * repeated.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Closes every connection; after `drain`. */
  close(): Promise<void>;
  /** Deliveries that this daemon holds now. */
  held(): number;
  /** Newest first. */
  listDeliveries(
    filter: history.DeliveryFilter,
    page: { cursor: string; limit: number },
  ): Promise<{ data: history.Delivery[]; nextCursor: string | null }>;
  /** @throws Failure `not_found` */
  getDelivery(id: string): Promise<history.Delivery>;
  /** @throws Failure `not_found` */
  listAttempts(deliveryId: string): Promise<history.Attempt[]>;
  /** Sends it once more, now, whatever became of it. @throws Failure `not_found`, `conflict` */
  retryDelivery(id: string): Promise<history.Delivery>;
}

const ATTEMPTS_MAX = 200;
/** Longer than any transaction takes. */
const STIRRING_MS = 120_000;

/** @throws Failure `bad_setting` when an allowed range is none */
export function makeWebhooks(given: WebhooksDeps): Webhooks {
  const { db, clock, seal, settings } = given;
  const allowed = parseRanges(settings.allowCidrs);
  const client = makeAttemptClient(settings.send, allowed, given.resolve ?? systemResolve);
  const envelopes = makeEnvelopes({ seal, allowed, userAgent: settings.userAgent });
  const daemons = given.daemons ?? (() => 1);
  const wake = given.wake ?? (() => {});
  const worker = new Worker({ ...given, envelopes, client, daemons, wake });
  const getDelivery = async (id: string) => {
    const delivery = await history.findDelivery(db, id, clock.now());
    if (!delivery) throw new Failure('not_found');
    return delivery;
  };
  let madeAt = Number.NEGATIVE_INFINITY;
  return {
    ...makeEndpoints({ ...given, allowed }),
    async fanOut(tx, recordedAt, ids) {
      if ((await insertDeliveries(tx, recordedAt, ids)) > 0) madeAt = monotonicMs();
    },
    isStirring: () => monotonicMs() < madeAt + STIRRING_MS,
    runOnce: (now) => worker.runOnce(now),
    drain: (timeoutMs) => worker.drain(timeoutMs),
    close: () => client.close(),
    held: () => worker.held,
    async listDeliveries(filter, { cursor, limit }) {
      const data = await history.listDeliveries(db, filter, cursor, limit, clock.now());
      const last = data.length === limit ? data.at(-1) : undefined;
      return { data, nextCursor: last?.id ?? null };
    },
    getDelivery,
    async listAttempts(deliveryId) {
      await getDelivery(deliveryId);
      return history.listAttempts(db, deliveryId, ATTEMPTS_MAX);
    },
    async retryDelivery(id) {
      await getDelivery(id);
      if (!(await history.requeue(db, id, clock.now())))
        throw new Failure('conflict', 'it is being sent, or its endpoint is disabled or deleted');
      return getDelivery(id);
    },
  };
}
