/** SQL of the observer that only reads, for people: looks by page, and what waits. */
import type { Queryable } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { LookToJudge } from './store.ts';

/** Where a look stands among those at its object; several may start in one millisecond. */
export interface LookPlace {
  startedAt: Instant;
  id: string;
}

/** Looks at one object, the newest first, before that place. */
export async function listLooksBefore(
  db: Queryable,
  object: string,
  page: { before?: LookPlace | undefined; limit: number },
): Promise<LookToJudge[]> {
  const { sql } = db;
  const { before } = page;
  return sql<LookToJudge[]>`
    select id, object, kind, started_at, ended_at, result, cause, record from tallyhook.looks
    where object = ${object}
      ${
        before
          ? sql`and (started_at, id) < (${isoText(before.startedAt)}::timestamptz, ${before.id})`
          : sql``
      }
    order by started_at desc, id desc limit ${page.limit}`;
}

/** What waits in the observer, counted up to `max`. */
export interface ObserverBacklog {
  objects: number;
  /** Objects whose look is due, and since when the first. */
  due: number;
  due_since: Instant | null;
  /** Looks that nobody judged yet, and when the first of them started. */
  unjudged: number;
  unjudged_since: Instant | null;
}

export async function countBacklog(
  db: Queryable,
  now: Instant,
  max: number,
): Promise<ObserverBacklog> {
  const rows = await db.sql<ObserverBacklog[]>`
    select o.count as objects, d.count as due, d.since as due_since, j.count as unjudged,
      j.since as unjudged_since
    from (select count(*)::int as count from tallyhook.objects) o,
      (select count(*)::int as count, min(next_look_at) as since from (
        select next_look_at from tallyhook.objects
        where next_look_at <= ${isoText(now)} and kind in ('wallet', 'token', 'sweep')
        order by next_look_at limit ${max}) x) d,
      (select count(*)::int as count, min(started_at) as since from (
        select started_at from tallyhook.looks where judged_at is null
        order by started_at limit ${max}) x) j`;
  return rows[0] ?? { objects: 0, due: 0, due_since: null, unjudged: 0, unjudged_since: null };
}
