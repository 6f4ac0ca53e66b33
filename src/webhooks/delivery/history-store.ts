/** SQL of what people ask about deliveries: lists, one, its attempts, and once more. */
import type { Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';

export interface Delivery {
  id: string;
  endpointId: string;
  eventId: string;
  eventType: string;
  subject: string;
  subjectSeq: bigint;
  /** pending, sending, delivered, exhausted or cancelled. */
  state: string;
  /** When it is tried next, while it is pending. */
  dueAt: Instant;
  attempts: number;
  createdAt: Instant;
  finishedAt: Instant | null;
}

export interface Attempt {
  n: number;
  at: Instant;
  durationMs: number;
  /** delivered, retry, exhausted or gone. */
  verdict: string;
  status: number | null;
  error: string | null;
  responseBody: string | null;
  responseHeaders: Json;
}

export interface DeliveryFilter {
  endpointId?: string;
  eventId?: string;
  eventType?: string;
  state?: string;
  /** Recorded from, and before. */
  since?: Instant;
  until?: Instant;
}

function columns({ sql }: Queryable, now: Instant) {
  return sql`id, endpoint_id as "endpointId", event_id as "eventId", event_type as "eventType",
    subject, subject_seq as "subjectSeq",
    case when state = 'pending' and lease_until > ${isoText(now)}
      then 'sending' else state end as state,
    due_at as "dueAt", attempts, created_at as "createdAt", finished_at as "finishedAt"`;
}

/** Newest first, below the id `before` (the empty text: from the newest). */
export async function listDeliveries(
  db: Queryable,
  filter: DeliveryFilter,
  before: string,
  limit: number,
  now: Instant,
): Promise<Delivery[]> {
  const { sql } = db;
  const { endpointId, eventId, eventType, state, since, until } = filter;
  const stored = state === 'sending' ? 'pending' : state;
  // Ids of deliveries begin with the time of their event's id, so an event's are found by a range.
  const time = eventId?.slice(4, 18);
  const [first, last] = [`dlv_${time}7000`, `dlv_${time}7fff-ffff-ffffffffffff`];
  return sql<Delivery[]>`
    select ${columns(db, now)} from tallyhook.deliveries
    where true
      ${before ? sql`and id < ${before}` : sql``}
      ${endpointId ? sql`and endpoint_id = ${endpointId}` : sql``}
      ${time ? sql`and id between ${first} and ${last}` : sql``}
      ${eventId ? sql`and event_id = ${eventId}` : sql``}
      ${eventType ? sql`and event_type = ${eventType}` : sql``}
      ${stored ? sql`and state = ${stored}` : sql``}
      ${state === 'sending' ? sql`and lease_until > ${isoText(now)}` : sql``}
      ${since === undefined ? sql`` : sql`and created_at >= ${isoText(since)}`}
      ${until === undefined ? sql`` : sql`and created_at < ${isoText(until)}`}
    order by id desc limit ${limit}`;
}

export async function findDelivery(
  db: Queryable,
  id: string,
  now: Instant,
): Promise<Delivery | undefined> {
  const rows = await db.sql<Delivery[]>`
    select ${columns(db, now)} from tallyhook.deliveries where id = ${id} limit 1`;
  return rows[0];
}

/** The first attempts of a delivery, in order. */
export async function listAttempts(
  db: Queryable,
  deliveryId: string,
  limit: number,
): Promise<Attempt[]> {
  return db.sql<Attempt[]>`
    select n, at, duration_ms as "durationMs", verdict, status, error,
      response_body as "responseBody", response_headers as "responseHeaders"
    from tallyhook.attempts where delivery_id = ${deliveryId} order by n, at limit ${limit}`;
}

/**
 * Puts a delivery back to the front of the queue with a new schedule; its attempts go on counting.
 * One that had ended holds up nobody of its subject. False when it is being sent, or its endpoint
 * gets nothing now.
 */
export async function requeue(db: Queryable, id: string, now: Instant): Promise<boolean> {
  const rows = await db.sql<{ id: string }[]>`
    update tallyhook.deliveries d set state = 'pending', due_at = ${isoText(now)},
      queued_at = ${isoText(now)}, tries = 0, passed = d.passed or d.state <> 'pending',
      finished_at = null, lease_until = null
    from tallyhook.endpoints p
    where d.id = ${id} and p.id = d.endpoint_id and p.state = 'enabled' and p.deleted_at is null
      and (d.lease_until is null or d.lease_until <= ${isoText(now)})
    returning d.id`;
  return rows.length > 0;
}
