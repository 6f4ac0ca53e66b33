/**
 * The seam between inside and outside. `emit` runs inside the producer's transaction, so a change
 * and its event are one commit; the deliveries are fanned out in the same commit. After that the
 * sequencer gives committed events their number in the pull feed, gap-free, whoever committed
 * first.
 */
import type { Db, Tx } from '../db/connect.ts';
import { must } from '../kernel/assert.ts';
import { type Clock, type Instant, isoText } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import { jsonText } from '../kernel/json.ts';
import type { EventDraft, OutboxEvent } from './events.ts';
import * as store from './store.ts';

export { countUnnumbered } from './store.ts';

/**
 * Writes the deliveries of these events inside the same transaction; given by webhooks. It is asked
 * in one breath with their insert, and finds them in the table.
 */
export type FanOut = (tx: Tx, recordedAt: Instant, ids: readonly string[]) => Promise<void>;

export interface Outbox {
  /**
   * Records events and their deliveries in the producer's transaction. Order is kept per subject.
   */
  emit(tx: Tx, drafts: readonly EventDraft[]): Promise<OutboxEvent[]>;
}

/** The outbox of one daemon. */
export function makeOutbox(deps: { clock: Clock; ids: Ids; fanOut: FanOut }): Outbox {
  return {
    async emit(tx, drafts) {
      if (drafts.length === 0) return [];
      const recordedAt = deps.clock.now();
      const events = drafts.map((draft) => ({ ...draft, id: deps.ids.next('evt') }));
      const ids = events.map(({ id }) => id);
      const rows = events.map((event) => ({ ...event, head: bodyHead(event) }));
      // Sent together: one round trip.
      const [written] = await Promise.all([
        store.insertEvents(tx, rows, recordedAt),
        deps.fanOut(tx, recordedAt, ids),
      ]);
      return events.map((event) => ({
        ...event,
        ...must(written.get(event.id), 'event'),
        recordedAt,
      }));
    },
  };
}

/**
 * The body up to the number within its subject, which the database gives when it writes the event:
 * fixed there, once, the same bytes go to every endpoint, every attempt and the feed.
 */
function bodyHead({ id, type, occurredAt, data }: EventDraft & { id: string }): string {
  const body = jsonText({ id, type, timestamp: isoText(occurredAt), data });
  const comma = body.endsWith('{}}') ? '' : ',';
  return `${body.slice(0, -2)}${comma}"subject_seq":`;
}

/** Events that one pass numbers at most. */
export const SEQUENCE_MAX = 1_000;

/**
 * One pass of the sequencer: numbers committed events. The row lock on the feed elects the one
 * daemon that does it; another one answers 0 at once. Answers how many were numbered.
 */
export async function sequence(db: Db): Promise<number> {
  return db.begin((tx) => store.numberEvents(tx, SEQUENCE_MAX));
}

/** A page of the feed: webhook bodies in order, and the cursor after the last one. */
export interface FeedPage {
  bodies: string[];
  cursor: string;
}

/**
 * Reads the feed after a cursor (the empty text: from the oldest kept).
 * @param types exact types or `group.*`; empty for all
 * @throws Failure `invalid_cursor`, `cursor_expired`
 */
export async function readFeed(
  db: Db,
  query: { cursor: string; types: readonly string[]; limit: number },
): Promise<FeedPage> {
  const { cursor, types, limit } = query;
  if (!/^\d{0,18}$/.test(cursor))
    throw new Failure('invalid_cursor', 'use the cursor of the last answer');
  const after = BigInt(cursor || '0');
  const { oldest, newest } = await store.feedBounds(db);
  if (after > newest) throw new Failure('invalid_cursor', 'the cursor is ahead of the feed');
  // With nothing kept at all, everything up to the newest number is gone.
  if (cursor !== '' && after + 1n < (oldest ?? newest + 1n)) {
    throw new Failure('cursor_expired', `events up to ${(oldest ?? newest + 1n) - 1n} are gone`);
  }
  const rows = await store.listFeed(db, { after, upTo: newest, types, limit });
  const last = rows.at(-1);
  // A full page continues after its last row; a short one has seen everything there was.
  const at = rows.length === limit && last ? last.seq : newest;
  return { bodies: rows.map((row) => row.body), cursor: at.toString() };
}
