/**
 * `targets` is the schedule of polls, `observations` their results, `unprocessed_observations` what
 * the reconciler has to do.
 */

import { instant, json, tallyhook, whole } from '../db/columns.ts';
import { boolean, doublePrecision, index, integer, primaryKey, sql, text } from '../db/drizzle.ts';
import type { WatchKind } from '../resources/admin/watch.ts';
import { PRIOR } from './schedule/change-rate.ts';

export const watches = tallyhook.table('watches', {
  id: text().primaryKey(),
  kind: text().$type<WatchKind>().notNull(),
  /** The target's name: `wallet:<addr, lower case>`, `contract:<id>` or `token:<contract>:<id>`. */
  target: text().notNull().unique(),
  addr: text(),
  contractId: whole('contract_id'),
  tokenId: whole('token_id'),
  createdAt: instant('created_at').notNull(),
  createdBy: text('created_by').notNull(),
});

/** Everything that is polled: watched, or touched by an operation. */
export const targets = tallyhook.table(
  'targets',
  {
    name: text().primaryKey(),
    kind: text().$type<'wallet' | 'token' | 'contract' | 'scan'>().notNull(),
    /** In its first spelling, which is sent to the service. */
    addr: text(),
    contractId: whole('contract_id'),
    tokenId: whole('token_id'),
    nextPollAt: instant('next_poll_at').notNull(),
    /** An open operation waits for the next poll, which precedes steady polls. */
    pending: boolean().notNull().default(false),
    /** A token that neither a watch nor an open operation needed at its last claim. */
    idle: boolean().notNull().default(false),
    leaseUntil: instant('lease_until'),
    /** Consecutive inconclusive polls. */
    failures: integer().notNull().default(0),
    /** When it was first refused as absent without confirmation, or was last found absent. */
    refusedAt: instant('refused_at'),
    /** Of the newest conclusive observation: the start of its request, its result and record. */
    lastStartedAt: instant('last_started_at'),
    lastResult: text('last_result'),
    lastRecord: json('last_record'),
    /** The row of `observations` that it extends. */
    observationId: text('observation_id'),
    observationStartedAt: instant('observation_started_at'),
    /** How often it changes, as its polls have shown: so many changes in so many seconds. */
    changes: doublePrecision().notNull().default(PRIOR.changes),
    changesOverS: doublePrecision('changes_over_s').notNull().default(PRIOR.seconds),
    /** From then on a poll is processed even if it shows nothing new; null: it is. */
    processAgainAt: instant('process_again_at'),
    /** What an unfinished scan has read so far; of a contract, what is known of its list. */
    scanProgress: json('scan_progress'),
    addedAt: instant('added_at').notNull(),
  },
  (t) => [
    index('targets_due').on(t.nextPollAt),
    index('targets_pending').on(t.nextPollAt).where(sql`pending`),
    index('targets_absent').on(t.observationStartedAt).where(sql`last_result = 'absent'`),
  ],
);

/**
 * A row is a series of polls of one target with the same result; only its end changes. Partitioned
 * by `started_at`; old partitions are dropped.
 */
export const observations = tallyhook.table(
  'observations',
  {
    id: text().notNull(),
    target: text().notNull(),
    kind: text().notNull(),
    /** Of the first poll of the series. */
    startedAt: instant('started_at').notNull(),
    firstEndedAt: instant('first_ended_at').notNull(),
    /** Of the last one. */
    lastStartedAt: instant('last_started_at').notNull(),
    endedAt: instant('ended_at').notNull(),
    result: text().$type<'seen' | 'absent' | 'inconclusive'>().notNull(),
    cause: text(),
    /** A wallet record, a token record, or the result of a scan. */
    record: json(),
  },
  (t) => [
    primaryKey({ columns: [t.startedAt, t.id] }),
    index('observations_by_target').on(t.target, t.startedAt),
  ],
);

/** The newest conclusive observation of each target that the reconciler has not processed. */
export const unprocessedObservations = tallyhook.table(
  'unprocessed_observations',
  {
    target: text().primaryKey(),
    kind: text().notNull(),
    observationId: text('observation_id').notNull(),
    /** Since when the target has been observed like this. */
    unchangedSince: instant('unchanged_since').notNull(),
    /** The request of its last poll. */
    startedAt: instant('started_at').notNull(),
    endedAt: instant('ended_at').notNull(),
    result: text().notNull(),
    record: json(),
    /** When it is processed, or tried again; of a quarantined one, when it was quarantined. */
    processAt: instant('process_at').notNull(),
    failures: integer().notNull().default(0),
    /** Why it is quarantined. A changed observation of the target replaces it. */
    problem: text(),
  },
  (t) => [
    index('unprocessed_observations_due').on(t.processAt).where(sql`problem is null`),
    index('unprocessed_observations_quarantined').on(t.processAt).where(sql`problem is not null`),
  ],
);

/** The limits that the service has set, per class of traffic; they survive a restart. */
export const quota = tallyhook.table('quota', {
  name: text().primaryKey(),
  blockedUntil: instant('blocked_until'),
  /**
   * Polls per second right after the last throttling or outage, the instant from which that rises,
   * and how long it would rise from zero.
   */
  rate: doublePrecision(),
  risesFrom: instant('rises_from'),
  riseMs: integer('rise_ms'),
  /** When a person last removed the deadlines. */
  clearedAt: instant('cleared_at'),
});

/** How long writes take to show; a row per kind of operation, and per kind and contract. */
export const waits = tallyhook.table('waits', {
  /** `<kind>:` or `<kind>:<contract>`. */
  name: text().primaryKey(),
  /** How many waits ended in each bucket; see schedule/hazard.ts. */
  counts: json().notNull(),
  learnedAt: instant('learned_at').notNull(),
});

/** One row: the maintenance state of the service. */
export const serviceState = tallyhook.table('service_state', {
  name: text().primaryKey(),
  state: text().notNull(),
  since: instant().notNull(),
  /** The last time it was down; without an end while it is. */
  downFrom: instant('down_from'),
  downUntil: instant('down_until'),
  announced: json(),
  nextProbeAt: instant('next_probe_at').notNull(),
  /** Consecutive probes without an answer, while no read was answered either. */
  failures: integer().notNull(),
  /** The last answer to a read of any daemon, some seconds old. */
  answeredAt: instant('answered_at'),
});

/** The states of the service over the last year, each until the next row. */
export const serviceChanges = tallyhook.table('service_changes', {
  at: instant().primaryKey(),
  state: text().notNull(),
});

/** A row per minute of the last month: how the budget was used, and how late changes are seen. */
export const pollMinutes = tallyhook.table('poll_minutes', {
  at: instant().primaryKey(),
  /** Polls and app traffic of all daemons. */
  requests: integer().notNull(),
  /** Requests per second that the rate limiter allowed all daemons together. */
  allowedPerS: doublePrecision('allowed_per_s').notNull(),
  /** Mean time from a change to its poll, by the learned change rates; null without targets. */
  expectedDelayMs: doublePrecision('expected_delay_ms'),
  /** Age of the oldest poll of a target: no change was undetected for longer. */
  oldestPollMs: doublePrecision('oldest_poll_ms'),
});
