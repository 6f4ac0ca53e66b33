/**
 * Delivery of events to endpoints by Standard Webhooks. Deliveries are inserted with their events
 * (`emit_events` of ../../drizzle/definitions/events.sql) and sent by bounded passes (`runOnce`). A
 * slow or failing receiver does not delay the others, and no transaction is open during a send.
 */
import type { Db } from '../db/connect.ts';
import type { Context } from '../db/context.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { endSubjects, type Outbox } from '../outbox/outbox.ts';
import { type Deliveries, makeDeliveries } from './delivery/deliveries.ts';
import { makeDestinations } from './delivery/destinations/destinations.ts';
import { Dispatcher, type Pass } from './delivery/dispatcher.ts';
import { makeRemoval, type Removal } from './delivery/removal.ts';
import type { Encryption } from './encryption.ts';
import { parseRanges } from './endpoints/address.ts';
import { type Endpoints, makeEndpoints } from './endpoints/endpoints.ts';
import { subjectOf } from './endpoints/events.ts';
import { removeDeleted } from './endpoints/store.ts';
import { makeReplays, type Replays } from './replays/replays.ts';
import type { WebhookSettings } from './settings.ts';

export { countExhausted, countPending } from './delivery/deliveries.ts';
export { type Encryption, makeEncryption } from './encryption.ts';
export { deleteUnreadable, reencryptEndpoints } from './endpoints/secrets.ts';
export { makeKey, parseKey, signedHeaders } from './endpoints/signing.ts';
export { countEndpointStates, countFailing } from './endpoints/store.ts';
export type { EndpointInput } from './endpoints/validation.ts';
export {
  countAttemptMinutes,
  deleteAttemptMinutes,
  listAttemptActivity,
} from './figures/attempt-minutes.ts';
export { readFigures } from './figures/figures.ts';
export { defaults as webhookDefaults, type WebhookSettings } from './settings.ts';

interface WebhooksDeps extends Context {
  /** For what people ask; default `db`. */
  peopleDb?: Db;
  /** The time of signatures, which receivers compare with their own clock; steps do not matter. */
  wallClock: Clock;
  encryption: Encryption;
  settings: WebhookSettings;
  emit: Outbox['emit'];
  /** How many daemons share the database, this one included; default one. */
  daemons?: () => number;
  /** Asks the loop for a pass soon. */
  wake?: () => void;
}

export interface Webhooks extends Endpoints, Deliveries, Removal, Omit<Replays, 'removeReplays'> {
  /**
   * Claims due deliveries and starts to send them; sends and their results complete in the
   * background. Call again at once if `more`, else at `nextDueAt` or at the next poll. When the
   * signal aborts, no more deliveries of deleted endpoints are cancelled.
   */
  runOnce(now: Instant, signal?: AbortSignal): Promise<Pass>;
  /** Removes some endpoints that were deleted before, and replays that ended; returns how many. */
  removeDeleted(before: Instant): Promise<number>;
  /** Waits for claimed deliveries; after `timeoutMs` interrupts them, to be sent again. */
  drain(timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}

const REMOVED_MAX = 200;

/** @throws Failure `bad_setting` for a malformed allowed range */
export function makeWebhooks(deps: WebhooksDeps): Webhooks {
  const { db, clock, wallClock, ids, log, encryption, settings, emit } = deps;
  const { daemons = () => 1, wake = () => {}, peopleDb = db } = deps;
  const allowed = parseRanges(settings.allowCidrs);
  const rules = { allowed, allowHttp: settings.allowHttp };
  const limits = {
    ...rules,
    timeoutMsMax: settings.send.deadlineMs,
    inFlightMax: settings.inFlightPerEndpoint,
  };
  const destinations = makeDestinations({ encryption, wallClock, rules, settings });
  const dispatcher = new Dispatcher({ ...deps, destinations, daemons, wake });
  const replays = makeReplays({ db, peopleDb, clock, ids, keepMs: settings.keepMs });
  return {
    ...makeEndpoints({ ...deps, db: peopleDb, limits, wake }),
    ...makeDeliveries({ db, peopleDb, clock, emit, wake }),
    ...makeRemoval({ db, peopleDb, clock, log, wake }),
    ...replays,
    runOnce: (now, signal) => dispatcher.runOnce(now, signal),
    async removeDeleted(before) {
      const endpoints = await db.begin(async (tx) => {
        const removed = await removeDeleted(tx, before, REMOVED_MAX);
        await endSubjects(tx, removed.map(subjectOf));
        return removed.length;
      });
      return endpoints + (await replays.removeReplays(before, REMOVED_MAX));
    },
    drain: (timeoutMs) => dispatcher.drain(timeoutMs),
    close: () => destinations.close(),
  };
}
