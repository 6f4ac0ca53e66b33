/** Pages of the pull feed: numbered events after a cursor, in order and without gaps. */
import type { Db } from '../db/connect.ts';
import { Failure } from '../kernel/errors.ts';
import { idTime, isId } from '../kernel/ids.ts';
import { feedBounds, findEventBody, listFeed } from './store.ts';

export interface FeedQuery {
  /** Of the previous page; empty for the oldest retained event. */
  cursor: string;
  /** Exact types or `group.*`; empty for all. */
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
const PAGE_BYTES_MAX = 4_194_304;

/** The cursor after which the newest `last` events follow, as far as they are retained. */
export async function cursorBefore(db: Db, last: number): Promise<string> {
  const { oldest, newest } = await feedBounds(db);
  const first = (oldest ?? newest + 1n) - 1n;
  const before = newest - BigInt(last);
  return (before > first ? before : first).toString();
}

/**
 * Reads the feed after a cursor: at most `limit` events, and about 4 MiB.
 * @throws Failure `invalid_cursor`, `cursor_expired`
 */
export async function readFeed(db: Db, query: FeedQuery): Promise<FeedPage> {
  const { cursor, types, limit } = query;
  if (!/^\d{0,18}$/.test(cursor))
    throw new Failure('invalid_cursor', 'use the next_cursor of the last response');
  const after = BigInt(cursor || '0');
  const { oldest, newest } = await feedBounds(db);
  if (after > newest) throw new Failure('invalid_cursor', 'the cursor is ahead of the feed');
  // Without a retained event, everything up to the newest number has been pruned.
  if (cursor !== '' && after + 1n < (oldest ?? newest + 1n)) {
    throw new Failure(
      'cursor_expired',
      `events up to ${(oldest ?? newest + 1n) - 1n} have been pruned`,
    );
  }
  if (after === newest) return { rows: [], cursor: newest.toString(), complete: true };
  const bytesMax = PAGE_BYTES_MAX;
  const found = await listFeed(db, { after, upTo: newest, types, limit, bytesMax });
  const complete = found.length < limit && !found.at(-1)?.cut;
  return pageOf(found, complete, newest);
}

/** The part of a complete page of all types that has these types, up to the limit. */
export function filterFeed(page: FeedPage, { types, limit }: Omit<FeedQuery, 'cursor'>): FeedPage {
  const chosen = new Set(types);
  const fits = (type: string) =>
    chosen.size === 0 || chosen.has(type) || chosen.has(`${type.split('.')[0]}.*`);
  const rows = page.rows.filter(({ type }) => fits(type)).slice(0, limit);
  return pageOf(rows, rows.length < limit, BigInt(page.cursor));
}

/** A cut page continues after its last row; a complete one has reached the newest event. */
function pageOf(rows: FeedPage['rows'], complete: boolean, newest: bigint): FeedPage {
  const next = complete ? newest : (rows.at(-1)?.seq ?? newest);
  return { rows, cursor: next.toString(), complete };
}

/** Ids run ahead of a clock that stepped back, by no more than it is slewed. */
const AROUND_MS = 3_600_000;

/** The body of an event as webhooks carry it; undefined when there is none, or it is pruned. */
export async function findEvent(db: Db, id: string): Promise<string | undefined> {
  if (!isId('evt', id)) return undefined;
  const at = idTime(id);
  return findEventBody(db, id, { from: at - AROUND_MS, until: at + AROUND_MS });
}
