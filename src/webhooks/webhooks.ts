/**
 * Delivery of events to endpoints by Standard Webhooks. Deliveries are inserted in the producer's
 * transaction (`fanOut`) and sent by bounded passes (`runOnce`). A slow or failing receiver does
 * not delay the others, and no transaction is open during a send.
 */
import type { Db } from '../db/connect.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { type Ids, isId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { Metrics } from '../kernel/metrics.ts';
import type { Random } from '../kernel/random.ts';
import { endSubjects, type Outbox } from '../outbox/outbox.ts';
import type { deliveryDetail } from '../resources/delivery.ts';
import type { Row } from '../resources/resource.ts';
import { Dispatcher, type Pass } from './delivery/dispatcher.ts';
import * as history from './delivery/history-store.ts';
import { makeAttemptClient } from './delivery/http/attempt.ts';
import { makeRequestBuilder } from './delivery/http/request.ts';
import type { Encryption } from './encryption.ts';
import { parseRanges } from './endpoints/address.ts';
import { type Endpoints, makeEndpoints } from './endpoints/endpoints.ts';
import { exhaustedEvent, subjectOf } from './endpoints/events.ts';
import { removeDeleted } from './endpoints/store.ts';
import { makeReplays, type Replays } from './replays/replays.ts';
import type { WebhookSettings } from './settings.ts';

export { catchUp, fanOut } from './delivery/fan-out-store.ts';
export { countExhausted, countPending } from './delivery/history-store.ts';
export { type Encryption, makeEncryption } from './encryption.ts';
export {
  countAttemptMinutes,
  deleteAttemptMinutes,
  listAttemptActivity,
} from './endpoints/minutes-store.ts';
export {
  deleteUnreadable,
  type ReencryptedPage,
  reencryptEndpoints,
} from './endpoints/reencryption.ts';
export { makeKey, parseKey, signedHeaders } from './endpoints/signing.ts';
export { countEndpointStates, countFailing } from './endpoints/store.ts';
export type { EndpointInput } from './endpoints/validation.ts';
export { defaults as webhookDefaults, type WebhookSettings } from './settings.ts';

interface WebhooksDeps {
  db: Db;
  /** For what people ask; default `db`. */
  peopleDb?: Db;
  clock: Clock;
  /** The time of signatures, which receivers compare with their own clock; steps do not matter. */
  wallClock: Clock;
  random: Random;
  ids: Ids;
  encryption: Encryption;
  log: Log;
  metrics: Metrics;
  settings: WebhookSettings;
  emit: Outbox['emit'];
  /** How many daemons share the database, this one included; default one. */
  daemons?: () => number;
  /** Asks the loop for a pass soon. */
  wake?: () => void;
}

export interface Webhooks extends Endpoints, Omit<Replays, 'removeReplays'> {
  /**
   * Claims due deliveries and starts to send them; sends and their results complete in the
   * background. Call again at once if `more`, else at `nextDueAt` or at the next poll. When the
   * signal aborts, no more deliveries of deleted endpoints are cancelled.
   */
  runOnce(now: Instant, signal?: AbortSignal): Promise<Pass>;
  /**
   * Exhausts pending deliveries of events recorded before `before`, which retention will remove,
   * and emits the events about it. Returns true when none is left, false when the signal ended it.
   */
  endExpired(before: Instant, signal: AbortSignal): Promise<boolean>;
  /** Removes some endpoints that were deleted before, and replays that ended; returns how many. */
  removeDeleted(before: Instant): Promise<number>;
  /** Waits for claimed deliveries; after `timeoutMs` interrupts them, to be sent again. */
  drain(timeoutMs: number): Promise<void>;
  close(): Promise<void>;
  /** Newest first, with ids below `before`; from the newest for the empty string. */
  listDeliveries(
    filter: history.DeliveryFilter,
    page: { before: string; limit: number },
  ): Promise<history.Delivery[]>;
  /** @throws Failure `not_found` */
  getDelivery(id: string): Promise<Row<typeof deliveryDetail>>;
  /** @throws Failure `not_found` */
  listAttempts(deliveryId: string): Promise<history.Attempt[]>;
  /** Makes a delivery in any state due now. @throws Failure `not_found`, `conflict` */
  retryDelivery(id: string): Promise<history.Delivery>;
  /** Cancels an exhausted delivery. @throws Failure `not_found`, `conflict` */
  cancelDelivery(id: string): Promise<history.Delivery>;
}

const ATTEMPTS_MAX = 200;
const EXPIRED_MAX = 200;

/** @throws Failure `bad_setting` for a malformed allowed range */
export function makeWebhooks(deps: WebhooksDeps): Webhooks {
  const { db, clock, wallClock, random, ids, encryption, log, metrics, settings, emit } = deps;
  const { daemons = () => 1, wake = () => {}, peopleDb = db } = deps;
  const allowed = parseRanges(settings.allowCidrs);
  const rules = { allowed, allowHttp: settings.allowHttp };
  const client = makeAttemptClient(settings.send, allowed);
  const requests = makeRequestBuilder({
    encryption,
    wallClock,
    rules,
    userAgent: settings.userAgent,
  });
  const dispatcher = new Dispatcher({
    db,
    clock,
    random,
    log,
    metrics,
    settings,
    emit,
    requests,
    client,
    daemons,
    wake,
  });
  const getDelivery = async (id: string) => {
    const delivery = isId('dlv', id) && (await history.findDelivery(peopleDb, id, clock.now()));
    if (!delivery) throw new Failure('not_found');
    return delivery;
  };
  const replays = makeReplays({ db, peopleDb, clock, ids, keepMs: settings.keepMs });
  return {
    ...makeEndpoints({
      db: peopleDb,
      clock,
      random,
      ids,
      encryption,
      settings,
      rules,
      emit,
    }),
    ...replays,
    runOnce: (now, signal) => dispatcher.runOnce(now, signal),
    endExpired: (before, signal) => endExpired(deps, before, signal),
    async removeDeleted(before) {
      const endpoints = await db.begin(async (tx) => {
        const removed = await removeDeleted(tx, before, EXPIRED_MAX);
        await endSubjects(tx, removed.map(subjectOf));
        return removed.length;
      });
      return endpoints + (await replays.removeReplays(before, EXPIRED_MAX));
    },
    drain: (timeoutMs) => dispatcher.drain(timeoutMs),
    close: () => client.close(),
    listDeliveries: (filter, { before, limit }) =>
      history.listDeliveries(peopleDb, filter, before, limit, clock.now()),
    getDelivery,
    async listAttempts(deliveryId) {
      await getDelivery(deliveryId);
      return history.listAttempts(peopleDb, deliveryId, ATTEMPTS_MAX);
    },
    async retryDelivery(id) {
      await getDelivery(id);
      if (!(await history.requeue(peopleDb, id, clock.now())))
        throw new Failure('conflict', 'the delivery is in flight, or its endpoint is not enabled');
      return getDelivery(id);
    },
    async cancelDelivery(id) {
      const { state } = await getDelivery(id);
      if (!(await history.giveUp(peopleDb, id, clock.now())))
        throw new Failure(
          'conflict',
          `the delivery is ${state}; only an exhausted one is cancelled`,
        );
      return getDelivery(id);
    },
  };
}

async function endExpired(
  { db, clock, emit }: WebhooksDeps,
  before: Instant,
  signal: AbortSignal,
): Promise<boolean> {
  const endSome = () =>
    db.begin(async (tx) => {
      const now = clock.now();
      const ended = await history.exhaustBefore(tx, before, now, EXPIRED_MAX);
      const drafts = ended.flatMap((delivery) =>
        exhaustedEvent(delivery, delivery, 'retention', now),
      );
      await emit(tx, drafts);
      return ended.length;
    });
  while (!signal.aborted) if ((await endSome()) === 0) return true;
  return false;
}
