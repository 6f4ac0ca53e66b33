/**
 * Endpoints, the deliveries due to them and those that ended, and every attempt. What has ended is
 * partitioned by time and pruned by dropping partitions.
 */
import { instant, json, tallyhook } from '../db/columns.ts';
import {
  bigint,
  boolean,
  doublePrecision,
  index,
  integer,
  primaryKey,
  sql,
  text,
  uniqueIndex,
  uuid,
} from '../db/drizzle.ts';

export const endpoints = tallyhook.table(
  'endpoints',
  {
    id: text().primaryKey(),
    /** Of a broker its kind, address and topic or queue, without credentials. */
    url: text().notNull(),
    description: text(),
    /** Exact types, `group.*` or `*`. */
    eventTypes: text('event_types').array().notNull(),
    /** A query over the body of events; null for all of its types. */
    filter: json(),
    /** none or subject: at most one delivery in flight per subject, in order. */
    ordering: text().notNull(),
    signing: text().array().notNull(),
    /** The signing keys, newest first, each with its expiry. */
    encryptedSecrets: text('encrypted_secrets').notNull(),
    encryptedHeaders: text('encrypted_headers'),
    /** How a broker is reached, with credentials; null for HTTP. */
    encryptedDestination: text('encrypted_destination'),
    /** How requests are authenticated beside headers: OAuth 2, or a client certificate. */
    encryptedAuth: text('encrypted_auth'),
    publicKey: text('public_key'),
    ratePerS: doublePrecision('rate_per_s'),
    /** The waits before its retries, in seconds; null for the common schedule. */
    retrySchedule: integer('retry_schedule').array(),
    /** Null for the setting; a longer one counts as the setting. */
    timeoutMs: integer('timeout_ms'),
    /** Null for the setting; a larger one counts as the setting. */
    maxInFlight: integer('max_in_flight'),
    state: text().notNull(),
    /** gone, failing, requested or deleted. */
    stateReason: text('state_reason'),
    stateAt: instant('state_at').notNull(),
    /** When it was created, or its types or its filter were changed. */
    subscribedAt: instant('subscribed_at').notNull(),
    /** Pending deliveries of events from before are to be cancelled. */
    skipBefore: instant('skip_before'),
    createdBy: text('created_by').notNull(),
    createdAt: instant('created_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('endpoints_filtered').on(t.id).where(sql`filter is not null and deleted_at is null`),
    // Each event finds its endpoints by its patterns (`emit_events`).
    index('endpoints_by_type')
      .using('gin', t.eventTypes)
      .with({ fastupdate: 'off' })
      .where(sql`deleted_at is null`),
    index('endpoints_by_subscription').on(t.subscribedAt),
  ],
);

/** Separate from `endpoints`, because it changes with every group of attempts. */
export const endpointHealth = tallyhook.table('endpoint_health', {
  endpointId: text('endpoint_id')
    .primaryKey()
    .references(() => endpoints.id),
  consecutiveFailures: integer('consecutive_failures').notNull(),
  failingSince: instant('failing_since'),
  /** Nothing is sent before this: Retry-After or circuit breaker. */
  pausedUntil: instant('paused_until'),
  lastSuccessAt: instant('last_success_at'),
  /** The endpoint's rate is used up until this (GCRA). */
  rateUsedUntil: instant('rate_used_until'),
  /** Its first due delivery is sent in spite of the pause: a person asked for it. */
  probeRequested: boolean('probe_requested').notNull().default(false),
  /** When it recovered, while deliveries that failed before still wait for their retries. */
  recoveredAt: instant('recovered_at'),
});

/**
 * One event for one endpoint that is to be sent, until it ends: the row then moves to `deliveries`,
 * and back when it is sent again. A claim writes only `lease_until` and `fence`, which no index
 * contains, so a claim is a heap-only update.
 */
export const pendingDeliveries = tallyhook.table(
  'pending_deliveries',
  {
    /** Derived from event and endpoint ids; sorts by time. Ids are without their prefixes. */
    id: uuid().primaryKey(),
    endpointId: uuid('endpoint_id').notNull(),
    eventId: uuid('event_id').notNull(),
    createdAt: instant('created_at').notNull(),
    /** When it entered the queue, at first or again. */
    queuedAt: instant('queued_at').notNull(),
    eventType: text('event_type').notNull(),
    /** Of its event, if its endpoint is ordered when it is made; else its place in no order. */
    subject: text(),
    subjectSeq: bigint('subject_seq', { mode: 'bigint' }),
    // Last what a claim and a result change: an update logs a row from its first changed column.
    dueAt: instant('due_at').notNull(),
    attempts: integer().notNull().default(0),
    /** Steps of the retry schedule used since `queued_at`; a throttled attempt uses none. */
    scheduleStep: integer('schedule_step').notNull().default(0),
    /** Later events of its subject no longer wait for it. */
    outOfOrder: boolean('out_of_order').notNull().default(false),
    /** Fencing token: rises with every claim; a result with an older one changes nothing. */
    fence: integer().notNull().default(0),
    /** Unexpired it is sending; else it is pending, or held while its endpoint is disabled. */
    leaseUntil: instant('lease_until'),
  },
  (t) => [
    index('pending_deliveries_due').on(t.endpointId, t.dueAt),
    index('pending_deliveries_by_subject')
      .on(t.endpointId, t.subject, t.subjectSeq)
      .where(sql`subject is not null`),
  ],
);

/** Deliveries that have ended. Subject and number are those of the event. */
export const deliveries = tallyhook.table(
  'deliveries',
  {
    id: uuid().notNull(),
    createdAt: instant('created_at').notNull(),
    endpointId: uuid('endpoint_id').notNull(),
    eventId: uuid('event_id').notNull(),
    finishedAt: instant('finished_at').notNull(),
    /**
     * When the first attempt began, if it delivered the event soon after it was recorded: all of
     * that attempt is in this row, with `duration_ms` and what follows. Other attempts are rows.
     */
    attemptedAt: instant('attempted_at'),
    attempts: integer().notNull(),
    /** The last one, from which a delivery that is sent again goes on. */
    fence: integer().notNull(),
    durationMs: integer('duration_ms'),
    status: integer(),
    /** delivered, exhausted or cancelled. */
    state: text().notNull(),
    eventType: text('event_type').notNull(),
    responseBody: text('response_body'),
    responseHeaders: json('response_headers'),
  },
  (t) => [
    primaryKey({ columns: [t.id, t.createdAt] }),
    index('deliveries_by_endpoint').on(t.endpointId, t.id),
    index('deliveries_failed').on(t.state, t.id).where(sql`state in ('exhausted', 'cancelled')`),
  ],
);

/** Append-only: the attempts that are not in the row of their delivery. */
export const attempts = tallyhook.table(
  'attempts',
  {
    deliveryId: uuid('delivery_id').notNull(),
    at: instant().notNull(),
    n: integer().notNull(),
    durationMs: integer('duration_ms').notNull(),
    status: integer(),
    /** delivered, retry, exhausted or gone. */
    result: text().notNull(),
    /** Why there is no complete response: timeout, refused, tls_expired, blocked_address, … */
    error: text(),
    /** At most 16 KiB. */
    responseBody: text('response_body'),
    responseHeaders: json('response_headers'),
  },
  (t) => [primaryKey({ columns: [t.deliveryId, t.n, t.at] }), index('attempts_by_time').on(t.at)],
);

/**
 * The attempts of an endpoint, or of all, that began in one minute for events of a type; of the
 * last month.
 */
export const attemptFigures = tallyhook.table(
  'attempt_figures',
  {
    /** Empty: of all endpoints. */
    endpointId: text('endpoint_id').notNull(),
    at: instant().notNull(),
    eventType: text('event_type').notNull(),
    delivered: integer().notNull(),
    failed: integer().notNull(),
    /** Of all of them together, and of the slowest. */
    durationMs: bigint('duration_ms', { mode: 'bigint' }).notNull(),
    slowestMs: integer('slowest_ms').notNull(),
    /** How many took how long: see `figures/figures.ts`. */
    latencies: integer().array().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.endpointId, t.at, t.eventType] }),
    index('attempt_figures_by_time').on(t.at),
  ],
);

/** What release 0.2.0 has instead, and may write beside this program. No longer read. */
export const attemptMinutes = tallyhook.table(
  'attempt_minutes',
  {
    endpointId: text('endpoint_id').notNull(),
    at: instant().notNull(),
    delivered: integer().notNull(),
    failed: integer().notNull(),
    durationMs: bigint('duration_ms', { mode: 'bigint' }).notNull(),
    slowestMs: integer('slowest_ms').notNull(),
  },
  (t) => [primaryKey({ columns: [t.endpointId, t.at] }), index('attempt_minutes_by_time').on(t.at)],
);

/** Requests to send the events of a time again, worked through in the order of the events. */
export const replays = tallyhook.table(
  'replays',
  {
    id: text().primaryKey(),
    endpointId: text('endpoint_id').notNull(),
    /** Events recorded from then on, and before. */
    since: instant().notNull(),
    until: instant().notNull(),
    /** Exact types or `group.*`; empty for all. */
    eventTypes: text('event_types').array().notNull(),
    /** failed, missing or all. */
    which: text().notNull(),
    /** running, done or cancelled. */
    state: text().notNull(),
    /** The last event that was examined. */
    positionAt: instant('position_at').notNull(),
    positionId: text('position_id').notNull(),
    examined: integer().notNull().default(0),
    queued: integer().notNull().default(0),
    createdBy: text('created_by').notNull(),
    createdAt: instant('created_at').notNull(),
    finishedAt: instant('finished_at'),
  },
  (t) => [
    uniqueIndex('replays_running').on(t.endpointId).where(sql`state = 'running'`),
    index('replays_by_endpoint').on(t.endpointId, t.id),
  ],
);
