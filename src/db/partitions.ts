/**
 * Creates monthly partitions ahead of time and drops those older than their retention, through
 * functions of the database owner that accept only their own list of tables.
 */
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Queryable } from './connect.ts';

/** In days, per partitioned table. */
export interface Retention {
  events: number;
  observations: number;
  deliveries: number;
  attempts: number;
}

const MONTHS_AHEAD = 3;
const DAY_MS = 86_400_000;

/** Creates the partitions of this month and the next ones, unless they exist. */
export async function makePartitions(db: Queryable, now: Instant): Promise<void> {
  await db.sql`select tallyhook.make_partitions(${isoText(now).slice(0, 10)}::date,
    ${MONTHS_AHEAD})`;
}

/** Drops partitions whose month ended before the retention; returns their names. */
export async function dropPartitions(
  db: Queryable,
  now: Instant,
  keep: Retention,
): Promise<string[]> {
  const dropped: string[] = [];
  // The feed first: an event must not be missing while its number is there.
  for (const [table, days] of Object.entries({ numbered_events: keep.events, ...keep })) {
    const before = isoText(now - days * DAY_MS).slice(0, 10);
    const rows = await db.sql<{ name: string }[]>`
      select name from tallyhook.drop_partitions(${table}, ${before}::date) as name`;
    dropped.push(...rows.map((row) => row.name));
  }
  return dropped;
}
