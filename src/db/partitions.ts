/**
 * Creates monthly partitions ahead of time and drops those older than their retention, through
 * functions of the database owner that accept only their own list of tables.
 */
import { DAY_MS, type Instant, isoText } from '../kernel/clock.ts';
import type { Queryable } from './connect.ts';
import { isLocked } from './sqlstate.ts';

/** In days, per partitioned table. */
interface Retention {
  events: number;
  observations: number;
  deliveries: number;
  attempts: number;
}

const MONTHS_AHEAD = 3;

/**
 * Creates the partitions of this month and the next ones, unless they exist.
 * @returns false when another session, such as a backup, holds a lock; repeat it later
 */
export function makePartitions(db: Queryable, now: Instant): Promise<boolean> {
  const month = isoText(now).slice(0, 10);
  return unlessLocked(async () => {
    // Each in its own transaction, so that no lock is held for long.
    while (await nameOf(db.sql`select tallyhook.make_partition(${month}::date, ${MONTHS_AHEAD})`));
  });
}

/**
 * Drops partitions whose month ended before the retention, and deletes older rows of the default
 * partitions. @returns as `makePartitions`
 */
export function dropPartitions(db: Queryable, now: Instant, keep: Retention): Promise<boolean> {
  const { events, observations, deliveries, attempts } = keep;
  // The feed first: an event must not be missing while its number is there.
  const tables = { numbered_events: events, events, observations, deliveries, attempts };
  return unlessLocked(async () => {
    for (const [table, days] of Object.entries(tables)) {
      const before = isoText(now - days * DAY_MS).slice(0, 10);
      while (await nameOf(db.sql`select tallyhook.drop_partition(${table}, ${before}::date)`));
    }
  });
}

/** The value of a row with one column. */
async function nameOf(rows: PromiseLike<readonly object[]>): Promise<unknown> {
  return Object.values((await rows)[0] ?? {})[0];
}

async function unlessLocked(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (isLocked(error)) return false;
    throw error;
  }
}
