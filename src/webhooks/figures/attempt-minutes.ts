/**
 * SQL of the attempts of each endpoint, and of all, a row per minute and event type: what plots and
 * figures read instead of every attempt. Recent minutes are counted anew in every pass, because an
 * attempt is stored after its end.
 */
import type { Db, Queryable } from '../../db/connect.ts';
import { HOUR_MS, type Instant, isoText, MINUTE_MS } from '../../kernel/clock.ts';
import { idTime, uuidAt } from '../../kernel/ids.ts';
import type { attemptStep } from '../../resources/admin/activity.ts';
import type { Row } from '../../resources/resource.ts';
import { planByIndex } from '../delivery/queue.ts';
import { SOON_MS } from '../delivery/result-writer.ts';
import { ALL_ENDPOINTS, bucketOf, histogramOf, KEPT_MS } from './figures.ts';

/** An attempt is stored sooner after its start, unless the database did not respond. */
const STORED_WITHIN_MS = 3 * MINUTE_MS;
/** What one pass counts at most: after a downtime several follow one another. */
const PASS_MS = HOUR_MS;
const DELETED_MAX = 10_000;

/** Counts what is not counted yet; returns whether minutes are left. */
export function countAttemptMinutes(db: Db, now: Instant): Promise<boolean> {
  return db.begin(async (tx) => {
    await planByIndex(tx);
    const { newest, next } = await findUncounted(tx, now);
    const recent = minuteOf(now - STORED_WITHIN_MS);
    const from = Math.min(newest ?? next ?? recent, recent);
    const end = Math.max(from, next ?? from) + PASS_MS;
    await tx.sql`
      with made as materialized (
        select date_trunc('minute', a.at) as minute, a.result, a.duration_ms,
          'ep_' || w.endpoint_id as endpoint_id, w.event_type
        from tallyhook.attempts a
        -- Limited, since for a plain join the planner would read every delivery of an endpoint.
        cross join lateral (
          select d.endpoint_id, d.event_type from tallyhook.deliveries d where d.id = a.delivery_id
          union all
          select d.endpoint_id, d.event_type from tallyhook.pending_deliveries d
          where d.id = a.delivery_id
          limit 1) w
        where a.at >= ${isoText(from)}::timestamptz and a.at < ${isoText(end)}::timestamptz
        union all
        select date_trunc('minute', d.attempted_at), d.state, d.duration_ms,
          'ep_' || d.endpoint_id, d.event_type
        from tallyhook.deliveries d
        where d.id >= ${uuidAt(from - SOON_MS)} and d.id < ${uuidAt(end)}
          and d.attempted_at >= ${isoText(from)}::timestamptz
          and d.attempted_at < ${isoText(end)}::timestamptz
      ), summed as (
        select endpoint_id, minute, event_type, ${bucketOf(tx)} as bucket, count(*) as n,
          count(*) filter (where result = 'delivered') as delivered,
          sum(duration_ms) as duration_ms, max(duration_ms) as slowest_ms
        from made group by 1, 2, 3, 4
      )
      insert into tallyhook.attempt_figures as m
        (endpoint_id, at, event_type, delivered, failed, duration_ms, slowest_ms, latencies)
      select coalesce(endpoint_id, ${ALL_ENDPOINTS}), minute, event_type, sum(delivered),
        sum(n) - sum(delivered), sum(duration_ms), max(slowest_ms), ${histogramOf(tx)}
      from summed
      group by grouping sets ((endpoint_id, minute, event_type), (minute, event_type))
      order by 1, 2, 3
      on conflict (endpoint_id, at, event_type) do update set delivered = excluded.delivered,
        failed = excluded.failed, duration_ms = excluded.duration_ms,
        slowest_ms = excluded.slowest_ms, latencies = excluded.latencies`;
    return next !== null && end < now;
  });
}

/** The newest minute that was counted, and one that is not after the first attempts after it. */
async function findUncounted({ sql }: Queryable, now: Instant) {
  const [counted] = await sql<{ newest: Instant | null }[]>`
    select max(at) as newest from tallyhook.attempt_figures`;
  const newest = counted?.newest ?? null;
  const since = Math.max(now - KEPT_MS, newest === null ? 0 : newest + MINUTE_MS);
  const [found] = await sql<{ attempt: Instant | null; delivery: string | null }[]>`
    select (select min(a.at) from tallyhook.attempts a where a.at >= ${isoText(since)}) as attempt,
      (select 'dlv_' || d.id from tallyhook.deliveries d
        where d.id >= ${uuidAt(since - SOON_MS)} and d.attempted_at >= ${isoText(since)}
        order by d.id limit 1) as delivery`;
  const { attempt = null, delivery = null } = found ?? {};
  const first = Math.min(
    attempt ?? Number.POSITIVE_INFINITY,
    delivery === null ? Number.POSITIVE_INFINITY : Math.max(since, idTime(delivery)),
  );
  return { newest, next: Number.isFinite(first) ? minuteOf(first) : null };
}

function minuteOf(at: Instant): Instant {
  return Math.floor(at / MINUTE_MS) * MINUTE_MS;
}

/**
 * Attempts since then, in steps of so many milliseconds; a step without any is left out.
 * @param endpointId of one endpoint; of all without it
 */
export async function listAttemptActivity(
  { sql }: Queryable,
  since: Instant,
  stepMs: number,
  endpointId: string = ALL_ENDPOINTS,
): Promise<Row<typeof attemptStep>[]> {
  const from = sql`${isoText(since)}::timestamptz`;
  return sql<Row<typeof attemptStep>[]>`
    select date_bin(make_interval(secs => ${stepMs / 1000}), at, ${from}) as at,
      sum(delivered)::int as delivered, sum(failed)::int as failed,
      (sum(duration_ms) / sum(delivered + failed))::float8 as mean_ms,
      max(slowest_ms) as slowest_ms
    from tallyhook.attempt_figures
    where endpoint_id = ${endpointId} and at >= ${from}
    group by 1 order by 1`;
}

/** Deletes some minutes before; returns how many. */
export async function deleteAttemptMinutes({ sql }: Queryable, before: Instant): Promise<number> {
  const deleted = await sql`
    delete from tallyhook.attempt_figures where (endpoint_id, at, event_type) in (
      select endpoint_id, at, event_type from tallyhook.attempt_figures
      where at < ${isoText(before)} order by at limit ${DELETED_MAX})`;
  return deleted.count;
}
