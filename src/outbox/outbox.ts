/**
 * The transactional outbox. `emit` runs in the producer's transaction, so a change, its event and
 * the event's deliveries are one commit: the function `emit_events` of
 * ../../drizzle/definitions/events.sql records both. The sequencer then numbers committed events
 * for the pull feed, without gaps in every order of commits.
 */
import { createHash } from 'node:crypto';
import { asJson, type Db, type Queryable, type Tx } from '../db/connect.ts';
import { type Clock, type Instant, isoText, monotonicMs } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import { type Ids, uuidOf } from '../kernel/ids.ts';
import { jsonText } from '../kernel/json.ts';
import type { EventDraft, OutboxEvent } from './events.ts';

export {
  type ConsumerLag,
  type Consumers,
  findConsumerLag,
  makeConsumers,
} from './consumers/consumers.ts';
export {
  cursorBefore,
  type FeedPage,
  findEvent,
  makeTail,
  readFeed,
} from './feed.ts';
export { makeIncidentLog } from './incidents.ts';
export {
  findTombstone,
  REMOVED_SHAPE,
  readAged,
  removeBodies,
  removedAtOf,
  type StoredEvent,
} from './removal.ts';
export { hasUnnumbered, hasUnsearched, lastNumber } from './waiting.ts';

export interface Outbox {
  /** Records events and their deliveries in the producer's transaction, in order per subject. */
  emit(tx: Tx, drafts: readonly EventDraft[]): Promise<OutboxEvent[]>;
}

/** The outbox of a daemon. */
export interface OwnOutbox extends Outbox {
  /** For a producer that has a function of the database record them, which calls `emit_events`. */
  prepare(drafts: readonly EventDraft[]): PreparedEvents;
  /** That prepared events were recorded, with so many deliveries. */
  note(deliveries: number): void;
  /**
   * True if this daemon inserted deliveries within the last two minutes. Set before their
   * transaction commits, so the caller of a commit can rely on it.
   */
  hasRecentDeliveries(): boolean;
}

/** Longer than any transaction. */
const RECENT_MS = 120_000;

export function makeOutbox({ clock, ids }: { clock: Clock; ids: Ids }): OwnOutbox {
  let deliveredAtMs = Number.NEGATIVE_INFINITY;
  const note = (deliveries: number) => {
    if (deliveries > 0) deliveredAtMs = monotonicMs();
  };
  return {
    async emit(tx, drafts) {
      if (drafts.length === 0) return [];
      const recordedAt = clock.now();
      const events = drafts.map((draft) => ({ ...draft, id: ids.next('evt') }));
      const { numbers, deliveries } = await record(tx, prepareEvents(events, recordedAt));
      note(deliveries);
      return events.map((event) => ({
        ...event,
        subjectSeq: must(numbers.get(event.id), 'event'),
        recordedAt,
      }));
    },
    prepare(drafts) {
      const events = drafts.map((draft) => ({ ...draft, id: ids.next('evt') }));
      return prepareEvents(events, clock.now());
    },
    note,
    hasRecentDeliveries: () => monotonicMs() < deliveredAtMs + RECENT_MS,
  };
}

/** Events as `emit_events` takes them: a row for each in their order, and their shapes. */
export interface PreparedEvents {
  recordedAt: Instant;
  rows: readonly object[];
  shapes: readonly object[];
}

export const NO_EVENTS: PreparedEvents = { recordedAt: 0, rows: [], shapes: [] };

function prepareEvents(
  events: readonly (EventDraft & { id: string })[],
  recordedAt: Instant,
): PreparedEvents {
  const stored = events.map((event) => ({ ...event, ...storedDataOf(event) }));
  const rows = stored.map(({ id, type, subject, seq, occurredAt, shape, data, last }, n) => ({
    n,
    id: uuidOf(id),
    type,
    subject,
    seq: seq?.toString(),
    occurred_at: isoText(occurredAt),
    shape: shape.id.toString(),
    data,
    last,
  }));
  const shapes = new Map(stored.map(({ shape }) => [shape.id.toString(), shape.names]));
  return { recordedAt, rows, shapes: [...shapes].map(([id, names]) => ({ id, names })) };
}

async function record(
  tx: Tx,
  { recordedAt, rows, shapes }: PreparedEvents,
): Promise<{ numbers: Map<string, bigint>; deliveries: number }> {
  const recorded = await tx.sql<{ id: string; number: bigint; made: number }[]>`
    select 'evt_' || event as id, number, made from tallyhook.emit_events(
      ${isoText(recordedAt)}::timestamptz, ${asJson(rows)}::jsonb, ${asJson(shapes)}::jsonb)`;
  const numbers = new Map(recorded.map(({ id, number }) => [id, number]));
  return { numbers, deliveries: recorded[0]?.made ?? 0 };
}

/** The names of the members of `data`; see the table `event_shapes`. */
interface EventShape {
  id: bigint;
  names: readonly string[];
}

/**
 * What is stored of the data of an event: the names of its members once for all events with the
 * same ones, and their values. The function `event_body` of ../../drizzle/definitions/events.sql
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
 * One pass of the sequencer over at most `SEQUENCE_MAX` emits; returns how many events it numbered,
 * which is 0 while another daemon does so.
 */
export async function sequence(db: Db): Promise<number> {
  return db.single((q) => numberEvents(q, false));
}

/**
 * Numbers every event that is committed. Until the transaction ends, no other is numbered: an
 * endpoint that is added in it gets every later event.
 */
export async function takePosition(tx: Tx): Promise<void> {
  while ((await numberEvents(tx, true)) > 0);
}

async function numberEvents(db: Queryable, waits: boolean): Promise<number> {
  const rows = await db.sql<{ numbered: number }[]>`
    select tallyhook.number_events(${SEQUENCE_MAX}, ${waits}) as numbered`;
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
