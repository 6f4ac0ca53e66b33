/**
 * What the service says now. `objects` is the due list, `looks` every look with its answer; a look
 * is never changed but for the mark that the reconciler has judged it.
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
import { instant, json, tallyhook, whole } from '../db/columns.ts';

/** What people asked us to watch. */
export const watches = tallyhook.table('watches', {
  id: text().primaryKey(),
  /** wallet, contract or token. */
  kind: text().notNull(),
  /** The object's name: `wallet:<addr, lower case>`, `contract:<id>` or `token:<contract>:<id>`. */
  target: text().notNull().unique(),
  addr: text(),
  contractId: whole('contract_id'),
  tokenId: whole('token_id'),
  weight: doublePrecision().notNull(),
  createdAt: instant('created_at').notNull(),
  createdBy: text('created_by').notNull(),
});

/** The due list: everything under observation, watched or touched by an operation of ours. */
export const targets = tallyhook.table(
  'targets',
  {
    name: text().primaryKey(),
    kind: text().notNull(),
    /** The first spelling, which is what is sent. */
    addr: text(),
    contractId: whole('contract_id'),
    tokenId: whole('token_id'),
    weight: doublePrecision().notNull(),
    nextPollAt: instant('next_poll_at').notNull(),
    /** Somebody waits for the next look: it goes before the steady ones. */
    pending: boolean().notNull().default(false),
    leaseUntil: instant('lease_until'),
    /** Looks in a row that brought nothing conclusive. */
    failures: integer().notNull().default(0),
    /** The newest conclusive look: when its request started, and what it said. */
    lastStartedAt: instant('last_started_at'),
    lastSeen: json('last_seen'),
    /** Where a sweep over a contract's tokens stands between two of its pages. */
    progress: json(),
    addedAt: instant('added_at').notNull(),
  },
  (t) => [
    index('targets_due').on(t.nextPollAt),
    index('targets_pending').on(t.nextPollAt).where(sql`pending`),
    index('targets_by_contract').on(t.contractId),
  ],
);

/** Every look. Partitioned by `started_at` and pruned by dropping partitions. */
export const observations = tallyhook.table(
  'observations',
  {
    id: text().notNull(),
    target: text().notNull(),
    kind: text().notNull(),
    startedAt: instant('started_at').notNull(),
    endedAt: instant('ended_at').notNull(),
    /** seen, absent, or inconclusive. */
    result: text().notNull(),
    cause: text(),
    /** The record as the service gave it: a wallet record or a token record. */
    record: json(),
    processedAt: instant('processed_at'),
  },
  (t) => [
    primaryKey({ columns: [t.startedAt, t.id] }),
    index('observations_unprocessed').on(t.startedAt).where(sql`processed_at is null`),
    index('observations_by_target').on(t.target, t.startedAt),
  ],
);

/** The limits that the service has set, per class of traffic; they survive a restart. */
export const quota = tallyhook.table('quota', {
  name: text().primaryKey(),
  blockedUntil: instant('blocked_until'),
  /** Polls per second right after the last throttling, and the instant from which that rises. */
  rate: doublePrecision(),
  risesFrom: instant('rises_from'),
  updatedAt: instant('updated_at').notNull(),
});

/** One row: whether the service answers, announced or under maintenance, since when. */
export const serviceState = tallyhook.table('service_state', {
  name: text().primaryKey(),
  state: text().notNull(),
  since: instant().notNull(),
  announced: json(),
  nextProbeAt: instant('next_probe_at').notNull(),
  /** Total milliseconds of maintenance so far: clocks that freeze subtract it. */
  frozenMs: bigint('frozen_ms', { mode: 'number' }).notNull(),
  checkedAt: instant('checked_at').notNull(),
  /** Probes in a row that brought nothing. */
  failures: integer().notNull(),
});
