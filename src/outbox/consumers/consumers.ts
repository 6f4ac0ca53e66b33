/**
 * Named consumers: those who pull keep no cursor of their own. A consumer reads the feed into a
 * window (`window.ts`), from which its workers pull; what they acknowledge leaves it.
 */
import type { Db, Queryable } from '../../db/connect.ts';
import {
  type Clock,
  type Instant,
  isoText,
  monotonicMs,
  withDeadline,
} from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import { CONSUMERS_MAX, type consumer } from '../../resources/delivery/consumer.ts';
import type { Row } from '../../resources/resource.ts';
import { parsePosition, REREAD_MS } from '../feed.ts';
import {
  acknowledge,
  isFree,
  lockConsumer,
  type Pulled,
  pullOnce,
  release,
  seekTo,
} from './window.ts';

type Consumer = Row<typeof consumer>;

interface ConsumerInput {
  name: string;
  eventTypes: readonly string[];
  /** `latest`, `oldest`, or a cursor of the feed. */
  from: string;
  redeliverAfterS: number;
}

interface PullRequest {
  limit: number;
  waitMs: number;
  /** Resolves when events were numbered, after `ms`, or when the signal aborts. */
  nextEvent: (signal: AbortSignal, ms: number) => Promise<void>;
  aborted: AbortSignal;
}

export type Consumers = ReturnType<typeof makeConsumers>;

/** How long one pull reads on through events of other types. */
const READ_ON_MS = 3_000;

export function makeConsumers(deps: { db: Db; clock: Clock; ids: Ids }) {
  const { db, clock } = deps;
  const getConsumer = async (id: string): Promise<Consumer> => {
    const [found] = await select(db, clock.now(), { id });
    if (!found) throw new Failure('not_found');
    return found;
  };
  return {
    /** @throws Failure `conflict`, `invalid_cursor`, `cursor_expired` */
    async createConsumer(input: ConsumerInput, owner: string): Promise<Consumer> {
      const id = deps.ids.next('con');
      await db.begin((tx) => insert(tx, { ...input, id, owner, at: clock.now() }));
      return getConsumer(id);
    },

    /** Those of an owner, or all; in order of creation, after the id `after`. */
    listConsumers: (page: { owner: string | undefined; after: string; limit: number }) =>
      select(db, clock.now(), page),

    /** @throws Failure `not_found` */
    getConsumer,

    /** The owner of the key that created it; undefined for one that does not exist. */
    async ownerOf(id: string): Promise<string | undefined> {
      const rows = await db.sql<{ createdBy: string }[]>`
        select created_by from tallyhook.consumers where id = ${id}`;
      return rows[0]?.createdBy;
    },

    /** @throws Failure `not_found` */
    async deleteConsumer(id: string): Promise<void> {
      const { count } = await db.single(
        ({ sql }) => sql`delete from tallyhook.consumers where id = ${id}`,
      );
      if (count === 0) throw new Failure('not_found');
    },

    /**
     * Hands out events: in order per subject, and none of a subject of which a worker has one.
     * @throws Failure `not_found`, `cursor_expired`
     */
    pull: (id: string, request: PullRequest) => pull(deps, id, request),

    /** Ends the redelivery of events by their receipts. @throws Failure `not_found` */
    acknowledge: (id: string, receipts: readonly string[]) =>
      db.begin((tx) => acknowledge(tx, id, receipts)),

    /** Gives events back, which are handed out again at once. @throws Failure `not_found` */
    release: (id: string, receipts: readonly string[]) =>
      db.begin((tx) => release(tx, id, receipts)),

    /**
     * Goes on after another position; every receipt from before becomes stale.
     * @param to `latest`, `oldest`, or a cursor of the feed
     * @throws Failure `not_found`, `invalid_cursor`, `cursor_expired`
     */
    async seek(id: string, to: string): Promise<Consumer> {
      await db.begin(async (tx) => {
        const consumer = await lockConsumer(tx, id);
        await seekTo(tx, consumer, await parsePosition(tx, to));
      });
      return getConsumer(id);
    },
  };
}

async function insert(
  { sql, ...tx }: Queryable,
  {
    id,
    name,
    eventTypes,
    redeliverAfterS,
    from,
    owner,
    at,
  }: ConsumerInput & {
    id: string;
    owner: string;
    at: Instant;
  },
): Promise<void> {
  const position = await parsePosition({ sql, ...tx }, from);
  // Those of one owner are counted one after the other.
  const turn = `tallyhook consumers of ${owner}`;
  await sql`select pg_advisory_xact_lock(hashtextextended(${turn}, 0))`;
  const [{ others = 0 } = {}] = await sql<{ others: number }[]>`
    select count(*)::int as others from tallyhook.consumers where created_by = ${owner}`;
  if (others >= CONSUMERS_MAX)
    throw new Failure('conflict', `you have ${CONSUMERS_MAX} consumers; delete one first`);
  const { count } = await sql`
    insert into tallyhook.consumers (id, name, event_types, redeliver_after_s, created_by,
      created_at, read_to)
    values (${id}, ${name}, ${[...eventTypes]}::text[], ${redeliverAfterS}, ${owner},
      ${isoText(at)}, ${position.toString()}::bigint)
    on conflict (created_by, name) do nothing`;
  if (count === 0)
    throw new Failure('conflict', `you have a consumer named ${name}; use it, or another name`);
}

async function pull(
  { db, clock }: { db: Db; clock: Clock },
  id: string,
  { limit, waitMs, nextEvent, aborted }: PullRequest,
): Promise<Pulled> {
  const begun = monotonicMs();
  for (;;) {
    // Taken before the read, so an event that is numbered in between is not missed.
    const woken = new AbortController();
    const next = nextEvent(AbortSignal.any([aborted, woken.signal]), REREAD_MS);
    try {
      const now = clock.now();
      let found: Pulled = { events: [], redeliverAt: null, readsOn: false };
      if (await mayPull(db, id, now))
        found = await db.begin((tx) => pullOnce(tx, id, { limit, now }));
      const spent = monotonicMs() - begun;
      if (found.events.length > 0 || aborted.aborted) return found;
      if (found.readsOn && spent < Math.max(waitMs, READ_ON_MS)) continue;
      if (spent >= waitMs) return found;
      await withDeadline(next, waitMs - spent, () => undefined);
    } finally {
      woken.abort();
    }
  }
}

/**
 * False while the feed has nothing that was not read and the window has no free event, found by one
 * statement that neither locks nor writes. @throws Failure `not_found`
 */
async function mayPull(db: Db, id: string, now: Instant): Promise<boolean> {
  const rows = await db.single(
    ({ sql }) => sql<{ may: boolean }[]>`
      select c.read_to < (select f.last_seq from tallyhook.feed f where f.name = 'events')
        or exists (select from tallyhook.consumed_events w where w.consumer_id = c.id
          and ${isFree({ sql }, id, now)}) as may
      from tallyhook.consumers c where c.id = ${id}`,
  );
  if (!rows[0]) throw new Failure('not_found');
  return rows[0].may;
}

interface Selection {
  id?: string;
  owner?: string | undefined;
  after?: string;
  limit?: number;
}

function select(
  { sql }: Queryable,
  now: Instant,
  { id, owner, after = '', limit = 1 }: Selection,
): PromiseLike<Consumer[]> {
  return sql<Consumer[]>`
    select c.id, c.name, c.event_types, c.redeliver_after_s, c.missed::float8, c.created_by,
      c.created_at, coalesce(w.first_seq - 1, c.read_to) as position, w.unacknowledged, w.in_flight,
      case when c.read_to + 1 < b.oldest then 'expired' else 'active' end as state,
      (b.newest - c.read_to + w.unacknowledged)::float8 as behind,
      least(w.oldest_at, n.at) as oldest_event_at
    from tallyhook.consumers c
    cross join lateral (${boundsOf(sql)}) b
    cross join lateral (
      select min(e.seq) as first_seq, min(e.recorded_at) as oldest_at,
        count(*)::int as unacknowledged,
        (count(*) filter (where e.lease_until > ${isoText(now)}))::int as in_flight
      from tallyhook.consumed_events e where e.consumer_id = c.id) w
    left join lateral (${firstUnread(sql)}) n on c.read_to < b.newest
    where ${id === undefined ? sql`c.id > ${after}` : sql`c.id = ${id}`}
      ${owner === undefined ? sql`` : sql`and c.created_by = ${owner}`}
    order by c.id limit ${limit}`;
}

type SqlOf = Queryable['sql'];

/** The oldest retained number, or the next one, and the newest. */
function boundsOf(sql: SqlOf) {
  return sql`select f.newest, coalesce(
      (select min(first_seq) from tallyhook.numbered_events), f.newest + 1) as oldest
    from (select coalesce((select last_seq from tallyhook.feed where name = 'events'), 0)
      as newest) f`;
}

/** When the first event was recorded that the consumer `c` has not read. */
function firstUnread(sql: SqlOf) {
  return sql`select e.recorded_ats[greatest(c.read_to + 1, b.oldest) - e.first_seq + 1] as at
    from tallyhook.numbered_events e where e.first_seq <= greatest(c.read_to + 1, b.oldest)
    order by e.first_seq desc limit 1`;
}

/** How many consumers there are, and how far the last of them is behind. */
export interface ConsumerLag {
  count: number;
  expired: number;
  /** Of the one with most of them. */
  behind: number;
  oldestEventAt: Instant | null;
}

/** For the status and metrics. */
export async function findConsumerLag({ sql }: Queryable): Promise<ConsumerLag> {
  const rows = await sql<ConsumerLag[]>`
    select count(*)::int as count, coalesce(max(b.newest - c.read_to + w.n), 0)::float8 as behind,
      (count(*) filter (where c.read_to + 1 < b.oldest))::int as expired,
      min(least(w.oldest_at, n.at)) as oldest_event_at
    from tallyhook.consumers c
    cross join lateral (${boundsOf(sql)}) b
    cross join lateral (
      select min(e.recorded_at) as oldest_at, count(*) as n
      from tallyhook.consumed_events e where e.consumer_id = c.id) w
    left join lateral (${firstUnread(sql)}) n on c.read_to < b.newest`;
  return rows[0] ?? { count: 0, expired: 0, behind: 0, oldestEventAt: null };
}
