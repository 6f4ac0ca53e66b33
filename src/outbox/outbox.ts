/**
 * The transactional outbox. `emit` runs in the producer's transaction, so a change, its event and
 * the event's deliveries are one commit. The sequencer then numbers committed events for the pull
 * feed, without gaps, whatever the order of commits.
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
 * Inserts the deliveries of events in the same transaction; implemented by webhooks. Its statements
 * are pipelined after the insert of the events and find them in the table.
 */
export type FanOut = (tx: Tx, recordedAt: Instant, ids: readonly string[]) => Promise<void>;

export interface Outbox {
  /** Records events and their deliveries in the producer's transaction, in order per subject. */
  emit(tx: Tx, drafts: readonly EventDraft[]): Promise<OutboxEvent[]>;
}

export function makeOutbox(deps: { clock: Clock; ids: Ids; fanOut: FanOut }): Outbox {
  const { clock, ids, fanOut } = deps;
  return {
    async emit(tx, drafts) {
      if (drafts.length === 0) return [];
      const recordedAt = clock.now();
      const events = drafts.map((draft) => ({ ...draft, id: ids.next('evt') }));
      const rows = events.map((event) => ({ ...event, bodyPrefix: bodyPrefixOf(event) }));
      const eventIds = events.map(({ id }) => id);
      // Pipelined: one round trip.
      const [inserted] = await Promise.all([
        store.insertEvents(tx, rows, recordedAt),
        fanOut(tx, recordedAt, eventIds),
      ]);
      return events.map((event) => ({
        ...event,
        ...must(inserted.get(event.id), 'event'),
        recordedAt,
      }));
    },
  };
}

/**
 * The body up to `subject_seq`, which the insert appends. The body is fixed then; every endpoint,
 * every attempt and the feed get the same bytes.
 */
function bodyPrefixOf({ id, type, occurredAt, data }: EventDraft & { id: string }): string {
  const body = jsonText({ id, type, timestamp: isoText(occurredAt), data });
  const comma = body.endsWith('{}}') ? '' : ',';
  return `${body.slice(0, -2)}${comma}"subject_seq":`;
}

export const SEQUENCE_MAX = 1_000;

/**
 * One pass of the sequencer over at most `SEQUENCE_MAX` emits; returns how many events it numbered.
 * The row lock on the feed elects one daemon; the others return 0 at once.
 */
export async function sequence(db: Db): Promise<number> {
  return db.begin((tx) => store.numberEvents(tx, SEQUENCE_MAX));
}

export interface FeedPage {
  bodies: string[];
  cursor: string;
}

/**
 * Reads the feed after a cursor; from the oldest retained event for the empty string.
 * @param query.types exact types or `group.*`; empty for all
 * @throws Failure `invalid_cursor`, `cursor_expired`
 */
export async function readFeed(
  db: Db,
  query: { cursor: string; types: readonly string[]; limit: number },
): Promise<FeedPage> {
  const { cursor, types, limit } = query;
  if (!/^\d{0,18}$/.test(cursor))
    throw new Failure('invalid_cursor', 'use the next_cursor of the last response');
  const after = BigInt(cursor || '0');
  const { oldest, newest } = await store.feedBounds(db);
  if (after > newest) throw new Failure('invalid_cursor', 'the cursor is ahead of the feed');
  // Without a retained event, everything up to the newest number has been pruned.
  if (cursor !== '' && after + 1n < (oldest ?? newest + 1n)) {
    throw new Failure(
      'cursor_expired',
      `events up to ${(oldest ?? newest + 1n) - 1n} have been pruned`,
    );
  }
  const rows = await store.listFeed(db, { after, upTo: newest, types, limit });
  const last = rows.at(-1);
  // A full page continues after its last row; a short one has reached the newest event.
  const next = rows.length === limit && last ? last.seq : newest;
  return { bodies: rows.map((row) => row.body), cursor: next.toString() };
}
