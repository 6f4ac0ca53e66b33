/** SQL of the outbox: events, subject counters and the pull feed. */
import { asJson, type Queryable, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { uuidOf } from '../kernel/ids.ts';

export interface EventRow {
  id: string;
  type: string;
  subject: string;
  occurredAt: Instant;
  shape: bigint;
  data: string;
  last?: boolean;
}

/** The names of the members of `data`; see the table `event_shapes`. */
export interface EventShape {
  id: bigint;
  names: readonly string[];
}

/**
 * Inserts events with the next numbers of their subjects, which it returns by id. Locks the
 * subjects in name order, so that concurrent producers cannot deadlock; those with their last event
 * have no other producer.
 */
export async function insertEvents(
  tx: Tx,
  events: readonly EventRow[],
  shapes: readonly EventShape[],
  recordedAt: Instant,
): Promise<Map<string, bigint>> {
  const rows = events.map(({ id, occurredAt, shape, ...event }, n) => ({
    ...event,
    n,
    id: uuidOf(id),
    occurred_at: isoText(occurredAt),
    shape: shape.toString(),
  }));
  const shapeRows = shapes.map(({ id, names }) => ({ id: id.toString(), names }));
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

/**
 * Locks the feed and returns its last number. Undefined when another transaction holds the lock and
 * `wait` is false.
 */
export async function lockFeed(tx: Tx, wait: boolean): Promise<bigint | undefined> {
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
export async function numberEvents(tx: Tx, limit: number): Promise<number> {
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

/**
 * The position of a reader of the feed, locked until the end of the transaction; a new reader
 * begins at the present. Undefined while another daemon holds it.
 */
export async function lockReader(tx: Tx, name: string): Promise<bigint | undefined> {
  await tx.sql`
    insert into tallyhook.feed (name, last_seq)
    select ${name}, coalesce((select last_seq from tallyhook.feed where name = 'events'), 0)
    where not exists (select from tallyhook.feed where name = ${name}) on conflict do nothing`;
  const rows = await tx.sql<{ lastSeq: bigint }[]>`
    select last_seq from tallyhook.feed where name = ${name} for update skip locked`;
  return rows[0]?.lastSeq;
}

export async function moveReader(tx: Tx, name: string, to: bigint): Promise<void> {
  await tx.sql`update tallyhook.feed set last_seq = ${to.toString()}::bigint where name = ${name}`;
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

/** The body of an event that was recorded around an instant, as webhooks carry it. */
export async function findEventBody(
  { sql }: Queryable,
  id: string,
  { from, until }: { from: Instant; until: Instant },
): Promise<string | undefined> {
  const rows = await sql<{ body: string }[]>`
    select tallyhook.event_body(events) as body from tallyhook.events
    where id = ${uuidOf(id)} and recorded_at between ${isoText(from)} and ${isoText(until)}`;
  return rows[0]?.body;
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

/** The oldest retained number and the newest assigned one (0 before the first). */
export async function feedBounds(
  db: Queryable,
): Promise<{ oldest: bigint | undefined; newest: bigint }> {
  const rows = await db.sql<{ oldest: bigint | null; newest: bigint | null }[]>`
    select (select min(first_seq) from tallyhook.numbered_events) as oldest,
      (select last_seq from tallyhook.feed where name = 'events') as newest`;
  return { oldest: rows[0]?.oldest ?? undefined, newest: rows[0]?.newest ?? 0n };
}

/** @param query.bytesMax ends the page; its last row is then `cut` unless it is the last of all */
export async function listFeed(
  db: Queryable,
  query: { after: bigint; upTo: bigint; types: readonly string[]; limit: number; bytesMax: number },
): Promise<{ seq: bigint; type: string; body: string; cut: boolean }[]> {
  const [after, upTo] = [query.after.toString(), query.upTo.toString()];
  // `offset 0` keeps each event on its index, also with a plan made while the table was small.
  return db.sql<{ seq: bigint; type: string; body: string; cut: boolean }[]>`
    select seq, type, body, bytes >= ${query.bytesMax} as cut from (
      select seq, type, body, sum(octet_length(body)) over (order by seq) as bytes from (
        select f.first_seq + x.n - 1 as seq, e.type, e.body
        from tallyhook.numbered_events f
        cross join lateral unnest(f.ids) with ordinality as x(id, n)
        cross join lateral (
          select v.type, tallyhook.event_body(v) as body from tallyhook.events v
          where v.recorded_at = f.recorded_at and v.id = x.id
            and (${query.types.length === 0} or v.type = any(${query.types as string[]}::text[])
              or split_part(v.type, '.', 1) || '.*' = any(${query.types as string[]}::text[]))
          offset 0) e
        where f.first_seq <= ${upTo}::bigint and f.first_seq + x.n - 1 > ${after}::bigint
          and f.first_seq >= coalesce((select max(p.first_seq) from tallyhook.numbered_events p
            where p.first_seq <= ${after}::bigint + 1), 0)
        order by f.first_seq, x.n limit ${query.limit}) listed) summed
    where bytes - octet_length(body) < ${query.bytesMax}
    order by seq`;
}
