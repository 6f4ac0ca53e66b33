/**
 * SQL of the queue of pending deliveries. A claim and the examination of what is left are one
 * statement, the function `claim_deliveries` of ../../../drizzle/definitions/deliveries.sql, which
 * says how it finds both.
 *
 * Transactions lock in one order, so that they cannot deadlock: `endpoint_health`, deliveries,
 * `endpoints`, and then the subjects of events that they emit.
 */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { columnsOf } from '../../db/rows.ts';
import { type Instant, isoText, isoTextOrNull } from '../../kernel/clock.ts';
import { FIRST_UUID, uuidOf } from '../../kernel/ids.ts';
import { pendingDeliveries } from '../tables.ts';

export interface ActiveEndpoint {
  endpointId: string;
  url: string;
  state: 'enabled' | 'disabled' | 'deleted';
  ordered: boolean;
  ratePerS: number | null;
  rateUsedUntil: Instant | null;
  /** Its own bound of attempts in flight. */
  maxInFlight: number | null;
  consecutiveFailures: number;
  /** A person asked for a delivery: the first one is sent even while it is paused. */
  probe: boolean;
  /** When it recovered, while what failed before may still wait for a retry. */
  recoveredAt: Instant | null;
  /** Its deliveries from before are still to be cancelled. */
  skipBefore: Instant | null;
  /** When its first unclaimed delivery is due; null when all are claimed. */
  firstDueAt: Instant | null;
}

/**
 * The common table `active(endpoint_id)`: endpoints with pending deliveries, without their
 * prefixes. Each is found by one probe of an index.
 */
export function activeEndpoints({ sql }: Queryable) {
  return sql`
    recursive active(endpoint_id) as (
      (select d.endpoint_id from tallyhook.pending_deliveries d order by d.endpoint_id limit 1)
      union all
      select n.endpoint_id from active a cross join lateral (
        select d.endpoint_id from tallyhook.pending_deliveries d
        where d.endpoint_id > a.endpoint_id order by d.endpoint_id limit 1) n
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

/** Of a delivery `d`: no daemon sends it. */
export function isUnclaimed({ sql }: Pick<Queryable, 'sql'>, now: Instant) {
  return sql`(d.lease_until is null or d.lease_until <= ${isoText(now)})`;
}

/**
 * The first and the last id that deliveries of an event may have, by its UUID: they begin with the
 * time in it.
 */
export function deliveryIdsOf(event: string): [first: string, last: string] {
  const time = `${event.slice(0, 14)}7`;
  return [`${time}000-0000-000000000000`, `${time}fff-ffff-ffffffffffff`];
}

export interface ClaimedEndpoint {
  endpointId: string;
  url: string;
  signing: string[];
  encryptedSecrets: string;
  encryptedHeaders: string | null;
  /** Its own waits before retries in seconds, its own timeout and bound of attempts in flight. */
  retrySchedule: number[] | null;
  timeoutMs: number | null;
  maxInFlight: number | null;
  encryptedDestination: string | null;
  encryptedAuth: string | null;
  ordered: boolean;
  consecutiveFailures: number;
  lastSuccessAt: Instant | null;
  /** When it was created or last enabled. */
  enabledAt: Instant;
}

export interface ClaimedDelivery {
  id: string;
  createdAt: Instant;
  endpointId: string;
  eventId: string;
  eventType: string;
  /** Null when its endpoint is in no order. */
  subject: string | null;
  queuedAt: Instant;
  attempts: number;
  scheduleStep: number;
  fence: number;
  /** The same for all deliveries of an event. Null when the event has been pruned. */
  body: Buffer | null;
  /** Of the event, whether or not its endpoint is in order. Null when the event has been pruned. */
  eventSubject: string | null;
}

/** A claimed delivery with its endpoint as of the claim. */
export interface Job {
  delivery: ClaimedDelivery;
  endpoint: ClaimedEndpoint;
  leaseUntil: Instant;
}

/** How many deliveries of an endpoint to claim, if it still is as it was examined. */
export interface Quota {
  endpoint: Pick<
    ActiveEndpoint,
    'endpointId' | 'ordered' | 'ratePerS' | 'rateUsedUntil' | 'consecutiveFailures' | 'probe'
  >;
  n: number;
  /** Under a rate: until when the first, second and so on of them use it up. */
  rateUntil?: Instant[];
}

export interface ClaimRequest {
  quotas: readonly Quota[];
  /** Endpoints to examine; without them those with pending deliveries and ids above `after`. */
  served?: readonly string[] | undefined;
  after: string;
  /** Endpoints to examine at most. */
  limit: number;
  now: Instant;
  leaseUntil: Instant;
}

export interface Claims extends ActivePage {
  jobs: Job[];
  /** Deliveries that wait for another one of their subject, and are not examined meanwhile. */
  deferred: number;
}

interface ClaimRow extends Omit<ActivePage, 'active'> {
  endpoints: string | null;
  deliveries: string | null;
  bodies: string | null;
  active: string | null;
  deferred: number;
}

const ORDERED_SCAN_MAX = 256;
/** How long a blocked delivery is deferred; `makeNextDue` ends the deferral early. */
const DEFER_MS = 60_000;
/**
 * Waiting deliveries of a recovered endpoint that one statement examines, in about 10 µs each,
 * while the claims of other endpoints wait.
 */
const EXAMINED_MAX = 250;

/** Claims within the quotas, then examines endpoints. */
export async function claimDeliveries({ sql }: Queryable, request: ClaimRequest): Promise<Claims> {
  const { quotas, served, after, limit, now, leaseUntil } = request;
  const rows = await sql<ClaimRow[]>`
    select endpoints, deliveries, bodies, deferred, active, next, resting, resumes_at
    from tallyhook.claim_deliveries(${asJson(quotas.map(quotaRow).sort(byId))}::jsonb,
      ${served ? served.map(uuidOf) : null}::uuid[], ${after === '' ? FIRST_UUID : uuidOf(after)},
      ${served ? served.length + 1 : limit}, ${isoText(now)}, ${isoText(leaseUntil)},
      ${ORDERED_SCAN_MAX}, ${isoText(now + DEFER_MS)}, false)`;
  const { active = null, deferred = 0, next = '', resting = 0, resumesAt = null } = rows[0] ?? {};
  const jobs = rows[0]?.deliveries ? jobsOf(rows[0], leaseUntil) : [];
  return { jobs, deferred, active: listIn<ActiveEndpoint>(active), next, resting, resumesAt };
}

function quotaRow({ endpoint, n, rateUntil }: Quota) {
  const { endpointId, ordered, ratePerS, rateUsedUntil, consecutiveFailures, probe } = endpoint;
  return {
    endpoint_id: uuidOf(endpointId),
    n,
    exclusive: ordered || ratePerS !== null || probe,
    probe,
    failures: consecutiveFailures,
    rate_per_s: ratePerS,
    rate_used_until: isoTextOrNull(rateUsedUntil),
    rate_until: rateUntil?.map(isoText) ?? null,
  };
}

/** Concurrent claims in one order cannot deadlock. */
function byId(a: { endpoint_id: string }, b: { endpoint_id: string }): number {
  return a.endpoint_id < b.endpoint_id ? -1 : 1;
}

/** Its numbers are exact. */
function listIn<T>(text: string | null): T[] {
  return text === null ? [] : (JSON.parse(text) as T[]);
}

/** In the order of `claim_deliveries`. */
type DeliveryArray = [
  id: string,
  createdAt: Instant,
  endpointId: string,
  eventId: string,
  eventType: string,
  subject: string | null,
  queuedAt: Instant,
  attempts: number,
  scheduleStep: number,
  fence: number,
];

function jobsOf({ deliveries, endpoints, bodies }: ClaimRow, leaseUntil: Instant): Job[] {
  const claimed = listIn<ClaimedEndpoint>(endpoints);
  const byEndpoint = new Map(claimed.map((endpoint) => [endpoint.endpointId, endpoint]));
  const events = listIn<[id: string, body: string, subject: string]>(bodies);
  const byEvent = new Map(
    events.map(([id, text, eventSubject]) => [id, { body: Buffer.from(text), eventSubject }]),
  );
  return listIn<DeliveryArray>(deliveries).flatMap((values) => {
    const [id, createdAt, endpointId, eventId, eventType, subject, queuedAt, ...counts] = values;
    const [attempts, scheduleStep, fence] = counts;
    const endpoint = byEndpoint.get(endpointId);
    const stored = byEvent.get(eventId) ?? { body: null, eventSubject: null };
    const event = { createdAt, endpointId, eventId, eventType, subject, ...stored };
    const delivery = { id, ...event, queuedAt, attempts, scheduleStep, fence };
    return endpoint ? [{ delivery, endpoint, leaseUntil }] : [];
  });
}

/**
 * Lets the first delivery of a paused endpoint be sent. To be called before the delivery is queued,
 * because it locks the endpoint's health.
 */
export async function requestProbe({ sql }: Tx, endpointId: string, now: Instant): Promise<void> {
  await sql`
    update tallyhook.endpoint_health set probe_requested = true
    where endpoint_id = ${endpointId} and paused_until > ${isoText(now)}`;
}

/**
 * Makes a pending delivery the first of its endpoint. After `requestProbe` it is sent even while
 * the endpoint is paused.
 */
export async function sendFirst(
  tx: Tx,
  { endpointId, eventId }: { endpointId: string; eventId: string },
  now: Instant,
): Promise<void> {
  const { sql } = tx;
  await planByIndex(tx);
  await sql`
    update tallyhook.pending_deliveries d
    set due_at = least(${isoText(now)}::timestamptz, f.due_at - interval '1 millisecond')
    from (select due_at from tallyhook.pending_deliveries
      where endpoint_id = ${uuidOf(endpointId)} order by due_at limit 1) f
    where d.id = tallyhook.delivery_id(${uuidOf(eventId)}::uuid, ${endpointId})`;
}

interface Pulled {
  pulled: number;
  /** Waiting deliveries that were examined, and when the first and the last of them are due. */
  examined: number;
  first: Instant | null;
  last: Instant | null;
}

/**
 * Examines deliveries of a recovered endpoint that wait and are due after `after`. Of those that
 * were last attempted before it recovered, makes at most `limit` due now. Of those in order only
 * the first of its subject counts, because the others wait for it.
 *
 * Returns after which due time to go on. At the end it returns null, and the endpoint is no longer
 * recovering.
 */
export async function pullForward(
  tx: Tx,
  { endpointId, recoveredAt }: Pick<ActiveEndpoint, 'endpointId' | 'recoveredAt'>,
  { now, after, limit }: { now: Instant; after: Instant; limit: number },
): Promise<Instant | null> {
  const { sql } = tx;
  const id = uuidOf(endpointId);
  const recovered = isoText(recoveredAt ?? now);
  await planByIndex(tx);
  // Of what is examined some may have failed since: it keeps its schedule.
  const [found] = await sql<Pulled[]>`
    with waiting as materialized (
      select d.id, d.attempts, d.due_at, case when not d.out_of_order then d.subject end as subject
      from tallyhook.pending_deliveries d
      where d.endpoint_id = ${id} and d.due_at > ${isoText(Math.max(now, after))}
      order by d.due_at limit ${EXAMINED_MAX}
    ), sendable as (
      select id, attempts, due_at from waiting where subject is null
      union all
      select head.id, head.attempts, head.due_at
      from (select distinct subject from waiting where subject is not null) s
      cross join lateral (
        select h.id, h.attempts, h.due_at from tallyhook.pending_deliveries h
        where h.endpoint_id = ${id} and h.subject = s.subject and not h.out_of_order
        order by h.subject_seq limit 1) head
    ), failed as (
      select s.id from sendable s
      where s.due_at > ${isoText(now)} and s.attempts > 0 and not exists (
        select from tallyhook.attempts a
        where a.delivery_id = s.id and a.n = s.attempts and a.at >= ${recovered})
      order by s.due_at limit ${limit}
    ), pulled as (
      update tallyhook.pending_deliveries d set due_at = ${isoText(now)}
      from failed f where d.id = f.id and d.due_at > ${isoText(now)}
      returning 1
    )
    select (select count(*)::int from pulled) as pulled, count(*)::int as examined,
      min(due_at) as first, max(due_at) as last
    from waiting`;
  const { pulled = 0, examined = 0, first = null, last = null } = found ?? {};
  if (pulled > 0) return after;
  // Those that are due with the last one may go on after this page.
  if (examined === EXAMINED_MAX && first !== null && last !== null)
    return Math.max(first, last - 1);
  await sql`
    update tallyhook.endpoint_health set recovered_at = null
    where endpoint_id = ${endpointId} and recovered_at = ${recovered}`;
  return null;
}

/**
 * Moves the deliveries of the common table `gone`, which has their rows of `pending_deliveries`,
 * to those that have ended.
 */
export function endGone({ sql }: Queryable, state: 'cancelled' | 'exhausted', now: Instant) {
  return sql`
    insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, finished_at, attempts,
      fence, state, event_type)
    select id, created_at, endpoint_id, event_id, ${isoText(now)}, attempts, fence, ${state},
      event_type
    from gone on conflict do nothing`;
}

/**
 * Removes deliveries that this transaction has put into the queue because they were missing, and
 * that ended meanwhile; returns how many. A statement of its own: one that moves from the queue
 * while another looks for it may be seen in neither table, but after the insert it is seen.
 */
export async function removeEnded({ sql }: Tx, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const removed = await sql`
    delete from tallyhook.pending_deliveries q using (
      select d.id from unnest(${ids as string[]}::uuid[]) as x(id)
      join tallyhook.deliveries d on d.id = x.id) d
    where q.id = d.id`;
  return removed.count;
}

/**
 * Common tables that put the deliveries of `gone`, which has their rows of `deliveries`, into the
 * queue again: `again` has their ids. They wait for no other one of their subject.
 */
export function queueAgain({ sql }: Queryable, now: Instant) {
  return sql`
    kept as (
      insert into tallyhook.attempts (delivery_id, n, at, duration_ms, result, status,
        response_body, response_headers)
      select id, 1, attempted_at, duration_ms, 'delivered', status, response_body, response_headers
      from gone where attempted_at is not null
      on conflict do nothing
    ), again as (
      insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, queued_at,
        event_type, due_at, attempts, fence, out_of_order)
      select id, created_at, endpoint_id, event_id, ${isoText(now)}, event_type, ${isoText(now)},
        attempts, fence, true
      from gone returning id
    )`;
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
    with gone as (
      delete from tallyhook.pending_deliveries d using (
        select id from tallyhook.pending_deliveries
        where endpoint_id = ${uuidOf(endpointId)} and created_at <= ${isoText(before)}
        order by due_at limit ${limit} for update skip locked) c
      where d.id = c.id returning ${columnsOf(db.sql, pendingDeliveries, 'd')}
    )
    ${endGone(db, 'cancelled', now)}`;
  return cancelled.count;
}

/**
 * Makes the next delivery of each of these subjects due now. To be called under the lock of the
 * endpoint's health and after `storeResults`, as a separate statement, so that it sees deliveries
 * that a concurrent claim has deferred.
 */
export async function makeNextDue(
  tx: Tx,
  blockers: readonly { endpointId: string; subject: string | null }[],
  now: Instant,
): Promise<void> {
  const rows = blockers.flatMap(({ endpointId, subject }) =>
    subject === null ? [] : [{ endpoint_id: uuidOf(endpointId), subject }],
  );
  if (rows.length === 0) return;
  await tx.sql`
    update tallyhook.pending_deliveries d
    set due_at = least(d.due_at, ${isoText(now)}::timestamptz)
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(endpoint_id uuid, subject text)
    cross join lateral (
      select n.id from tallyhook.pending_deliveries n
      where n.endpoint_id = x.endpoint_id and n.subject = x.subject and not n.out_of_order
        and n.attempts = 0
      order by n.subject_seq limit 1) next
    where d.id = next.id`;
}
