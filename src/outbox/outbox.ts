/**
 * The transactional outbox. `emit` runs in the producer's transaction, so a change, its event and
 * the event's deliveries are one commit. The sequencer then numbers committed events for the pull
 * feed, without gaps in every order of commits.
 */
import { createHash } from 'node:crypto';
import { asJson, type Db, type Queryable, type Tx } from '../db/connect.ts';
import { type Clock, type Instant, isoText, monotonicMs } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import { type Ids, uuidOf } from '../kernel/ids.ts';
import { jsonText } from '../kernel/json.ts';
import type { EventDraft, OutboxEvent } from './events.ts';

export {
  cursorBefore,
  type FeedPage,
  findEvent,
  makeTail,
  readFeed,
} from './feed.ts';
export { logIncidents } from './incidents.ts';
export { hasUnnumbered, hasUnsearched, lastNumber } from './waiting.ts';

/**
 * Inserts the deliveries of events in the same transaction; implemented by webhooks. Its statements
 * are pipelined after the insert of the events and find them in the table. Returns how many.
 */
export type FanOut = (tx: Tx, recordedAt: Instant, ids: readonly string[]) => Promise<number>;

export interface Outbox {
  /** Records events and their deliveries in the producer's transaction, in order per subject. */
  emit(tx: Tx, drafts: readonly EventDraft[]): Promise<OutboxEvent[]>;
}

/** The outbox of a daemon. */
export interface OwnOutbox extends Outbox {
  /**
   * True if this daemon inserted deliveries within the last two minutes. Set before their
   * transaction commits, so the caller of a commit can rely on it.
   */
  hasRecentDeliveries(): boolean;
}

/** Longer than any transaction. */
const RECENT_MS = 120_000;

export function makeOutbox(deps: { clock: Clock; ids: Ids; fanOut: FanOut }): OwnOutbox {
  const { clock, ids, fanOut } = deps;
  let deliveredAtMs = Number.NEGATIVE_INFINITY;
  return {
    async emit(tx, drafts) {
      if (drafts.length === 0) return [];
      const recordedAt = clock.now();
      const events = drafts.map((draft) => ({ ...draft, id: ids.next('evt') }));
      const rows = events.map((event) => ({ ...event, ...storedDataOf(event) }));
      const eventIds = events.map(({ id }) => id);
      // Pipelined: one round trip.
      const [numbers, deliveries] = await Promise.all([
        insertEvents(tx, rows, recordedAt),
        fanOut(tx, recordedAt, eventIds),
      ]);
      if (deliveries > 0) deliveredAtMs = monotonicMs();
      return events.map((event) => ({
        ...event,
        subjectSeq: must(numbers.get(event.id), 'event'),
        recordedAt,
      }));
    },
    hasRecentDeliveries: () => monotonicMs() < deliveredAtMs + RECENT_MS,
  };
}

/** The names of the members of `data`; see the table `event_shapes`. */
interface EventShape {
  id: bigint;
  names: readonly string[];
}

/**
 * What is stored of the data of an event: the names of its members once for all events with the
 * same ones, and their values. The function `event_body` of ../../drizzle/0006_event_bodies.sql
 * makes the body from it, the same bytes for every endpoint, every attempt and the feed.
 */
function storedDataOf({ subject, data }: EventDraft): { shape: EventShape; data: string } {
  const own = JSON.stringify(subject.slice(subject.indexOf(':') + 1));
  const members = Object.entries(data).flatMap(([name, value]) => {
    // JSON text has no line feed of its own, and undefined is no member.
    const text: string | undefined = jsonText(value);
    if (text === undefined) return [];
    return [{ name, line: text === 'null' ? '' : text === own ? '$' : text }];
  });
  const shape = shapeOf(members.map(({ name }) => name));
  return { shape, data: members.map(({ line }) => line).join('\n') };
}

/** By the names: as many as event types have kinds of data. */
const knownShapes = new Map<string, EventShape>();

function shapeOf(names: readonly string[]): EventShape {
  const text = jsonText(names);
  let shape = knownShapes.get(text);
  if (!shape) {
    shape = { id: createHash('sha256').update(text).digest().readBigInt64BE(), names };
    knownShapes.set(text, shape);
  }
  return shape;
}

interface EventRow {
  id: string;
  type: string;
  subject: string;
  occurredAt: Instant;
  shape: EventShape;
  data: string;
  last?: boolean;
}

/**
 * Inserts events with the next numbers of their subjects, which it returns by id. Locks the
 * subjects in name order, so that concurrent producers cannot deadlock; those with their last event
 * have no other producer.
 */
async function insertEvents(
  tx: Tx,
  events: readonly EventRow[],
  recordedAt: Instant,
): Promise<Map<string, bigint>> {
  const rows = events.map(({ id, occurredAt, shape, ...event }, n) => ({
    ...event,
    n,
    id: uuidOf(id),
    occurred_at: isoText(occurredAt),
    shape: shape.id.toString(),
  }));
  const shapes = new Map(events.map(({ shape }) => [shape.id.toString(), shape.names]));
  const shapeRows = [...shapes].map(([id, names]) => ({ id, names }));
  const inserted = await tx.sql<{ id: string; subjectSeq: bigint }[]>`
    with x as materialized (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(n int, id uuid, type text,
        subject text, occurred_at timestamptz, shape bigint, data text, last boolean)
    ), counted as materialized (
      select subject, count(*) as added, bool_or(last is true) as ended from x group by subject
    ), kept as (
      insert into tallyhook.subjects as s (subject, last_seq)
      select subject, added from counted where not ended order by subject
      on conflict (subject) do update set last_seq = s.last_seq + excluded.last_seq
      returning subject, last_seq
    ), ended as (
      delete from tallyhook.subjects where subject = any(array(
        select subject from counted where ended))
      returning subject, last_seq
    ), s as (
      select subject, last_seq from kept
      union all
      select c.subject, coalesce(d.last_seq, 0) + c.added
      from counted c left join ended d on d.subject = c.subject where c.ended
    ), e as (
      select x.id, x.type, x.subject, x.occurred_at, x.shape, x.data,
        s.last_seq + 1 - row_number() over (partition by x.subject order by x.n desc) as seq
      from x join s on s.subject = x.subject
    ), unnumbered as (
      -- Numbered by the identity column only after every subject is locked.
      insert into tallyhook.unnumbered_events (recorded_at, ids)
      select ${isoText(recordedAt)}, array(select x.id from x order by x.n)
      from (select count(*) as locked from s) l where l.locked > 0
    ), shaped as (
      insert into tallyhook.event_shapes (id, names)
      select n.id, n.names
      from jsonb_to_recordset(${asJson(shapeRows)}::jsonb) as n(id bigint, names text[])
      where not exists (select from tallyhook.event_shapes k where k.id = n.id)
    )
    insert into tallyhook.events (id, type, subject, subject_seq, occurred_at, recorded_at, shape,
      data)
    select e.id, e.type, e.subject, e.seq, e.occurred_at, ${isoText(recordedAt)}, e.shape, e.data
    from e
    returning 'evt_' || id as id, subject_seq`;
  return new Map(inserted.map(({ id, subjectSeq }) => [id, subjectSeq]));
}

/**
 * Resumes a subject after its last event: its counter continues after the last number among the
 * events of this span, or after `otherwise` where retention has removed them.
 */
export async function resumeSubject(
  tx: Tx,
  subject: string,
  { from, until, otherwise }: { from: Instant; until: Instant; otherwise: number },
): Promise<void> {
  await tx.sql`
    insert into tallyhook.subjects (subject, last_seq)
    select ${subject}, coalesce(max(e.subject_seq), ${otherwise}::bigint)
    from tallyhook.events e
    where e.recorded_at between ${isoText(from)} and ${isoText(until)} and e.subject = ${subject}
    on conflict do nothing`;
}

/** Removes the counters of subjects that no event can be about any more. */
export async function endSubjects(tx: Tx, subjects: readonly string[]): Promise<void> {
  await tx.sql`
    delete from tallyhook.subjects where subject = any(${subjects as string[]}::text[])`;
}

/** An event of a subject, without its body. */
export interface SubjectEvent {
  id: string;
  type: string;
  subjectSeq: bigint;
  recordedAt: Instant;
}

/**
 * The first `limit` events of a subject that were recorded within these spans of time, which must
 * not overlap. The rows of the spans are read: no index leads from a subject to its events.
 */
export async function listSubjectEvents(
  { sql }: Queryable,
  subject: string,
  spans: readonly { from: Instant; until: Instant }[],
  limit: number,
): Promise<SubjectEvent[]> {
  const [froms, untils] = [spans.map(({ from }) => from), spans.map(({ until }) => until)];
  return sql<SubjectEvent[]>`
    select 'evt_' || e.id as id, e.type, e.subject_seq, e.recorded_at
    from unnest(${froms.map(isoText)}::timestamptz[], ${untils.map(isoText)}::timestamptz[])
      as s(first, ended)
    cross join lateral (
      select v.id, v.type, v.subject_seq, v.recorded_at from tallyhook.events v
      where v.recorded_at >= s.first and v.recorded_at < s.ended and v.subject = ${subject}
      offset 0) e
    order by e.subject_seq limit ${limit}`;
}

export const SEQUENCE_MAX = 1_000;

/**
 * Inserts the deliveries of events that a subscriber missed because it was added between the
 * fan-out and the commit of their producer; implemented by webhooks.
 * @param after the events are those with higher numbers
 */
type CatchUp = (tx: Tx, after: bigint) => Promise<void>;

/**
 * One pass of the sequencer over at most `SEQUENCE_MAX` emits; returns how many events it numbered.
 * The row lock on the feed elects one daemon; the others return 0 at once.
 */
export async function sequence(db: Db, catchUp?: CatchUp): Promise<number> {
  return db.begin(async (tx) => {
    const after = await lockFeed(tx, false);
    return after === undefined ? 0 : numberAfter(tx, after, catchUp);
  });
}

/**
 * Numbers every event that is committed. Until the transaction ends, no other is numbered: a
 * subscriber added in it is known to `catchUp` for all later events.
 */
export async function takePosition(tx: Tx, catchUp: CatchUp): Promise<void> {
  let after = must(await lockFeed(tx, true), 'feed');
  for (let numbered = 1; numbered > 0; after += BigInt(numbered))
    numbered = await numberAfter(tx, after, catchUp);
}

async function numberAfter(tx: Tx, after: bigint, catchUp?: CatchUp): Promise<number> {
  const numbered = await numberEvents(tx, SEQUENCE_MAX);
  if (numbered > 0) await catchUp?.(tx, after);
  return numbered;
}

/**
 * Locks the feed and returns its last number. Undefined when another transaction holds the lock and
 * `wait` is false.
 */
async function lockFeed(tx: Tx, wait: boolean): Promise<bigint | undefined> {
  const { sql } = tx;
  const lock = async () => {
    const rows = await sql<{ lastSeq: bigint }[]>`
      select last_seq from tallyhook.feed where name = 'events'
      for update ${wait ? sql`` : sql`skip locked`}`;
    return rows[0]?.lastSeq;
  };
  const locked = await lock();
  if (locked !== undefined) return locked;
  await sql`
    insert into tallyhook.feed (name, last_seq) values ('events', 0) on conflict do nothing`;
  return lock();
}

/**
 * Assigns feed numbers to unnumbered events, of at most `limit` calls of `emit`; returns how many
 * events. To be called after `lockFeed`, which is a statement of its own, because a statement that
 * locks and reads at once may read the last number from before the commit of the previous holder.
 */
async function numberEvents(tx: Tx, limit: number): Promise<number> {
  const rows = await tx.sql<{ numbered: number }[]>`
    with taken as (
      delete from tallyhook.unnumbered_events where id = any(array(
        select id from tallyhook.unnumbered_events order by id limit ${limit}))
      returning id, recorded_at, ids
    ), numbered as (
      insert into tallyhook.numbered_events (first_seq, recorded_at, ids)
      select f.last_seq + 1 + sum(cardinality(t.ids)) over (order by t.id) - cardinality(t.ids),
        t.recorded_at, t.ids
      from taken t, tallyhook.feed f where f.name = 'events'
      returning cardinality(ids) as count
    ), moved as (
      update tallyhook.feed set last_seq = last_seq + (select sum(count) from numbered)
      where name = 'events' and exists (select from numbered)
    )
    select coalesce(sum(count), 0)::int as numbered from numbered`;
  return rows[0]?.numbered ?? 0;
}

/** The number of unnumbered events, up to `max`, and when the oldest was recorded. */
export async function countUnnumbered(
  db: Queryable,
  max: number,
): Promise<{ waiting: number; since: Instant | null }> {
  const rows = await db.sql<{ waiting: number; since: Instant | null }[]>`
    select least(coalesce(sum(cardinality(ids)), 0), ${max})::int as waiting,
      min(recorded_at) as since
    from (select ids, recorded_at from tallyhook.unnumbered_events order by id limit ${max}) x`;
  return rows[0] ?? { waiting: 0, since: null };
}
