/**
 * SQL of the queue: deliveries go in with their events, and are claimed under leases.
 *
 * Nothing here is found by counting or scanning a backlog: the endpoints that have work come from a
 * loose index scan, one probe each, and a claim reads the first rows of one endpoint in the order
 * of `due_at`. Claims of one endpoint follow each other, because each first locks the row of its
 * health.
 */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';

/**
 * Makes the deliveries of these events for every enabled endpoint that wants them, in one
 * statement. The id is made of the time of the event's id and a hash of event and endpoint, so the
 * same two give the same id. A test goes to its own endpoint only, and nobody is told of his own
 * trouble. Answers how many were made.
 */
export async function insertDeliveries(
  tx: Tx,
  recordedAt: Instant,
  eventIds: readonly string[],
): Promise<number> {
  const made = await tx.sql`
    insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, subject,
      subject_seq, state, due_at, queued_at)
    select 'dlv_' || substr(e.id, 5, 14) || '7' || substr(h.hex, 1, 3) || '-8'
        || substr(h.hex, 4, 3) || '-' || substr(h.hex, 7, 12),
      e.recorded_at, p.id, e.id, e.type, e.subject, e.subject_seq, 'pending', e.recorded_at,
      e.recorded_at
    from tallyhook.events e
    join tallyhook.endpoints p on p.state = 'enabled' and p.deleted_at is null and case
      when e.type = 'endpoint.test' then e.subject = 'endpoint:' || p.id
      else p.event_types && array['*', e.type, split_part(e.type, '.', 1) || '.*']
        and e.subject <> 'endpoint:' || p.id end
    cross join lateral (select md5(e.id || p.id) as hex) h
    where e.recorded_at = ${isoText(recordedAt)} and e.id = any(${eventIds as string[]}::text[])`;
  return made.count;
}

/** An endpoint with deliveries in the queue. */
export interface ActiveEndpoint {
  endpointId: string;
  state: 'enabled' | 'disabled' | 'deleted';
  ordered: boolean;
  ratePerS: number | null;
  holdUntil: Instant | null;
  pacedUntil: Instant | null;
  consecutiveFailures: number;
  /** When its first delivery that nobody holds is due; null when all are held. */
  firstDueAt: Instant | null;
}

/** The endpoints after `after` (the empty text: from the first) that have anything in the queue. */
export async function listActive(
  db: Queryable,
  now: Instant,
  after: string,
  limit: number,
): Promise<ActiveEndpoint[]> {
  return db.sql<ActiveEndpoint[]>`
    with recursive active(endpoint_id) as (
      (select d.endpoint_id from tallyhook.deliveries d
        where d.state = 'pending' and d.endpoint_id > ${after} order by d.endpoint_id limit 1)
      union all
      select n.endpoint_id from active a cross join lateral (
        select d.endpoint_id from tallyhook.deliveries d
        where d.state = 'pending' and d.endpoint_id > a.endpoint_id
        order by d.endpoint_id limit 1) n
    )
    select a.endpoint_id as "endpointId",
      case when p.deleted_at is null then p.state else 'deleted' end as state,
      p.ordering = 'subject' as ordered, p.rate_per_s as "ratePerS",
      h.hold_until as "holdUntil", h.paced_until as "pacedUntil",
      h.consecutive_failures as "consecutiveFailures", f.due_at as "firstDueAt"
    from (select endpoint_id from active limit ${limit}) a
    join tallyhook.endpoints p on p.id = a.endpoint_id
    join tallyhook.endpoint_health h on h.endpoint_id = a.endpoint_id
    left join lateral (
      select d.due_at from tallyhook.deliveries d
      where d.endpoint_id = a.endpoint_id and d.state = 'pending'
        and (d.lease_until is null or d.lease_until <= ${isoText(now)})
      order by d.due_at limit 1) f on true`;
}

/** What sending needs to know of an endpoint; the seals are opened later, and kept nowhere. */
export interface ClaimedEndpoint {
  endpointId: string;
  url: string;
  signing: string[];
  encryptedSecrets: string;
  encryptedHeaders: string | null;
  ordered: boolean;
  ratePerS: number | null;
  pacedUntil: Instant | null;
  consecutiveFailures: number;
  lastSuccessAt: Instant | null;
}

/**
 * Locks those of the endpoints that may be sent to now and that no other daemon is claiming from.
 */
export async function lockEndpoints(
  tx: Tx,
  ids: readonly string[],
  now: Instant,
): Promise<ClaimedEndpoint[]> {
  return tx.sql<ClaimedEndpoint[]>`
    select p.id as "endpointId", p.url, p.signing, p.encrypted_secrets as "encryptedSecrets",
      p.encrypted_headers as "encryptedHeaders", p.ordering = 'subject' as ordered,
      p.rate_per_s as "ratePerS", h.paced_until as "pacedUntil",
      h.consecutive_failures as "consecutiveFailures", h.last_success_at as "lastSuccessAt"
    from tallyhook.endpoint_health h join tallyhook.endpoints p on p.id = h.endpoint_id
    where h.endpoint_id = any(${ids as string[]}::text[]) and p.state = 'enabled'
      and p.deleted_at is null and (h.hold_until is null or h.hold_until <= ${isoText(now)})
    order by h.endpoint_id for update of h skip locked`;
}

/** One delivery that is ours until its lease ends. */
export interface Claimed {
  id: string;
  createdAt: Instant;
  endpointId: string;
  eventId: string;
  eventType: string;
  subject: string;
  subjectSeq: bigint;
  queuedAt: Instant;
  attempts: number;
  tries: number;
  fence: number;
  /** The bytes to send; null when the event is older than what is kept. */
  body: string | null;
}

export interface Quota {
  endpointId: string;
  n: number;
}

/** Claims at most `n` due deliveries of each endpoint. */
export async function claim(
  tx: Tx,
  quotas: readonly Quota[],
  now: Instant,
  leaseUntil: Instant,
): Promise<Claimed[]> {
  return tx.sql<Claimed[]>`
    with picked as (
      select d.created_at, d.id
      from jsonb_to_recordset(${asJson(quotas)}::jsonb) as q("endpointId" text, n int)
      cross join lateral (
        select c.created_at, c.id from tallyhook.deliveries c
        where c.endpoint_id = q."endpointId" and c.state = 'pending' and c.due_at <= ${isoText(now)}
          and (c.lease_until is null or c.lease_until <= ${isoText(now)})
        order by c.due_at limit q.n for update skip locked) d
    ), claimed as (
      update tallyhook.deliveries d set lease_until = ${isoText(leaseUntil)}, fence = d.fence + 1
      from picked where d.created_at = picked.created_at and d.id = picked.id
      returning d.id, d.created_at, d.endpoint_id, d.event_id, d.event_type, d.subject,
        d.subject_seq, d.queued_at, d.due_at, d.attempts, d.tries, d.fence
    )
    ${claimedWithBodies(tx)}`;
}

/** How many due deliveries of an ordered endpoint one claim looks through. */
const ORDERED_SCAN = 256;
/**
 * How long a delivery is out of the way that waits for an earlier one; what ends the wait wakes it.
 */
const PARK_MS = 60_000;

/**
 * Claims from endpoints that want order: of each subject only its earliest delivery, and only while
 * none of the subject is under way. What stands behind an earlier one is parked, so that it is not
 * looked at again and again; `wakeFollowers` brings it back.
 */
export async function claimInOrder(
  tx: Tx,
  quotas: readonly Quota[],
  now: Instant,
  leaseUntil: Instant,
): Promise<{ claims: Claimed[]; parked: number }> {
  const rows = await tx.sql<(Claimed & { parked: number })[]>`
    with due as (
      select d.created_at, d.id, d.endpoint_id, d.subject, d.subject_seq, d.due_at, d.passed, q.n
      from jsonb_to_recordset(${asJson(quotas)}::jsonb) as q("endpointId" text, n int)
      cross join lateral (
        select c.created_at, c.id, c.endpoint_id, c.subject, c.subject_seq, c.due_at, c.passed
        from tallyhook.deliveries c
        where c.endpoint_id = q."endpointId" and c.state = 'pending' and c.due_at <= ${isoText(now)}
          and (c.lease_until is null or c.lease_until <= ${isoText(now)})
        order by c.due_at limit ${ORDERED_SCAN} for update skip locked) d
    ), judged as (
      select due.created_at, due.id, due.endpoint_id, due.due_at, due.n, due.subject_seq,
        head.due_at as head_due_at,
        (due.passed or due.subject_seq = head.subject_seq) and not exists (
          select from tallyhook.deliveries b
          where b.endpoint_id = due.endpoint_id and b.subject = due.subject and b.state = 'pending'
            and b.lease_until > ${isoText(now)})
        and row_number() over (partition by due.endpoint_id, due.subject
          order by due.passed, due.subject_seq) = 1 as free
      from due left join lateral (
        select b.subject_seq, b.due_at from tallyhook.deliveries b
        where b.endpoint_id = due.endpoint_id and b.subject = due.subject and b.state = 'pending'
          and not b.passed
        order by b.subject_seq limit 1) head on true
    ), ranked as (
      select created_at, id, n, row_number() over (partition by endpoint_id
        order by due_at, subject_seq) as place
      from judged where free
    ), parked as (
      update tallyhook.deliveries d
      set due_at = greatest(judged.head_due_at, ${isoText(now + PARK_MS)}::timestamptz)
      from judged
      where not judged.free and d.created_at = judged.created_at and d.id = judged.id
      returning d.id
    ), claimed as (
      update tallyhook.deliveries d set lease_until = ${isoText(leaseUntil)}, fence = d.fence + 1
      from ranked
      where ranked.place <= ranked.n and d.created_at = ranked.created_at and d.id = ranked.id
      returning d.id, d.created_at, d.endpoint_id, d.event_id, d.event_type, d.subject,
        d.subject_seq, d.queued_at, d.due_at, d.attempts, d.tries, d.fence
    )
    select k.parked, w.id, w."createdAt", w."endpointId", w."eventId", w."eventType", w.subject,
      w."subjectSeq", w."queuedAt", w.attempts, w.tries, w.fence, w.body
    from (select count(*)::int as parked from parked) k
    left join (${claimedWithBodies(tx)}) w on true`;
  return { claims: rows.filter(({ id }) => id !== null), parked: rows[0]?.parked ?? 0 };
}

function claimedWithBodies({ sql }: Tx) {
  return sql`
    select c.id, c.created_at as "createdAt", c.endpoint_id as "endpointId",
      c.event_id as "eventId", c.event_type as "eventType", c.subject,
      c.subject_seq as "subjectSeq", c.queued_at as "queuedAt", c.attempts, c.tries, c.fence, e.body
    from claimed c
    left join tallyhook.events e on e.recorded_at = c.created_at and e.id = c.event_id
    order by c.due_at, c.id`;
}

/** Writes down how much of their rates these endpoints have used. */
export async function savePaces(
  tx: Tx,
  paces: readonly { endpointId: string; pacedUntil: Instant }[],
): Promise<void> {
  if (paces.length === 0) return;
  const rows = paces.map((p) => ({ id: p.endpointId, until: isoText(p.pacedUntil) }));
  await tx.sql`
    update tallyhook.endpoint_health h set paced_until = x.until
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, until timestamptz)
    where h.endpoint_id = x.id`;
}

/** Takes at most `limit` deliveries of a deleted endpoint out of the queue. */
export async function cancelOf(
  db: Queryable,
  endpointId: string,
  now: Instant,
  limit: number,
): Promise<void> {
  await db.sql`
    update tallyhook.deliveries d
    set state = 'cancelled', finished_at = ${isoText(now)}, lease_until = null
    from (select created_at, id from tallyhook.deliveries
      where endpoint_id = ${endpointId} and state = 'pending'
      order by due_at limit ${limit} for update skip locked) c
    where d.created_at = c.created_at and d.id = c.id`;
}
