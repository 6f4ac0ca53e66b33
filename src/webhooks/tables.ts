/**
 * Who is told, what is to be told them, and every attempt. Deliveries and attempts are partitioned
 * by time and pruned by dropping partitions.
 */

import {
  bigint,
  boolean,
  doublePrecision,
  index,
  integer,
  primaryKey,
  text,
} from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm/sql';
import { instant, json, tallyhook } from '../db/columns.ts';

export const endpoints = tallyhook.table('endpoints', {
  id: text().primaryKey(),
  url: text().notNull(),
  description: text(),
  /** Exact types, `group.*` or `*`. */
  eventTypes: text('event_types').array().notNull(),
  /** none, or subject: at most one in flight per subject, in order. */
  ordering: text().notNull(),
  /** v1, v1a or both. */
  signing: text().array().notNull(),
  /** Sealed: the signing secrets, newest first, each with its expiry. */
  encryptedSecrets: text('encrypted_secrets').notNull(),
  /** Sealed: extra headers, since they may hold credentials. */
  encryptedHeaders: text('encrypted_headers'),
  publicKey: text('public_key'),
  ratePerS: doublePrecision('rate_per_s'),
  /** enabled or disabled, with the reason that a machine can read. */
  state: text().notNull(),
  stateReason: text('state_reason'),
  stateAt: instant('state_at').notNull(),
  createdBy: text('created_by').notNull(),
  createdAt: instant('created_at').notNull(),
  deletedAt: instant('deleted_at'),
});

/** How an endpoint is doing: kept apart, because it changes with its attempts. */
export const endpointHealth = tallyhook.table('endpoint_health', {
  endpointId: text('endpoint_id')
    .primaryKey()
    .references(() => endpoints.id),
  consecutiveFailures: integer('consecutive_failures').notNull(),
  failingSince: instant('failing_since'),
  /** Nothing is sent before this: Retry-After, or the breaker. */
  holdUntil: instant('hold_until'),
  lastSuccessAt: instant('last_success_at'),
  /** Until when the rate is used up (GCRA). */
  pacedUntil: instant('paced_until'),
});

/**
 * One event for one endpoint. A claim writes only `lease_until` and `fence`, which no index holds,
 * so that claiming touches the row and nothing else.
 */
export const deliveries = tallyhook.table(
  'deliveries',
  {
    /** Made from the event and the endpoint: the same two give the same id. Sorts by time. */
    id: text().notNull(),
    /** Partition key: when the event was recorded. */
    createdAt: instant('created_at').notNull(),
    endpointId: text('endpoint_id').notNull(),
    eventId: text('event_id').notNull(),
    eventType: text('event_type').notNull(),
    subject: text().notNull(),
    subjectSeq: bigint('subject_seq', { mode: 'bigint' }).notNull(),
    /** pending, delivered, exhausted or cancelled; pending with a running lease is being sent. */
    state: text().notNull(),
    dueAt: instant('due_at').notNull(),
    /** When it was put into the queue, first or by a retry that somebody asked for. */
    queuedAt: instant('queued_at').notNull(),
    /** Every attempt there was. */
    attempts: integer().notNull().default(0),
    /** Tries of the schedule used since it was queued; deferrals by Retry-After use none. */
    tries: integer().notNull().default(0),
    /** Failed for so long that later events of its subject no longer wait for it. */
    passed: boolean().notNull().default(false),
    leaseUntil: instant('lease_until'),
    /** Rises with every claim: a settle with an older one changes nothing. */
    fence: integer().notNull().default(0),
    finishedAt: instant('finished_at'),
  },
  (t) => [
    primaryKey({ columns: [t.id, t.createdAt] }),
    index('deliveries_due').on(t.endpointId, t.dueAt).where(sql`state = 'pending'`),
    index('deliveries_by_endpoint').on(t.endpointId, t.id),
    index('deliveries_by_subject')
      .on(t.endpointId, t.subject, t.subjectSeq)
      .where(sql`state = 'pending'`),
  ],
);

/** Append-only: every attempt with what came back. */
export const attempts = tallyhook.table(
  'attempts',
  {
    deliveryId: text('delivery_id').notNull(),
    n: integer().notNull(),
    at: instant().notNull(),
    durationMs: integer('duration_ms').notNull(),
    /** delivered, retry, exhausted or gone. */
    verdict: text().notNull(),
    status: integer(),
    /** Why there was no status: timeout, refused, blocked_address, … */
    error: text(),
    /** The beginning of the answer, at most 16 KiB. */
    responseBody: text('response_body'),
    responseHeaders: json('response_headers'),
  },
  (t) => [
    primaryKey({ columns: [t.at, t.deliveryId, t.n] }),
    index('attempts_by_delivery').on(t.deliveryId, t.n),
  ],
);
