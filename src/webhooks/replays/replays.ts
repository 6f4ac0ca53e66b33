/**
 * Replays: the events of a time are sent to an endpoint again, in the background and in pages. A
 * page and its position are one commit, so a replay continues where a killed daemon left it. The
 * id of a delivery is derived from event and endpoint, so a page finds the deliveries of its
 * events, and makes those that are missing, in one statement.
 */
import type { Db, Queryable, Tx } from '../../db/connect.ts';
import { columnsOf } from '../../db/rows.ts';
import { type Clock, DAY_MS, type Instant, isoText, isoTextOrNull } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { FIRST_UUID, type Ids, uuidOf } from '../../kernel/ids.ts';
import { REMOVED_SHAPE } from '../../outbox/outbox.ts';
import { COUNTED_MAX, type replay, type Which } from '../../resources/delivery/delivery.ts';
import type { Row } from '../../resources/resource.ts';
import { planByIndex, queueAgain, removeEnded } from '../delivery/queue.ts';
import { deliveries } from '../tables.ts';

type Shown = Row<typeof replay>;
/** What a replay is about. */
type Input = Pick<Shown, 'endpointId' | 'since' | 'until' | 'types' | 'which'>;
interface Replay extends Shown {
  id: string;
  reached: Instant;
  /** The last event that it examined. */
  positionId: string;
}

/** `until` is the present by default. */
type Request = Omit<Input, 'until'> & { until?: Instant | undefined };

/** @param endpointId only those of this one */
type Page = { endpointId?: string | undefined; before: string; limit: number };

export type Replays = ReturnType<typeof makeReplays>;

interface Deps {
  db: Db;
  peopleDb: Db;
  clock: Clock;
  ids: Ids;
  /** How long deliveries are kept. */
  keepMs: number;
}

export function makeReplays(deps: Deps) {
  const { db, peopleDb, clock, ids } = deps;
  const getReplay = async (id: string): Promise<Replay> => {
    const [found] = await peopleDb.sql<Replay[]>`
      select ${columns(peopleDb)} from tallyhook.replays r where r.id = ${id}`;
    if (!found) throw new Failure('not_found');
    return found;
  };
  return {
    /** @throws Failure `invalid_request`, `conflict` while another replay of the endpoint runs */
    async startReplay(request: Request, createdBy: string): Promise<Replay> {
      const input = inputOf(deps, request);
      const id = ids.next('rpl');
      const replay = { ...input, id, createdBy, createdAt: clock.now() };
      const started = await peopleDb.single((q) => insertReplay(q, replay));
      if (started) return started;
      throw new Failure(
        'conflict',
        'another replay of the endpoint runs; wait for it or cancel it',
      );
    },

    /**
     * What a replay would queue; of the first `COUNTED_MAX` events.
     * @throws Failure `invalid_request`
     */
    async countReplay(request: Request): Promise<Shown> {
      const input = inputOf(deps, request);
      const counts = await peopleDb.begin((tx) => countReplay(tx, input, COUNTED_MAX));
      const none = {
        id: null,
        reached: null,
        progress: null,
        createdBy: null,
        createdAt: null,
        finishedAt: null,
      };
      return { ...none, ...input, ...counts, state: 'dry_run' };
    },

    /** Newest first, with ids below `before`; from the newest for the empty string. */
    async listReplays({ endpointId, before, limit }: Page): Promise<Replay[]> {
      const { sql } = peopleDb;
      return sql<Replay[]>`
        select ${columns(peopleDb)} from tallyhook.replays r
        where true ${before ? sql`and r.id < ${before}` : sql``}
          ${endpointId === undefined ? sql`` : sql`and r.endpoint_id = ${endpointId}`}
        order by r.id desc limit ${limit}`;
    },

    /** @throws Failure `not_found` */
    getReplay,

    /** What it has queued stays. @throws Failure `not_found`, `conflict` when it has ended */
    async cancelReplay(id: string): Promise<Replay> {
      await getReplay(id);
      const cancelled = await peopleDb.single((q) => cancelReplay(q, id, clock.now()));
      if (cancelled) return cancelled;
      throw new Failure('conflict', 'the replay has ended');
    },

    /** Works through a page of one replay; false when none can go on now. */
    replayOnce: async (now: Instant) =>
      (await db.single(hasRunning)) && db.begin((tx) => replayPage(tx, now)),

    /** Removes some replays that ended before; returns how many. */
    async removeReplays(before: Instant, limit: number): Promise<number> {
      const removed = await db.single(
        ({ sql }) => sql`
          delete from tallyhook.replays where id = any(array(
            select id from tallyhook.replays
            where finished_at < ${isoText(before)} limit ${limit}))`,
      );
      return removed.count;
    },
  };
}

/** @throws Failure `invalid_request` */
function inputOf({ clock, keepMs }: Deps, { until, ...request }: Request): Input {
  const now = clock.now();
  const input = { ...request, until: Math.min(until ?? now, now) };
  if (input.since >= input.until)
    throw new Failure('invalid_request', 'since must be before until, and in the past');
  if (input.since >= now - keepMs) return input;
  const days = Math.floor(keepMs / DAY_MS);
  throw new Failure(
    'invalid_request',
    `since must be within the last ${days} days, for which deliveries are kept`,
  );
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
  return sql`r.id, r.endpoint_id, r.since, r.until, r.event_types as types, r.which, r.state,
    r.position_at as reached, case r.state when 'done' then 1 else (
      extract(epoch from r.position_at - r.since) / extract(epoch from r.until - r.since))::float8
    end as progress, r.position_id, r.examined, r.queued, r.created_by, r.created_at,
    r.finished_at`;
}

/** Stores a replay; undefined while another one of the endpoint runs. */
async function insertReplay(
  db: Queryable,
  replay: Input & { id: string; createdBy: string; createdAt: Instant },
): Promise<Replay | undefined> {
  const { id, endpointId, since, until, types, which, createdBy, createdAt } = replay;
  const rows = await db.sql<Replay[]>`
    insert into tallyhook.replays as r (id, endpoint_id, since, until, event_types, which, state,
      position_at, position_id, created_by, created_at)
    values (${id}, ${endpointId}, ${isoText(since)}, ${isoText(until)}, ${types}::text[],
      ${which}, 'running', ${isoText(since)}, '', ${createdBy}, ${isoText(createdAt)})
    on conflict (endpoint_id) where state = 'running' do nothing
    returning ${columns(db)}`;
  return rows[0];
}

/** Ends a running replay; what it has queued stays. Undefined if it has ended already. */
async function cancelReplay(db: Queryable, id: string, now: Instant): Promise<Replay | undefined> {
  const rows = await db.sql<Replay[]>`
    update tallyhook.replays r set state = 'cancelled', finished_at = ${isoText(now)}
    where r.id = ${id} and r.state = 'running' returning ${columns(db)}`;
  return rows[0];
}

/** What a page did, or a replay would do. */
interface Counts {
  examined: number;
  queued: number;
}

async function hasRunning({ sql }: Queryable): Promise<boolean> {
  const rows = await sql`select from tallyhook.replays where state = 'running' limit 1`;
  return rows.length > 0;
}

/**
 * Works through a page of the running replay that has examined least, which no other daemon can do
 * meanwhile; ends it if its endpoint is deleted. False when none can go on: their endpoints are
 * disabled or have many pending deliveries.
 */
async function replayPage(tx: Tx, now: Instant): Promise<boolean> {
  const { sql } = tx;
  await planByIndex(tx);
  const [replay] = await sql<(Replay & { deleted: boolean })[]>`
    select ${columns(tx)}, p.id is null or p.deleted_at is not null as deleted
    from tallyhook.replays r left join tallyhook.endpoints p on p.id = r.endpoint_id
    where r.state = 'running' and (p.id is null or p.deleted_at is not null
      or p.state = 'enabled' and ${PENDING_MAX} >= (select count(*) from (
        select from tallyhook.pending_deliveries d
        where d.endpoint_id = substr(r.endpoint_id, 4)::uuid limit ${PENDING_MAX + 1}) x))
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
      position_at = coalesce(${isoTextOrNull(lastAt)}, position_at),
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
  const rows = await tx.sql<(PageEnd & { made: string[] })[]>`
    with page as materialized (${eventsOf(tx, replay, PAGE)}), matching as materialized (
      ${deliveriesOf(tx, replay)}
    ), made as (
      insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, event_type,
        due_at, queued_at, out_of_order)
      select w.delivery_id, w.recorded_at, ${uuidOf(replay.endpointId)}::uuid, w.id, w.type,
        ${at}, ${at}, true
      from matching w
      where ${replay.which !== 'failed'} and not exists (
        select from tallyhook.deliveries d
        where d.id = w.delivery_id and d.created_at = w.recorded_at)
      on conflict do nothing returning id
    ), gone as (
      delete from tallyhook.deliveries d using matching w
      where d.id = w.delivery_id and d.created_at = w.recorded_at
        and d.state = any(${AGAIN[replay.which]}::text[])
      returning ${columnsOf(tx.sql, deliveries, 'd')}
    ), ${queueAgain(tx, now)}
    select (select count(*) from page)::int as examined,
      ((select count(*) from made) + (select count(*) from again))::int as queued,
      array(select id from made) as made,
      l.recorded_at as last_at, 'evt_' || l.id as last_id
    from (select) x left join lateral (
      select recorded_at, id from page order by recorded_at desc, id desc limit 1) l on true`;
  const { made = [], ...end } = rows[0] ?? { examined: 0, queued: 0, lastAt: null, lastId: null };
  return { ...end, queued: end.queued - (await removeEnded(tx, made)) };
}

/** What a replay would queue, of at most `limit` events. */
async function countReplay(tx: Tx, input: Input, limit: number): Promise<Counts> {
  await planByIndex(tx);
  const from = { ...input, reached: input.since, positionId: '' };
  const rows = await tx.sql<Counts[]>`
    with page as materialized (${eventsOf(tx, from, limit)}), matching as materialized (
      ${deliveriesOf(tx, input)}
    )
    select (select count(*) from page)::int as examined, (count(*) filter (where case
      when d.id is not null then d.state = any(${AGAIN[input.which]}::text[])
      else ${input.which !== 'failed'} and q.id is null end))::int as queued
    from matching w
    left join tallyhook.deliveries d on d.id = w.delivery_id and d.created_at = w.recorded_at
    left join tallyhook.pending_deliveries q on q.id = w.delivery_id`;
  return rows[0] ?? { examined: 0, queued: 0 };
}

/** The next events, of all types. */
function eventsOf(
  { sql }: Queryable,
  replay: Pick<Replay, 'reached' | 'positionId' | 'until'>,
  limit: number,
) {
  return sql`
    select recorded_at, id, type, subject, subject_seq, shape from tallyhook.events
    where (recorded_at, id) > (${isoText(replay.reached)}::timestamptz,
      ${replay.positionId === '' ? FIRST_UUID : uuidOf(replay.positionId)})
      and recorded_at < ${isoText(replay.until)}
    order by recorded_at, id limit ${limit}`;
}

/** The deliveries of the page's events to which it subscribes and that pass its filter. */
function deliveriesOf(db: Queryable, { endpointId, types }: Input) {
  return db.sql`
    select e.recorded_at, e.id, e.type, e.subject, e.subject_seq,
      tallyhook.delivery_id(e.id, p.id) as delivery_id
    from page e join tallyhook.endpoints p
      on p.id = ${endpointId} and tallyhook.is_subscribed(p, e.type, e.subject)
    where e.shape <> ${REMOVED_SHAPE}
      and (${types.length === 0} or tallyhook.patterns_of(e.type) && ${types}::text[])
      and (p.filter is null or (
        select tallyhook.passes_filter(v, p.filter) from tallyhook.events v
        where v.recorded_at = e.recorded_at and v.id = e.id))`;
}
