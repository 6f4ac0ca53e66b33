/** What waits here for a worker, as parts of one statement that asks for all stages. */
import type { Sql } from '../db/connect.ts';

/** Events wait for their numbers. */
export function hasUnnumbered(sql: Sql) {
  return sql`exists (select from tallyhook.unnumbered_events)`;
}

/** Events were numbered that no daemon has searched for incidents. */
export function hasUnsearched(sql: Sql) {
  return sql`exists (select from tallyhook.feed r
    where r.name = 'incidents' and r.last_seq < ${lastNumber(sql)})`;
}

/** The number of the newest event of the feed. */
export function lastNumber(sql: Sql) {
  return sql`(select last_seq from tallyhook.feed where name = 'events')`;
}
