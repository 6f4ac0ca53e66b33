/**
 * SQL that finds the endpoints with due deliveries, one probe of an index each: its cost follows
 * their number and not their backlogs.
 */
import type { Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { FIRST_UUID, uuidOf } from '../../kernel/ids.ts';

export interface ActiveEndpoint {
  endpointId: string;
  url: string;
  state: 'enabled' | 'disabled' | 'deleted';
  ordered: boolean;
  ratePerS: number | null;
  rateUsedUntil: Instant | null;
  consecutiveFailures: number;
  /** Its deliveries from before are still to be cancelled. */
  skipBefore: Instant | null;
  /** When its first unclaimed delivery is due; null when all are claimed. */
  firstDueAt: Instant | null;
}

/**
 * The common table `active(endpoint_id)`: endpoints with pending deliveries and ids above `after`,
 * from the first for ''; without their prefixes, as deliveries have them.
 */
export function activeEndpoints({ sql }: Queryable, after: string) {
  return sql`
    recursive active(endpoint_id) as (
      (select d.endpoint_id from tallyhook.deliveries d
        where d.state = 'pending' and d.endpoint_id > ${after === '' ? FIRST_UUID : uuidOf(after)}
        order by d.endpoint_id limit 1)
      union all
      select n.endpoint_id from active a cross join lateral (
        select d.endpoint_id from tallyhook.deliveries d
        where d.state = 'pending' and d.endpoint_id > a.endpoint_id
        order by d.endpoint_id limit 1) n
    )`;
}

export interface ActivePage {
  /** Those that are not held or paused. */
  active: ActiveEndpoint[];
  /** How many others the page has: they rest, with deliveries that are held or wait for a pause. */
  resting: number;
  /** The id after which the next page begins; '' after the last page. */
  next: string;
  /** When the first paused endpoint of the page may receive again. */
  resumesAt: Instant | null;
}

/** A page of at most `limit` endpoints with pending deliveries. */
export function listActive(
  db: Queryable,
  now: Instant,
  after: string,
  limit: number,
): Promise<ActivePage> {
  return examine(db, now, activeEndpoints(db, after), limit);
}

/** Those of the given endpoints that are not held or paused. */
export function listActiveOf(
  db: Queryable,
  now: Instant,
  ids: readonly string[],
): Promise<ActivePage> {
  const given = db.sql`active(endpoint_id) as (select unnest(${ids.map(uuidOf)}::uuid[]))`;
  return examine(db, now, given, ids.length + 1);
}

async function examine(
  { sql }: Queryable,
  now: Instant,
  active: ReturnType<typeof activeEndpoints>,
  limit: number,
): Promise<ActivePage> {
  const rows = await sql<(ActiveEndpoint & Omit<ActivePage, 'active'>)[]>`
    with ${active}, page as materialized (
      select a.endpoint_id as uuid, p.id as endpoint_id, p.url,
        case when p.deleted_at is null then p.state else 'deleted' end as state,
        p.ordering = 'subject' as ordered, p.rate_per_s, p.skip_before, h.rate_used_until,
        h.consecutive_failures,
        case when h.paused_until > ${isoText(now)} then h.paused_until end as paused_until
      from (select endpoint_id from active limit ${limit}) a
      join tallyhook.endpoints p on p.id = 'ep_' || a.endpoint_id
      join tallyhook.endpoint_health h on h.endpoint_id = p.id
    )
    select r.next, r.resumes_at, r.resting, e.endpoint_id, e.url, e.state, e.ordered, e.rate_per_s,
      e.skip_before, e.rate_used_until, e.consecutive_failures, f.due_at as first_due_at
    from (
      select case when count(*) = ${limit} then max(endpoint_id) else '' end as next,
        min(paused_until) filter (where state = 'enabled') as resumes_at,
        (count(*) filter (where state = 'disabled' or paused_until is not null))::int as resting
      from page
    ) r
    left join page e on e.state = 'deleted' or e.skip_before is not null
      or e.state = 'enabled' and e.paused_until is null
    left join lateral (
      select d.due_at from tallyhook.deliveries d
      where d.endpoint_id = e.uuid and d.state = 'pending'
        and (d.lease_until is null or d.lease_until <= ${isoText(now)})
      order by d.due_at limit 1) f on e.state = 'enabled'`;
  const { next = '', resumesAt = null, resting = 0 } = rows[0] ?? {};
  return { active: rows.filter(({ endpointId }) => endpointId !== null), resting, next, resumesAt };
}
