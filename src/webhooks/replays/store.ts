/**
 * SQL of replays. The id of a delivery is derived from event and endpoint, so a page of a replay
 * finds the deliveries of its events, and makes those that are missing, in one statement.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { FIRST_UUID, uuidOf } from '../../kernel/ids.ts';
import { deliveryId, hashed, isSubscribed } from '../delivery/fan-out-store.ts';
import { planByIndex } from '../delivery/queue-store.ts';

export const WHICH = ['failed', 'missing', 'all'] as const;
export type Which = (typeof WHICH)[number];

/** What a replay is about. */
export interface ReplayInput {
  endpointId: string;
  /** Events recorded from then on, and before. */
  since: Instant;
  until: Instant;
  /** Exact types or `group.*`; empty for all that the endpoint subscribes to. */
  eventTypes: string[];
  which: Which;
}

export interface Replay extends ReplayInput {
  id: string;
  state: 'running' | 'done' | 'cancelled';
  /** When the last event that it examined was recorded. */
  positionAt: Instant;
  positionId: string;
  examined: number;
  queued: number;
  createdBy: string;
  createdAt: Instant;
  finishedAt: Instant | null;
}

/** Which finished deliveries are sent again. */
const AGAIN: Record<Which, string[]> = {
  failed: ['exhausted', 'cancelled'],
  missing: [],
  all: ['exhausted', 'cancelled', 'delivered'],
};

/** Events of one page. */
const PAGE = 500;
/** With more pending deliveries the replay of an endpoint waits. */
const PENDING_MAX = 10_000;

function columns({ sql }: Queryable) {
  return sql`r.id, r.endpoint_id, r.since, r.until, r.event_types, r.which, r.state, r.position_at,
    r.position_id, r.examined, r.queued, r.created_by, r.created_at, r.finished_at`;
}

/** Stores a replay; undefined while another one of the endpoint runs. */
export async function insertReplay(
  db: Queryable,
  replay: ReplayInput & Pick<Replay, 'id' | 'createdBy' | 'createdAt'>,
): Promise<Replay | undefined> {
  const { id, endpointId, since, until, eventTypes, which, createdBy, createdAt } = replay;
  const rows = await db.sql<Replay[]>`
    insert into tallyhook.replays as r (id, endpoint_id, since, until, event_types, which, state,
      position_at, position_id, created_by, created_at)
    values (${id}, ${endpointId}, ${isoText(since)}, ${isoText(until)}, ${eventTypes}::text[],
      ${which}, 'running', ${isoText(since)}, '', ${createdBy}, ${isoText(createdAt)})
    on conflict (endpoint_id) where state = 'running' do nothing
    returning ${columns(db)}`;
  return rows[0];
}

export async function findReplay(db: Queryable, id: string): Promise<Replay | undefined> {
  const rows = await db.sql<Replay[]>`
    select ${columns(db)} from tallyhook.replays r where r.id = ${id}`;
  return rows[0];
}

/** Newest first, with ids below `before`; from the newest for the empty string. */
export async function listReplays(
  db: Queryable,
  { before, limit }: { before: string; limit: number },
): Promise<Replay[]> {
  return db.sql<Replay[]>`
    select ${columns(db)} from tallyhook.replays r
    ${before ? db.sql`where r.id < ${before}` : db.sql``} order by r.id desc limit ${limit}`;
}

/** Ends a running replay; what it has queued stays. Undefined if it has ended already. */
export async function cancelReplay(
  db: Queryable,
  id: string,
  now: Instant,
): Promise<Replay | undefined> {
  const rows = await db.sql<Replay[]>`
    update tallyhook.replays r set state = 'cancelled', finished_at = ${isoText(now)}
    where r.id = ${id} and r.state = 'running' returning ${columns(db)}`;
  return rows[0];
}

/** Removes some that ended before; returns how many. */
export async function removeReplays(
  { sql }: Queryable,
  before: Instant,
  limit: number,
): Promise<number> {
  const removed = await sql`
    delete from tallyhook.replays where id = any(array(
      select id from tallyhook.replays where finished_at < ${isoText(before)} limit ${limit}))`;
  return removed.count;
}

/** What a page did, or a replay would do. */
export interface Counts {
  examined: number;
  queued: number;
}

/**
 * Works through a page of the running replay that has examined least, which no other daemon can do
 * meanwhile; ends it if its endpoint is deleted. False when none can go on: their endpoints are
 * disabled or have many pending deliveries.
 */
export async function replayPage(tx: Tx, now: Instant): Promise<boolean> {
  const { sql } = tx;
  await planByIndex(tx);
  const [replay] = await sql<(Replay & { deleted: boolean })[]>`
    select ${columns(tx)}, p.id is null or p.deleted_at is not null as deleted
    from tallyhook.replays r left join tallyhook.endpoints p on p.id = r.endpoint_id
    where r.state = 'running' and (p.id is null or p.deleted_at is not null
      or p.state = 'enabled' and ${PENDING_MAX} >= (select count(*) from (
        select from tallyhook.deliveries d where d.endpoint_id = substr(r.endpoint_id, 4)::uuid
          and d.state = 'pending' limit ${PENDING_MAX + 1}) x))
    order by r.examined, r.id limit 1 for update of r skip locked`;
  if (!replay) return false;
  if (replay.deleted) await cancelReplay(tx, replay.id, now);
  else await savePage(tx, replay.id, await queuePage(tx, replay, now), now);
  return true;
}

async function savePage(
  { sql }: Tx,
  id: string,
  { examined, queued, lastAt, lastId }: PageEnd,
  now: Instant,
): Promise<void> {
  const isDone = examined < PAGE;
  await sql`
    update tallyhook.replays set examined = examined + ${examined}, queued = queued + ${queued},
      position_at = coalesce(${lastAt === null ? null : isoText(lastAt)}, position_at),
      position_id = coalesce(${lastId}, position_id),
      state = ${isDone ? 'done' : 'running'}, finished_at = ${isDone ? isoText(now) : null}
    where id = ${id}`;
}

interface PageEnd extends Counts {
  lastAt: Instant | null;
  lastId: string | null;
}

async function queuePage(tx: Tx, replay: Replay, now: Instant): Promise<PageEnd> {
  const at = isoText(now);
  const rows = await tx.sql<PageEnd[]>`
    with page as materialized (${eventsOf(tx, replay, PAGE)}), matching as materialized (
      ${deliveriesOf(tx, replay)}
    ), made as (
      insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, subject,
        subject_seq, state, due_at, queued_at, out_of_order)
      select delivery_id, recorded_at, ${uuidOf(replay.endpointId)}::uuid, id, type, subject,
        subject_seq, 'pending', ${at}, ${at}, true
      from matching where ${replay.which !== 'failed'} on conflict do nothing returning 1
    ), again as (
      update tallyhook.deliveries d set state = 'pending', due_at = ${at}, queued_at = ${at},
        schedule_step = 0, out_of_order = true, finished_at = null, lease_until = null
      from matching w
      where d.id = w.delivery_id and d.created_at = w.recorded_at
        and d.state = any(${AGAIN[replay.which]}::text[])
      returning 1
    )
    select (select count(*) from page)::int as examined,
      ((select count(*) from made) + (select count(*) from again))::int as queued,
      l.recorded_at as last_at, 'evt_' || l.id as last_id
    from (select) x left join lateral (
      select recorded_at, id from page order by recorded_at desc, id desc limit 1) l on true`;
  return rows[0] ?? { examined: 0, queued: 0, lastAt: null, lastId: null };
}

/** What a replay would queue, of at most `limit` events. */
export async function countReplay(tx: Tx, input: ReplayInput, limit: number): Promise<Counts> {
  await planByIndex(tx);
  const from = { ...input, positionAt: input.since, positionId: '' };
  const rows = await tx.sql<Counts[]>`
    with page as materialized (${eventsOf(tx, from, limit)}), matching as materialized (
      ${deliveriesOf(tx, input)}
    )
    select (select count(*) from page)::int as examined, (count(*) filter (where case
      when d.id is null then ${input.which !== 'failed'}
      else d.state = any(${AGAIN[input.which]}::text[]) end))::int as queued
    from matching w left join tallyhook.deliveries d
      on d.id = w.delivery_id and d.created_at = w.recorded_at`;
  return rows[0] ?? { examined: 0, queued: 0 };
}

/** The next events, whatever their type. */
function eventsOf(
  { sql }: Queryable,
  replay: Pick<Replay, 'positionAt' | 'positionId' | 'until'>,
  limit: number,
) {
  return sql`
    select recorded_at, id, type, subject, subject_seq from tallyhook.events
    where (recorded_at, id) > (${isoText(replay.positionAt)}::timestamptz,
      ${replay.positionId === '' ? FIRST_UUID : uuidOf(replay.positionId)})
      and recorded_at < ${isoText(replay.until)}
    order by recorded_at, id limit ${limit}`;
}

/** The deliveries of those events of the page that the endpoint subscribes to. */
function deliveriesOf(db: Queryable, { endpointId, eventTypes }: ReplayInput) {
  return db.sql`
    select e.recorded_at, e.id, e.type, e.subject, e.subject_seq, ${deliveryId(db)} as delivery_id
    from page e join tallyhook.endpoints p on p.id = ${endpointId} and ${isSubscribed(db)}
    cross join lateral ${hashed(db)}
    where ${eventTypes.length === 0} or array['*', e.type, split_part(e.type, '.', 1) || '.*']
      && ${eventTypes}::text[]`;
}
