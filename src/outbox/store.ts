/** SQL of the outbox: subject counters, events, and the numbers of the feed. */
import { asJson, type Queryable, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';

/** An event without its number. @property head its body up to that number */
export interface EventRow {
  id: string;
  type: string;
  subject: string;
  occurredAt: Instant;
  head: string;
}

/**
 * Writes events, each with the next number of its subject, and locks the subjects (in name order,
 * so that two producers never wait for each other in a circle). Answers number and body by id.
 */
export async function insertEvents(
  tx: Tx,
  events: readonly EventRow[],
  recordedAt: Instant,
): Promise<Map<string, { subjectSeq: bigint; body: string }>> {
  const rows = events.map(({ id, type, subject, occurredAt, head }, n) => {
    return { n, id, type, subject, occurred_at: isoText(occurredAt), head };
  });
  const written = await tx.sql<{ id: string; subjectSeq: bigint; body: string }[]>`
    with x as materialized (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(n int, id text, type text,
        subject text, occurred_at timestamptz, head text)
    ), s as (
      insert into tallyhook.subjects as s (subject, last_seq)
      select subject, count(*) from x group by subject order by subject
      on conflict (subject) do update set last_seq = s.last_seq + excluded.last_seq
      returning subject, last_seq
    ), e as (
      select x.id, x.type, x.subject, x.occurred_at, x.head, s.last_seq + 1 - row_number()
        over (partition by x.subject order by x.n desc) as seq
      from x join s on s.subject = x.subject
    )
    insert into tallyhook.events (id, type, subject, subject_seq, occurred_at, recorded_at, body)
    select e.id, e.type, e.subject, e.seq, e.occurred_at, ${isoText(recordedAt)},
      e.head || e.seq || '}}'
    from e
    returning id, subject_seq as "subjectSeq", body`;
  return new Map(written.map(({ id, ...event }) => [id, event]));
}

/**
 * Numbers at most `limit` committed events; 0 when there is none or another daemon is at it. The
 * feed is locked by a statement of its own: one that locks and reads at once could still see events
 * as unnumbered that another daemon numbered just before it let go. Order is that of recording, and
 * within a subject that of its own numbers, also where the clocks of two daemons differ.
 */
export async function numberEvents(tx: Tx, limit: number): Promise<number> {
  const lock = () => tx.sql`
    select last_seq from tallyhook.feed where name = 'events' for update skip locked`;
  if ((await lock()).length === 0) {
    await tx.sql`insert into tallyhook.feed (name, last_seq) values ('events', 0) on conflict do
      nothing`;
    if ((await lock()).length === 0) return 0;
  }
  const rows = await tx.sql<{ numbered: number }[]>`
    with head as (
      select last_seq from tallyhook.feed where name = 'events'
    ), fresh as (
      select recorded_at, id, subject, subject_seq from tallyhook.events
      where seq is null
      order by recorded_at, id limit ${limit}
    ), numbered as (
      update tallyhook.events e set seq = head.last_seq + f.n
      from (select recorded_at, id, row_number() over (order by turn, subject_seq, id) as n
            from (select recorded_at, id, subject_seq,
                max(recorded_at) over (partition by subject order by subject_seq) as turn
              from fresh) t) f, head
      where e.recorded_at = f.recorded_at and e.id = f.id
      returning e.seq
    ), moved as (
      update tallyhook.feed set last_seq = last_seq + (select count(*) from numbered)
      where name = 'events' and exists (select from numbered) returning 1
    )
    select count(*)::int as numbered from numbered`;
  return rows[0]?.numbered ?? 0;
}

/** Committed events without a number, counted up to `max`, and when the oldest was recorded. */
export async function countUnnumbered(
  db: Queryable,
  max: number,
): Promise<{ waiting: number; since: Instant | null }> {
  const rows = await db.sql<{ waiting: number; since: Instant | null }[]>`
    select count(*)::int as waiting, min(recorded_at) as since from (
      select recorded_at from tallyhook.events where seq is null
      order by recorded_at, id limit ${max}) x`;
  return rows[0] ?? { waiting: 0, since: null };
}

/** The oldest number still kept, and the newest given (0 before the first). */
export async function feedBounds(
  db: Queryable,
): Promise<{ oldest: bigint | undefined; newest: bigint }> {
  const rows = await db.sql<{ oldest: bigint | null; newest: bigint | null }[]>`
    select (select min(seq) from tallyhook.events) as oldest,
      (select last_seq from tallyhook.feed where name = 'events') as newest`;
  return { oldest: rows[0]?.oldest ?? undefined, newest: rows[0]?.newest ?? 0n };
}

export async function listFeed(
  db: Queryable,
  query: { after: bigint; upTo: bigint; types: readonly string[]; limit: number },
): Promise<{ seq: bigint; body: string }[]> {
  return db.sql<{ seq: bigint; body: string }[]>`
    select seq, body from tallyhook.events
    where seq > ${query.after.toString()}::bigint and seq <= ${query.upTo.toString()}::bigint
      and (${query.types.length === 0} or type = any(${query.types as string[]}::text[])
        or split_part(type, '.', 1) || '.*' = any(${query.types as string[]}::text[]))
    order by seq limit ${query.limit}`;
}
