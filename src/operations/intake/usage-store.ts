/**
 * SQL of the counters of daily limits: amount and fee per key and hour. A write counts in the hour
 * in which it is sent, and under `infinity` while it waits in the request queue. The last 25 hours
 * are never less than the last 24 hours of writes.
 */
import type { Queryable, Sql } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';

const KEPT_HOURS = 48;

/** The usage of operation `o` and its hour. */
export function usageColumns(sql: Sql) {
  return sql`o.key_id,
    case when o.source = 'gateway' then greatest(o.amount, 0) + greatest(o.fee_amount, 0) end
      as usage,
    case o.state when 'queued' then 'infinity'
      else date_trunc('hour', coalesce(o.sent_at, o.recorded_at), 'UTC') end as usage_hour`;
}

/** Adds changes (`key_id`, `usage_hour`, `usage`) to the counters of keys that have some. */
export function countUsage(sql: Sql, changes: ReturnType<Sql>) {
  return sql`
    insert into tallyhook.key_usage as k (key_id, hour, moved)
    select c.key_id, c.usage_hour, sum(c.usage) from (${changes}) c
    where exists (select from tallyhook.key_usage u where u.key_id = c.key_id)
    group by c.key_id, c.usage_hour having sum(c.usage) <> 0
    order by c.key_id, c.usage_hour
    on conflict (key_id, hour) do update set moved = k.moved + excluded.moved`;
}

/** Deletes counters that no limit reads any more. */
export async function pruneUsage(db: Queryable, now: Instant): Promise<void> {
  await db.sql`
    delete from tallyhook.key_usage
    where hour < ${isoText(now)}::timestamptz - make_interval(hours => ${KEPT_HOURS})`;
}
