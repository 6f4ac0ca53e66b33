/**
 * SQL that makes deliveries: one per event and subscribed endpoint. Those of a disabled endpoint
 * are made too and wait until it is enabled. The id of a delivery is derived from the time in the
 * event's id and a hash of event and endpoint, so making one again changes nothing. The tables of
 * events and deliveries have ids without their prefixes.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { uuidOf } from '../../kernel/ids.ts';
import { removeEnded } from './queue.ts';

/** The id of a delivery of event `e`; `h.hex` is the hash of event and endpoint. */
export function deliveryId({ sql }: Queryable) {
  return sql`(substr(e.id::text, 1, 14) || '7' || substr(h.hex, 1, 3) || '-8'
    || substr(h.hex, 4, 3) || '-' || substr(h.hex, 7, 12))::uuid`;
}

/** The hash `h` of event `e` and endpoint `p`. */
export function hashed({ sql }: Queryable) {
  return sql`(select md5('evt_' || e.id || p.id) as hex) h`;
}

function insertInto(db: Queryable) {
  return db.sql`
    insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, event_type,
      subject, subject_seq, due_at, queued_at)
    select ${deliveryId(db)}, e.recorded_at, substr(p.id, 4)::uuid, e.id, e.type,
      case p.ordering when 'subject' then e.subject end,
      case p.ordering when 'subject' then e.subject_seq end, e.recorded_at, e.recorded_at`;
}

/**
 * Whether endpoint `p` subscribes to event `e`. An `endpoint.test` goes to its own endpoint only;
 * an endpoint receives no other event about itself.
 */
export function isSubscribed({ sql }: Queryable) {
  return sql`
    p.deleted_at is null and case
      when e.type = 'endpoint.test' then e.subject = 'endpoint:' || p.id
      else p.event_types && array['*', e.type, split_part(e.type, '.', 1) || '.*']
        and e.subject <> 'endpoint:' || p.id end`;
}

/** Inserts the deliveries of these events for every endpoint that subscribes to them. */
export async function fanOut(
  tx: Tx,
  recordedAt: Instant,
  eventIds: readonly string[],
): Promise<number> {
  const inserted = await tx.sql`
    ${insertInto(tx)}
    from tallyhook.events e
    join tallyhook.endpoints p on ${isSubscribed(tx)}
    cross join lateral ${hashed(tx)}
    where e.recorded_at = ${isoText(recordedAt)}
      and e.id = any(${eventIds.map(uuidOf)}::uuid[])`;
  return inserted.count;
}

/**
 * Inserts the missing deliveries of events numbered above `after` that were recorded before an
 * endpoint was created or its types changed: their producers may not have seen it.
 */
export async function catchUp(tx: Tx, after: bigint): Promise<void> {
  const made = await tx.sql<{ id: string }[]>`
    with f as materialized (
      select recorded_at, ids from tallyhook.numbered_events
      where first_seq > ${after.toString()}::bigint
    ), p as materialized (
      select id, event_types, ordering, subscribed_at, deleted_at from tallyhook.endpoints
      where subscribed_at > (select min(recorded_at) from f) - interval '1 minute'
    )
    ${insertInto(tx)}
    from p join f on f.recorded_at < p.subscribed_at + interval '1 minute'
    cross join lateral unnest(f.ids) as x(id)
    cross join lateral (
      select v.id, v.type, v.subject, v.subject_seq, v.recorded_at from tallyhook.events v
      where v.recorded_at = f.recorded_at and v.id = x.id offset 0) e
    cross join lateral ${hashed(tx)}
    where ${isSubscribed(tx)} and not exists (
      select from tallyhook.deliveries d
      where d.created_at = e.recorded_at and d.id = ${deliveryId(tx)})
    on conflict do nothing returning id`;
  await removeEnded(
    tx,
    made.map(({ id }) => id),
  );
}
