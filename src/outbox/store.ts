/** SQL of the outbox: events, subject counters and the pull feed. */
import { asJson, type Queryable, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';

export interface EventRow {
  id: string;
  type: string;
  subject: string;
  occurredAt: Instant;
  /** The body up to the value of `subject_seq`. */
  bodyPrefix: string;
}

/**
 * Inserts events with the next numbers of their subjects; returns number and body by id. Locks the
 * subjects in name order, so that concurrent producers cannot deadlock.
 */
export async function insertEvents(
  tx: Tx,
  events: readonly EventRow[],
  recordedAt: Instant,
): Promise<Map<string, { subjectSeq: bigint; body: string }>> {
  const rows = events.map(({ id, type, subject, occurredAt, bodyPrefix }, n) => {
    return { n, id, type, subject, occurred_at: isoText(occurredAt), body_prefix: bodyPrefix };
  });
  const inserted = await tx.sql<{ id: string; subjectSeq: bigint; body: string }[]>`
    with x as materialized (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(n int, id text, type text,
        subject text, occurred_at timestamptz, body_prefix text)
    ), s as (
      insert into tallyhook.subjects as s (subject, last_seq)
      select subject, count(*) from x group by subject order by subject
      on conflict (subject) do update set last_seq = s.last_seq + excluded.last_seq
      returning subject, last_seq
    ), e as (
      select x.id, x.type, x.subject, x.occurred_at, x.body_prefix, s.last_seq + 1 - row_number()
        over (partition by x.subject order by x.n desc) as seq
      from x join s on s.subject = x.subject
    )
    insert into tallyhook.events (id, type, subject, subject_seq, occurred_at, recorded_at, body)
    select e.id, e.type, e.subject, e.seq, e.occurred_at, ${isoText(recordedAt)},
      e.body_prefix || e.seq || '}}'
    from e
    returning id, subject_seq, body`;
  return new Map(inserted.map(({ id, ...event }) => [id, event]));
}

/**
 * Numbers at most `limit` committed events; returns 0 when there are none or another daemon holds
 * the feed. The lock is a statement of its own: a statement that locks and reads at once may still
 * see events as unnumbered that another daemon has just numbered. The order is that of recording,
 * but never against `subject_seq`, even if the clocks of two daemons differ.
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
      from (select recorded_at, id, row_number() over (order by ordered_at, subject_seq, id) as n
            from (select recorded_at, id, subject_seq,
                max(recorded_at) over (partition by subject order by subject_seq) as ordered_at
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

/** The number of unnumbered events, up to `max`, and when the oldest was recorded. */
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

/** The oldest retained number and the newest assigned one (0 before the first). */
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
