/**
 * The pull feed: pages of numbered events after a cursor, in order and without gaps, and long polls
 * at its end.
 */
import type { Db, Queryable } from '../db/connect.ts';
import { HOUR_MS, isoText, monotonicMs, withDeadline } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { idTime, isId, uuidOf } from '../kernel/ids.ts';
import { patternsOf } from '../resources/delivery/events.ts';

export interface FeedQuery {
  /** Of the previous page; empty for the oldest retained event. */
  cursor: string;
  /** Exact types, `group.*` or `*`; empty for all. */
  types: readonly string[];
  limit: number;
}

export interface FeedPage {
  rows: { seq: bigint; type: string; body: string }[];
  cursor: string;
  /** False when the page was cut and more events may follow. */
  complete: boolean;
}

/** Bodies of a page, in bytes; the last one may exceed it. */
export const PAGE_BYTES_MAX = 4_194_304;

/** The cursor after which the newest `last` events follow, as far as they are retained. */
export async function cursorBefore(db: Db, last: number): Promise<string> {
  const { oldest, newest } = await feedBounds(db);
  const first = (oldest ?? newest + 1n) - 1n;
  const before = newest - BigInt(last);
  return (before > first ? before : first).toString();
}

/**
 * The number after which a reader begins. @param from `latest`, `oldest`, or a cursor
 * @throws Failure `invalid_cursor`, `cursor_expired`
 */
export async function parsePosition(db: Queryable, from: string): Promise<bigint> {
  const { oldest, newest } = await feedBounds(db);
  if (from === 'latest') return newest;
  const first = oldest ?? newest + 1n;
  return from === 'oldest' ? first - 1n : checkedCursor(from, first, newest);
}

/**
 * @param first the oldest retained number; without one everything up to the newest has been pruned
 * @throws Failure `invalid_cursor`, `cursor_expired`
 */
function checkedCursor(cursor: string, first: bigint, newest: bigint): bigint {
  if (!/^\d{0,18}$/.test(cursor))
    throw new Failure('invalid_cursor', 'use the next_cursor of the last response');
  const after = BigInt(cursor || '0');
  if (after > newest) throw new Failure('invalid_cursor', 'the cursor is ahead of the feed');
  if (cursor !== '' && after + 1n < first)
    throw new Failure('cursor_expired', `events up to ${first - 1n} have been pruned`);
  return after;
}

/**
 * Reads the feed after a cursor: at most `limit` events, and about 4 MiB.
 * @throws Failure `invalid_cursor`, `cursor_expired`
 */
export async function readFeed(db: Db, query: FeedQuery): Promise<FeedPage> {
  const { cursor, types, limit } = query;
  const { oldest, newest } = await feedBounds(db);
  const after = checkedCursor(cursor, oldest ?? newest + 1n, newest);
  if (after === newest) return { rows: [], cursor: newest.toString(), complete: true };
  const bytesMax = PAGE_BYTES_MAX;
  const found = await listFeed(db, { after, upTo: newest, types, limit, bytesMax });
  const complete = found.length < limit && !found.at(-1)?.cut;
  return pageOf(found, complete, newest);
}

/** The part of a complete page of all types that has these types, up to the limit. */
function filterFeed(page: FeedPage, { types, limit }: Omit<FeedQuery, 'cursor'>): FeedPage {
  const chosen = new Set(types);
  const fits = (type: string) =>
    chosen.size === 0 || patternsOf(type).some((pattern) => chosen.has(pattern));
  const rows = page.rows.filter(({ type }) => fits(type)).slice(0, limit);
  return pageOf(rows, rows.length < limit, BigInt(page.cursor));
}

/** A cut page continues after its last row; a complete one has reached the newest event. */
function pageOf(rows: FeedPage['rows'], complete: boolean, newest: bigint): FeedPage {
  const next = complete ? newest : (rows.at(-1)?.seq ?? newest);
  return { rows, cursor: next.toString(), complete };
}

/** Ids run ahead of a clock that stepped back, by no more than it is slewed. */
const AROUND_MS = HOUR_MS;

/** Of the event `e` with this id, `evt_…`, which its time finds in few partitions. */
export function isEvent({ sql }: Pick<Queryable, 'sql'>, id: string) {
  const at = idTime(id);
  return sql`e.id = ${uuidOf(id)}
    and e.recorded_at between ${isoText(at - AROUND_MS)} and ${isoText(at + AROUND_MS)}`;
}

/** The body of an event as webhooks carry it; undefined when there is none, or it is pruned. */
export async function findEvent(db: Db, id: string): Promise<string | undefined> {
  if (!isId('evt', id)) return undefined;
  const rows = await db.sql<{ body: string }[]>`
    select tallyhook.event_body(e) as body from tallyhook.events e where ${isEvent(db, id)}`;
  return rows[0]?.body;
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
        cross join lateral unnest(f.ids, f.recorded_ats) with ordinality as x(id, at, n)
        cross join lateral (
          select v.type, tallyhook.event_body(v) as body from tallyhook.events v
          where v.recorded_at = x.at and v.id = x.id
            and (${query.types.length === 0}
              or tallyhook.patterns_of(v.type) && ${query.types as string[]}::text[])
          offset 0) e
        where f.first_seq <= ${upTo}::bigint and f.first_seq + x.n - 1 > ${after}::bigint
          and f.first_seq >= coalesce((select max(p.first_seq) from tallyhook.numbered_events p
            where p.first_seq <= ${after}::bigint + 1), 0)
        order by f.first_seq, x.n limit ${query.limit}) listed) summed
    where bytes - octet_length(body) < ${query.bytesMax}
    order by seq`;
}

/** What another daemon numbers wakes no one here, nor what another worker acknowledges. */
export const REREAD_MS = 1_000;
const LIMIT_MAX = 500;
/** Readers that catch up have many cursors; beyond this bound they read for themselves. */
const CURSORS_MAX = 16;

interface Tail {
  /** The next page; while it is empty, the first one within `waitMs` or until the signal aborts. */
  read(query: FeedQuery, waitMs: number, aborted: AbortSignal): Promise<FeedPage>;
}

/**
 * Long polls at the end of the feed. However many wait, a wake-up reads the feed once per cursor.
 * It is also read every second, since another daemon's events do not wake this one.
 * @param nextEvent resolves when events were numbered, after `ms`, or when the signal aborts
 */
export function makeTail(deps: {
  db: Db;
  nextEvent: (signal: AbortSignal, ms: number) => Promise<void>;
  stopping: AbortSignal;
}): Tail {
  const { db, nextEvent, stopping } = deps;
  /** Reads since the last wake-up, by cursor: what they do not show comes with the next one. */
  const reads = new Map<string, Promise<FeedPage>>();
  let wakeUp: Promise<void> | undefined;

  function nextWakeUp(): Promise<void> {
    wakeUp ??= nextEvent(stopping, REREAD_MS).finally(() => {
      wakeUp = undefined;
      reads.clear();
    });
    return wakeUp;
  }

  async function sharedRead(query: FeedQuery): Promise<FeedPage> {
    const { cursor } = query;
    let read = reads.get(cursor);
    if (!read) {
      if (reads.size >= CURSORS_MAX) return readFeed(db, query);
      read = readFeed(db, { cursor, types: [], limit: LIMIT_MAX });
      reads.set(cursor, read);
      // A failed read is not shared with later readers.
      read.catch(() => reads.delete(cursor));
    }
    const page = await read;
    return page.complete ? filterFeed(page, query) : readFeed(db, query);
  }

  return {
    async read(query, waitMs, aborted) {
      const until = monotonicMs() + waitMs;
      let { cursor } = query;
      for (;;) {
        const remaining = until - monotonicMs();
        if (remaining <= 0 || stopping.aborted || aborted.aborted)
          return readFeed(db, { ...query, cursor });
        // Taken before the read, so an event that is numbered in between is not missed.
        const next = nextWakeUp();
        const found = await sharedRead({ ...query, cursor });
        if (found.rows.length > 0) return found;
        cursor = found.cursor;
        await withDeadline(next, remaining, () => undefined);
      }
    },
  };
}
