/** SQL of the observer that only reads, for people: looks by page, and what waits. */
import type { Queryable } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { StoredObservation } from './store.ts';

/** Where a look stands among those at its object; several may start in one millisecond. */
export interface ObservationCursor {
  startedAt: Instant;
  id: string;
}

/** Looks at one object, the newest first, before that place. */
export async function listObservationsBefore(
  db: Queryable,
  target: string,
  page: { before?: ObservationCursor | undefined; limit: number },
): Promise<StoredObservation[]> {
  const { sql } = db;
  const { before } = page;
  return sql<StoredObservation[]>`
    select id, target, kind, started_at, ended_at, result, cause, record from tallyhook.observations
    where target = ${target}
      ${
        before
          ? sql`and (started_at, id) < (${isoText(before.startedAt)}::timestamptz, ${before.id})`
          : sql``
      }
    order by started_at desc, id desc limit ${page.limit}`;
}

/** What waits in the observer, counted up to `max`. */
export interface ObserverBacklog {
  targets: number;
  /** Objects whose look is due, and since when the first. */
  due: number;
  dueSince: Instant | null;
  /** Looks that nobody judged yet, and when the first of them started. */
  unprocessed: number;
  unprocessedSince: Instant | null;
}

export async function countBacklog(
  db: Queryable,
  now: Instant,
  max: number,
): Promise<ObserverBacklog> {
  const rows = await db.sql<ObserverBacklog[]>`
    select o.count as targets, d.count as due, d.since as due_since, j.count as unprocessed,
      j.since as unprocessed_since
    from (select count(*)::int as count from tallyhook.targets) o,
      (select count(*)::int as count, min(next_poll_at) as since from (
        select next_poll_at from tallyhook.targets
        where next_poll_at <= ${isoText(now)} and kind in ('wallet', 'token', 'scan')
        order by next_poll_at limit ${max}) x) d,
      (select count(*)::int as count, min(started_at) as since from (
        select started_at from tallyhook.observations where processed_at is null
        order by started_at limit ${max}) x) j`;
  return rows[0] ?? { targets: 0, due: 0, dueSince: null, unprocessed: 0, unprocessedSince: null };
}
