/**
 * SQL of the attempts of each endpoint, a row per minute: what plots read instead of every attempt.
 * Recent minutes are counted anew in every pass, because an attempt is stored after its end.
 */
import type { Db, Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { attemptStep } from '../../resources/admin/activity.ts';
import type { Row } from '../../resources/resource.ts';
import { planByIndex } from '../delivery/queue.ts';

const MINUTE_MS = 60_000;
/** An attempt is stored sooner after its start, unless the database did not respond. */
const STORED_WITHIN_MS = 3 * MINUTE_MS;
/** What one pass counts at most: after a downtime several follow one another. */
const PASS_MS = 60 * MINUTE_MS;
/** The longest range of a plot. */
const SHOWN_MS = 30 * 86_400_000;
const DELETED_MAX = 10_000;

/** Counts what is not counted yet; returns whether minutes are left. */
export function countAttemptMinutes(db: Db, now: Instant): Promise<boolean> {
  return db.begin(async (tx) => {
    await planByIndex(tx);
    const { newest, next } = await findUncounted(tx, now);
    const recent = Math.floor((now - STORED_WITHIN_MS) / MINUTE_MS) * MINUTE_MS;
    const from = Math.min(newest ?? next ?? recent, recent);
    const end = Math.max(from, next ?? from) + PASS_MS;
    await tx.sql`
      with made as materialized (
        -- Not a join, for which the planner would read every delivery of an endpoint.
        select date_trunc('minute', a.at) as minute, a.result, a.duration_ms,
          (select 'ep_' || d.endpoint_id from tallyhook.deliveries d
            where d.id = a.delivery_id limit 1) as endpoint_id
        from tallyhook.attempts a
        where a.at >= ${isoText(from)}::timestamptz and a.at < ${isoText(end)}::timestamptz
      )
      insert into tallyhook.attempt_minutes as m
        (endpoint_id, at, delivered, failed, duration_ms, slowest_ms)
      select endpoint_id, minute, count(*) filter (where result = 'delivered'),
        count(*) filter (where result <> 'delivered'), sum(duration_ms), max(duration_ms)
      from made where endpoint_id is not null group by 1, 2 order by 1, 2
      on conflict (endpoint_id, at) do update set delivered = excluded.delivered,
        failed = excluded.failed, duration_ms = excluded.duration_ms,
        slowest_ms = excluded.slowest_ms`;
    return next !== null && end < now;
  });
}

/** The newest minute that was counted, and the first one with attempts after it. */
async function findUncounted({ sql }: Queryable, now: Instant) {
  const rows = await sql<{ newest: Instant | null; next: Instant | null }[]>`
    select n.newest, (select date_trunc('minute', min(a.at)) from tallyhook.attempts a
      where a.at >= greatest(${isoText(now - SHOWN_MS)}::timestamptz,
        n.newest + interval '1 minute')) as next
    from (select max(at) as newest from tallyhook.attempt_minutes) n`;
  return rows[0] ?? { newest: null, next: null };
}

/**
 * Attempts since then, in steps of so many milliseconds; a step without any is left out.
 * @param endpointId of one endpoint; of all without it
 */
export async function listAttemptActivity(
  { sql }: Queryable,
  since: Instant,
  stepMs: number,
  endpointId?: string,
): Promise<Row<typeof attemptStep>[]> {
  const from = sql`${isoText(since)}::timestamptz`;
  return sql<Row<typeof attemptStep>[]>`
    select date_bin(make_interval(secs => ${stepMs / 1000}), at, ${from}) as at,
      sum(delivered)::int as delivered, sum(failed)::int as failed,
      (sum(duration_ms) / sum(delivered + failed))::float8 as mean_ms,
      max(slowest_ms) as slowest_ms
    from tallyhook.attempt_minutes
    where at >= ${from} ${endpointId === undefined ? sql`` : sql`and endpoint_id = ${endpointId}`}
    group by 1 order by 1`;
}

/** Deletes some minutes before; returns how many. */
export async function deleteAttemptMinutes({ sql }: Queryable, before: Instant): Promise<number> {
  const deleted = await sql`
    delete from tallyhook.attempt_minutes where (endpoint_id, at) in (
      select endpoint_id, at from tallyhook.attempt_minutes
      where at < ${isoText(before)} order by at limit ${DELETED_MAX})`;
  return deleted.count;
}
