/**
 * House-keeping of what is partitioned by month: months are made ahead and dropped when they are
 * older than their retention. The work is done by owner functions that know only their own list of
 * tables.
 */
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Queryable } from './connect.ts';

/** How long each prunable table is kept, in days. */
export interface Retention {
  events: number;
  observations: number;
  deliveries: number;
  attempts: number;
}

const MONTHS_AHEAD = 3;
const DAY_MS = 86_400_000;

/** Makes this month and the next ones. Harmless when they exist. */
export async function makePartitions(db: Queryable, now: Instant): Promise<void> {
  await db.sql`select tallyhook.make_partitions(${isoText(now).slice(0, 10)}::date,
    ${MONTHS_AHEAD})`;
}

/** Drops the months that ended before the retention; answers their names. */
export async function dropPartitions(
  db: Queryable,
  now: Instant,
  keep: Retention,
): Promise<string[]> {
  const dropped: string[] = [];
  for (const [table, days] of Object.entries(keep)) {
    const before = isoText(now - days * DAY_MS).slice(0, 10);
    const rows = await db.sql<{ name: string }[]>`
      select name from tallyhook.drop_partitions(${table}, ${before}::date) as name`;
    dropped.push(...rows.map((row) => row.name));
  }
  return dropped;
}
