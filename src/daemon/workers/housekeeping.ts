/**
 * The worker that ends the growth of tables: what retention covers, and what is finished. Every
 * table and its end: ../../../test/db/growth/ends.ts.
 */
import type { Db } from '../../db/connect.ts';
import { forgetDaemons } from '../../db/leases.ts';
import { dropPartitions, makePartitions } from '../../db/partitions.ts';
import { pruneImports } from '../../imports/imports.ts';
import { DAY_MS, HOUR_MS } from '../../kernel/clock.ts';
import { pruneAudit } from '../../keys/keys.ts';
import { deleteFinished, deletePollMinutes } from '../../observer/observer.ts';
import { pruneUsage } from '../../operations/operations.ts';
import { dropResolvedCandidates } from '../../reconciler/reconciler.ts';
import { deleteAttemptMinutes, type Webhooks } from '../../webhooks/webhooks.ts';
import type { Config } from '../config/config.ts';
import type { Worker } from './schedule.ts';

/** Until partitions are tried again that a backup or a report has locked. */
const LOCKED_RETRY_MS = 60_000;
/** How long the service must not have shown a target. */
const ABSENT_MS = 7 * DAY_MS;
/** The longest range of a plot, and a day. */
const MINUTES_MS = 31 * DAY_MS;
const TARGETS_MAX = 500;
/** How long a daemon that ended is remembered. */
const DEAD_MS = 30 * DAY_MS;

export function housekeepingWorker(deps: {
  config: Pick<Config, 'database'>;
  db: Db;
  webhooks: Pick<Webhooks, 'endExpired' | 'removeDeleted' | 'removeOldBodies'>;
}): Worker {
  const { config, db, webhooks } = deps;
  const { retention_days: keep, body_retention_days: bodyAges } = config.database;
  return {
    name: 'housekeeping',
    intervalMs: HOUR_MS,
    pass: async (now, signal) => {
      const daysAgo = (days: number) => now - days * DAY_MS;
      const kept = daysAgo(Math.min(keep.deliveries, keep.events));
      const done =
        (await makePartitions(db, now)) &&
        (await webhooks.endExpired(kept, signal)) &&
        (await dropPartitions(db, now, keep));
      await webhooks.removeOldBodies(bodyAges, now, signal);
      await pruneUsage(db, now);
      await deletePollMinutes(db, now - MINUTES_MS);
      await repeat(signal, () => deleteAttemptMinutes(db, now - MINUTES_MS));
      await forgetDaemons(db, now - DEAD_MS);
      await dropResolvedCandidates(db);
      await repeat(signal, () => deleteFinished(db, now - ABSENT_MS, TARGETS_MAX));
      await repeat(signal, () => webhooks.removeDeleted(daysAgo(keep.deliveries)));
      await repeat(signal, () => pruneImports(db, now));
      await repeat(signal, () => pruneAudit(db, daysAgo(keep.audit)));
      return done ? undefined : now + LOCKED_RETRY_MS;
    },
  };
}

/** Repeats a bounded deletion until it finds nothing or the signal aborts. */
async function repeat(signal: AbortSignal, deleteSome: () => Promise<number>): Promise<void> {
  while (!signal.aborted) if ((await deleteSome()) === 0) return;
}
