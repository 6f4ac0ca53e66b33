/**
 * SQL of the delivery queue: which endpoints have due deliveries, and claims under leases. No
 * statement counts or scans a backlog: endpoints are found by one probe of an index each, and a
 * claim reads the first rows of one in the order of `due_at`. A claim first locks the endpoint's
 * health row, so claims of one endpoint are serialized.
 */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
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

/**
 * Makes the planner find every row by an index, for the current transaction. It overestimates the
 * batches of the queue and would read whole tables, however large. To be called before the first
 * statement on deliveries.
 */
export async function planByIndex({ sql }: Tx): Promise<void> {
  await sql`
    select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
      set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
      set_config('enable_sort', 'off', true)`;
}

/**
 * As `planByIndex`, and the commit does not wait for the disk: a claim lost in a crash of the
 * database is made again, and the delivery repeats with the same id.
 */
export async function planClaims(tx: Tx): Promise<void> {
  await Promise.all([tx.sql`set local synchronous_commit = off`, planByIndex(tx)]);
}

export interface ClaimedEndpoint {
  endpointId: string;
  url: string;
  signing: string[];
  encryptedSecrets: string;
  encryptedHeaders: string | null;
  ordered: boolean;
  ratePerS: number | null;
  rateUsedUntil: Instant | null;
  consecutiveFailures: number;
  lastSuccessAt: Instant | null;
  /** When it was created or last enabled. */
  enabledAt: Instant;
}

/** Locks the given endpoints that may receive now and are not locked by another daemon. */
export async function lockEndpoints(
  tx: Tx,
  ids: readonly string[],
  now: Instant,
): Promise<ClaimedEndpoint[]> {
  return tx.sql<ClaimedEndpoint[]>`
    select p.id as endpoint_id, p.url, p.signing, p.encrypted_secrets,
      p.encrypted_headers, p.ordering = 'subject' as ordered,
      p.rate_per_s, h.rate_used_until,
      h.consecutive_failures, h.last_success_at, p.state_at as enabled_at
    from tallyhook.endpoint_health h join tallyhook.endpoints p on p.id = h.endpoint_id
    where h.endpoint_id = any(${ids as string[]}::text[]) and p.state = 'enabled'
      and p.deleted_at is null and p.skip_before is null
      and (h.paused_until is null or h.paused_until <= ${isoText(now)})
    order by h.endpoint_id for update of h skip locked`;
}

export interface ClaimedDelivery {
  id: string;
  createdAt: Instant;
  endpointId: string;
  eventId: string;
  eventType: string;
  subject: string;
  subjectSeq: bigint;
  queuedAt: Instant;
  attempts: number;
  scheduleStep: number;
  fence: number;
  /** Null when the event has been pruned. */
  body: string | null;
}

/** A claimed delivery with its endpoint as of the claim. */
export interface Job {
  delivery: ClaimedDelivery;
  endpoint: ClaimedEndpoint;
  leaseUntil: Instant;
}

export interface Quota {
  endpointId: string;
  n: number;
}

function quotaRows(quotas: readonly Quota[]) {
  return quotas.map(({ endpointId, n }) => ({ endpoint_id: uuidOf(endpointId), n }));
}

export async function claim(
  tx: Tx,
  quotas: readonly Quota[],
  now: Instant,
  leaseUntil: Instant,
): Promise<ClaimedDelivery[]> {
  return tx.sql<ClaimedDelivery[]>`
    with picked as (
      select d.created_at, d.id
      from jsonb_to_recordset(${asJson(quotaRows(quotas))}::jsonb) as q(endpoint_id uuid, n int)
      cross join lateral (
        select c.created_at, c.id from tallyhook.deliveries c
        where c.endpoint_id = q.endpoint_id and c.state = 'pending' and c.due_at <= ${isoText(now)}
          and (c.lease_until is null or c.lease_until <= ${isoText(now)})
        order by c.due_at limit q.n for update skip locked) d
    ), claimed as (
      update tallyhook.deliveries d set lease_until = ${isoText(leaseUntil)}, fence = d.fence + 1
      from picked where d.created_at = picked.created_at and d.id = picked.id
      returning d.id, d.created_at, d.endpoint_id, d.event_id, d.event_type, d.subject,
        d.subject_seq, d.queued_at, d.due_at, d.attempts, d.schedule_step, d.fence
    )
    ${claimedWithBodies(tx)}`;
}

const ORDERED_SCAN_MAX = 256;
/** How long a blocked delivery is deferred; `makeNextDue` ends the deferral early. */
const DEFER_MS = 60_000;

/**
 * Claims from ordered endpoints: the earliest delivery of each subject, unless the subject has one
 * in flight. Other due deliveries are deferred, so that later claims do not examine them again.
 */
export async function claimInOrder(
  tx: Tx,
  quotas: readonly Quota[],
  now: Instant,
  leaseUntil: Instant,
): Promise<{ claims: ClaimedDelivery[]; deferred: number }> {
  const rows = await tx.sql<(ClaimedDelivery & { deferred: number })[]>`
    with due as (
      select d.created_at, d.id, d.endpoint_id, d.subject, d.subject_seq, d.due_at, d.out_of_order,
        q.n
      from jsonb_to_recordset(${asJson(quotaRows(quotas))}::jsonb) as q(endpoint_id uuid, n int)
      cross join lateral (
        select c.created_at, c.id, c.endpoint_id, c.subject, c.subject_seq, c.due_at,
          c.out_of_order
        from tallyhook.deliveries c
        where c.endpoint_id = q.endpoint_id and c.state = 'pending' and c.due_at <= ${isoText(now)}
          and (c.lease_until is null or c.lease_until <= ${isoText(now)})
        order by c.due_at limit ${ORDERED_SCAN_MAX} for update skip locked) d
    ), checked as (
      select due.created_at, due.id, due.endpoint_id, due.due_at, due.n, due.subject_seq,
        head.due_at as head_due_at,
        (due.out_of_order or due.subject_seq = head.subject_seq) and not exists (
          select from tallyhook.deliveries b
          where b.endpoint_id = due.endpoint_id and b.subject = due.subject and b.state = 'pending'
            and b.lease_until > ${isoText(now)})
        and row_number() over (partition by due.endpoint_id, due.subject
          order by due.out_of_order, due.subject_seq) = 1 as free
      from due left join lateral (
        select b.subject_seq, b.due_at from tallyhook.deliveries b
        where b.endpoint_id = due.endpoint_id and b.subject = due.subject and b.state = 'pending'
          and not b.out_of_order
        order by b.subject_seq limit 1) head on true
    ), ranked as (
      select created_at, id, n, row_number() over (partition by endpoint_id
        order by due_at, subject_seq) as rank
      from checked where free
    ), deferred as (
      update tallyhook.deliveries d
      set due_at = greatest(checked.head_due_at, ${isoText(now + DEFER_MS)}::timestamptz)
      from checked
      where not checked.free and d.created_at = checked.created_at and d.id = checked.id
      returning d.id
    ), claimed as (
      update tallyhook.deliveries d set lease_until = ${isoText(leaseUntil)}, fence = d.fence + 1
      from ranked
      where ranked.rank <= ranked.n and d.created_at = ranked.created_at and d.id = ranked.id
      returning d.id, d.created_at, d.endpoint_id, d.event_id, d.event_type, d.subject,
        d.subject_seq, d.queued_at, d.due_at, d.attempts, d.schedule_step, d.fence
    )
    select n.deferred, w.id, w.created_at, w.endpoint_id, w.event_id, w.event_type, w.subject,
      w.subject_seq, w.queued_at, w.attempts, w.schedule_step, w.fence, w.body
    from (select count(*)::int as deferred from deferred) n
    left join (${claimedWithBodies(tx)}) w on true`;
  return { claims: rows.filter(({ id }) => id !== null), deferred: rows[0]?.deferred ?? 0 };
}

function claimedWithBodies({ sql }: Tx) {
  return sql`
    select 'dlv_' || c.id as id, c.created_at, 'ep_' || c.endpoint_id as endpoint_id,
      'evt_' || c.event_id as event_id, c.event_type, c.subject,
      c.subject_seq, c.queued_at, c.attempts,
      c.schedule_step, c.fence, tallyhook.event_body(e) as body
    from claimed c
    left join tallyhook.events e on e.recorded_at = c.created_at and e.id = c.event_id
    order by c.due_at, c.id`;
}

export async function saveRateUsage(
  tx: Tx,
  usages: readonly { endpointId: string; rateUsedUntil: Instant }[],
): Promise<void> {
  if (usages.length === 0) return;
  const rows = usages.map((u) => ({ id: u.endpointId, until: isoText(u.rateUsedUntil) }));
  await tx.sql`
    update tallyhook.endpoint_health h set rate_used_until = x.until
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, until timestamptz)
    where h.endpoint_id = x.id`;
}

/**
 * Cancels at most `limit` pending deliveries of an endpoint, of events recorded before `before`;
 * returns how many.
 */
export async function cancelDeliveries(
  db: Queryable,
  endpointId: string,
  before: Instant,
  now: Instant,
  limit: number,
): Promise<number> {
  const cancelled = await db.sql`
    update tallyhook.deliveries d
    set state = 'cancelled', finished_at = ${isoText(now)}, lease_until = null
    from (select created_at, id from tallyhook.deliveries
      where endpoint_id = ${uuidOf(endpointId)} and state = 'pending'
        and created_at <= ${isoText(before)}
      order by due_at limit ${limit} for update skip locked) c
    where d.created_at = c.created_at and d.id = c.id`;
  return cancelled.count;
}
