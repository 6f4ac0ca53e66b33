/** Deliveries and their attempts for people: lists, requested retries, the backlog, and expiry. */
import type { Db, Queryable, Tx } from '../../db/connect.ts';
import { columnsOf } from '../../db/rows.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { isId, uuidAt, uuidOf } from '../../kernel/ids.ts';
import { type Outbox, REMOVED_SHAPE, removedAtOf } from '../../outbox/outbox.ts';
import type { attempt, delivery, deliveryDetail } from '../../resources/delivery/delivery.ts';
import type { RowOf } from '../../resources/fields.ts';
import type { Row } from '../../resources/resource.ts';
import { exhaustedEvent } from '../endpoints/events.ts';
import { deliveries, pendingDeliveries } from '../tables.ts';
import {
  activeEndpoints,
  deliveryIdsOf,
  endGone,
  isUnclaimed,
  planByIndex,
  queueAgain,
  requestProbe,
  sendFirst,
} from './queue.ts';

type Delivery = Row<typeof delivery>;
type Detail = Row<typeof deliveryDetail>;
type Attempt = Row<typeof attempt>;
type DeliveryFilter = Partial<RowOf<typeof delivery.filters>>;

const ATTEMPTS_MAX = 200;
const EXPIRED_MAX = 200;

interface DeliveriesDeps {
  db: Db;
  peopleDb: Db;
  clock: Clock;
  emit: Outbox['emit'];
  /** Called when something may have become due. */
  wake: () => void;
}

export type Deliveries = ReturnType<typeof makeDeliveries>;

export function makeDeliveries({ db, peopleDb, clock, emit, wake }: DeliveriesDeps) {
  const getDelivery = async (id: string): Promise<Detail> => {
    const found = isId('dlv', id) && (await findDelivery(peopleDb, id, clock.now()));
    if (!found) throw new Failure('not_found');
    return found;
  };
  return {
    /** Newest first, with ids below `before`; from the newest for the empty string. */
    listDeliveries: (filter: DeliveryFilter, page: { before: string; limit: number }) =>
      listDeliveries(peopleDb, filter, page.before, page.limit, clock.now()),

    /** @throws Failure `not_found` */
    getDelivery,

    /** @throws Failure `not_found` */
    async listAttempts(deliveryId: string): Promise<Attempt[]> {
      await getDelivery(deliveryId);
      return listAttempts(peopleDb, deliveryId, ATTEMPTS_MAX);
    },

    /**
     * Sends a delivery in any state now, even while its endpoint is paused, and restarts its retry
     * schedule; a finished one becomes pending again and does not block its subject.
     * @throws Failure `not_found`, `conflict`
     */
    async retryDelivery(id: string): Promise<Delivery> {
      const delivery = await getDelivery(id);
      if (delivery.bodyRemovedAt !== null)
        throw new Failure('conflict', 'the body of its event was removed, so nothing can be sent');
      await peopleDb.begin(async (tx) => {
        const now = clock.now();
        await requestProbe(tx, delivery.endpointId, now);
        if (!(await retry(tx, id, now)))
          throw new Failure(
            'conflict',
            'the delivery is in flight, or its endpoint is not enabled',
          );
        await sendFirst(tx, delivery, now);
      });
      wake();
      return getDelivery(id);
    },

    /** Cancels an exhausted delivery. @throws Failure `not_found`, `conflict` */
    async cancelDelivery(id: string): Promise<Delivery> {
      const { state } = await getDelivery(id);
      const rows = await peopleDb.sql<{ id: string }[]>`
        update tallyhook.deliveries set state = 'cancelled', finished_at = ${isoText(clock.now())}
        where id = ${uuidOf(id)} and state = 'exhausted' returning id`;
      if (rows.length > 0) return getDelivery(id);
      throw new Failure('conflict', `the delivery is ${state}; only an exhausted one is cancelled`);
    },

    /**
     * Exhausts pending deliveries of events recorded before `before`, which retention will remove,
     * and emits the events about it. Returns true when none is left, false when the signal ended
     * it.
     */
    async endExpired(before: Instant, signal: AbortSignal): Promise<boolean> {
      const endSome = () =>
        db.begin(async (tx) => {
          const now = clock.now();
          const ended = await exhaustBefore(tx, before, now, EXPIRED_MAX);
          const drafts = ended.flatMap((one) => exhaustedEvent(one, one, 'retention', now));
          await emit(tx, drafts);
          return ended.length;
        });
      while (!signal.aborted) if ((await endSome()) === 0) return true;
      return false;
    },
  };
}

async function retry(tx: Tx, id: string, now: Instant): Promise<boolean> {
  const { sql } = tx;
  const isReady = sql`p.id = 'ep_' || d.endpoint_id and p.state = 'enabled'
    and p.deleted_at is null`;
  const pending = await sql`
    update tallyhook.pending_deliveries d set due_at = ${isoText(now)},
      queued_at = ${isoText(now)}, schedule_step = 0, lease_until = null
    from tallyhook.endpoints p
    where d.id = ${uuidOf(id)} and ${isReady}
      and ${isUnclaimed(tx, now)}
    returning d.id`;
  if (pending.length > 0) return true;
  const ended = await sql`
    with gone as (
      delete from tallyhook.deliveries d using tallyhook.endpoints p
      where d.id = ${uuidOf(id)} and ${isReady} returning ${columnsOf(sql, deliveries, 'd')}
    ), ${queueAgain(tx, now)}
    select id from again`;
  return ended.length > 0;
}

function isHeld({ sql }: Pick<Queryable, 'sql'>) {
  return sql`endpoint_id in (
    select substr(p.id, 4)::uuid from tallyhook.endpoints p
    where p.state = 'disabled' and p.deleted_at is null)`;
}

/** The same columns of those that are pending and of those that have ended. */
function listedOf({ sql }: Queryable, now: Instant) {
  const state = sql`case when lease_until > ${isoText(now)} then 'sending'
      when ${isHeld({ sql })} then 'held' else 'pending' end`;
  const common = sql`id, endpoint_id, event_id, event_type, attempts, created_at`;
  return {
    pending: sql`${common}, ${state} as state,
      case when ${state} = 'pending' then due_at end as due_at,
      null::timestamptz as finished_at, null::int as status`,
    ended: sql`${common}, state, null::timestamptz as due_at, finished_at, status`,
  };
}

/** What is shown of the rows `d`, with the subject of their event `e`, and their endpoint `p`. */
function shown({ sql }: Queryable) {
  return sql`'dlv_' || d.id as id, 'ep_' || d.endpoint_id as endpoint_id, p.url as endpoint_url,
    'evt_' || d.event_id as event_id, d.event_type, e.subject, e.subject_seq, d.state, d.due_at,
    d.attempts, d.created_at, d.finished_at, coalesce(l.status, d.status) as last_status,
    l.error as last_error,
    d.state in ('pending', 'held') and coalesce(l.result <> 'delivered', false) as failing`;
}

/** The endpoint `p`, the event `e` and the last logged attempt `l` of the rows `d`. */
function joined({ sql }: Queryable) {
  return sql`left join tallyhook.endpoints p on p.id = 'ep_' || d.endpoint_id
    left join tallyhook.events e on e.recorded_at = d.created_at and e.id = d.event_id
    left join lateral (
      select a.status, a.error, a.result from tallyhook.attempts a
      where a.delivery_id = d.id order by a.n desc, a.at desc limit 1) l on true`;
}

export async function listDeliveries(
  db: Queryable,
  filter: DeliveryFilter,
  before: string,
  limit: number,
  now: Instant,
): Promise<Delivery[]> {
  const { sql } = db;
  const { endpointId, eventId, eventType, state, since, until } = filter;
  const [first, last] = eventId ? deliveryIdsOf(uuidOf(eventId)) : [];
  // A range, and its order: else the planner may walk over all deliveries to find those of one.
  const endpoint = endpointId && uuidOf(endpointId);
  const page = sql`
    ${before ? sql`and d.id < ${uuidOf(before)}` : sql``}
    ${endpoint ? sql`and d.endpoint_id between ${endpoint} and ${endpoint}` : sql``}
    ${first && last ? sql`and d.id between ${first} and ${last}` : sql``}
    ${eventId ? sql`and event_id = ${uuidOf(eventId)}` : sql``}
    ${eventType ? sql`and event_type = ${eventType}` : sql``}
    ${since === undefined ? sql`` : sql`and created_at >= ${isoText(since)}`}
    ${until === undefined ? sql`` : sql`and created_at < ${isoText(until)}`}`;
  const { pending, ended } = listedOf(db, now);
  const isPending = state && PENDING.has(state);
  return sql<Delivery[]>`
    select ${shown(db)} from (
      (select ${pending} from tallyhook.pending_deliveries d
        where ${state === undefined || isPending === true} ${page}
          ${state === 'sending' ? sql`and lease_until > ${isoText(now)}` : sql``}
          ${state === 'pending' ? sql`and not ${isHeld(db)}` : sql``}
          ${state === 'held' ? sql`and ${isHeld(db)}` : sql``}
        order by d.id desc limit ${limit})
      union all
      (select ${ended} from tallyhook.deliveries d
        where ${isPending !== true} ${page} ${state && !isPending ? ofState(db, state) : sql``}
        order by ${endpoint ? sql`d.endpoint_id desc,` : sql``} d.id desc limit ${limit})
    ) d ${joined(db)}
    order by d.id desc limit ${limit}`;
}

const PENDING = new Set(['pending', 'held', 'sending']);

/** The states of few deliveries are literals, so that a generic plan can use their index too. */
function ofState({ sql }: Queryable, state: string) {
  const rare = {
    exhausted: sql`and state = 'exhausted'`,
    cancelled: sql`and state = 'cancelled'`,
  };
  return rare[state as keyof typeof rare] ?? sql`and state = ${state}`;
}

export async function findDelivery(
  db: Queryable,
  id: string,
  now: Instant,
): Promise<Detail | undefined> {
  const { pending, ended } = listedOf(db, now);
  const rows = await db.sql<Detail[]>`
    select ${shown(db)}, ${removedAtOf(db)} as body_removed_at,
      case when e.shape <> ${REMOVED_SHAPE} then tallyhook.event_body(e) end as request_body
    from (
      select ${pending} from tallyhook.pending_deliveries where id = ${uuidOf(id)}
      union all
      select ${ended} from tallyhook.deliveries where id = ${uuidOf(id)}
    ) d ${joined(db)}
    limit 1`;
  return rows[0];
}

export async function listAttempts(
  db: Queryable,
  deliveryId: string,
  limit: number,
): Promise<Attempt[]> {
  const id = uuidOf(deliveryId);
  return db.sql<Attempt[]>`
    select n, at, duration_ms, result, status, error, response_body, response_headers
    from tallyhook.attempts where delivery_id = ${id}
    union all
    select 1, attempted_at, duration_ms, 'delivered', status, null, response_body, response_headers
    from tallyhook.deliveries where id = ${id} and attempted_at is not null
    order by n, at limit ${limit}`;
}

/**
 * The number of pending deliveries that are not held, up to `max`, and the earliest `queued_at` of
 * those counted.
 */
export async function countPending(
  db: Queryable,
  max: number,
): Promise<{ waiting: number; since: Instant | null }> {
  const rows = await db.sql<{ waiting: number; since: Instant | null }[]>`
    with ${activeEndpoints(db)}
    select count(*)::int as waiting, min(queued_at) as since from (
      select d.queued_at
      from active a
      join tallyhook.endpoints p on p.id = 'ep_' || a.endpoint_id and p.state = 'enabled'
      cross join lateral (
        select queued_at from tallyhook.pending_deliveries
        where endpoint_id = a.endpoint_id limit ${max}) d
      limit ${max}) x`;
  return rows[0] ?? { waiting: 0, since: null };
}

/** Deliveries whose every attempt failed, counted up to `max`. */
export async function countExhausted({ sql }: Queryable, max: number): Promise<number> {
  const rows = await sql<{ count: number }[]>`
    select count(*)::int as count from (
      select from tallyhook.deliveries where state = 'exhausted' limit ${max}) x`;
  return rows[0]?.count ?? 0;
}

interface ExpiredDelivery {
  id: string;
  endpointId: string;
  url: string;
  eventId: string;
  eventType: string;
  attempts: number;
}

/** Exhausts at most `limit` pending deliveries of events recorded before `before`. */
async function exhaustBefore(
  tx: Tx,
  before: Instant,
  now: Instant,
  limit: number,
): Promise<ExpiredDelivery[]> {
  await planByIndex(tx);
  return tx.sql<ExpiredDelivery[]>`
    with gone as (
      delete from tallyhook.pending_deliveries d using (
        select c.id from tallyhook.pending_deliveries c
        where c.id < ${uuidAt(before)} and c.created_at < ${isoText(before)}
        order by c.id limit ${limit} for update skip locked) c
      where d.id = c.id returning ${columnsOf(tx.sql, pendingDeliveries, 'd')}
    ), ended as (${endGone(tx, 'exhausted', now)})
    select 'dlv_' || d.id as id, p.id as endpoint_id, p.url, 'evt_' || d.event_id as event_id,
      d.event_type, d.attempts
    from gone d join tallyhook.endpoints p on p.id = 'ep_' || d.endpoint_id`;
}
