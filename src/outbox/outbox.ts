/**
 * The transactional outbox. `emit` runs in the producer's transaction, so a change, its event and
 * the event's deliveries are one commit. The sequencer then numbers committed events for the pull
 * feed, without gaps, whatever the order of commits.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Clock, type Instant, monotonicMs } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import { partsOf } from './event-parts.ts';
import type { EventDraft, OutboxEvent } from './events.ts';
import * as store from './store.ts';

export { cursorBefore, type FeedPage, type FeedQuery, findEvent, readFeed } from './feed.ts';
export { logIncidents } from './incidents.ts';
export {
  countUnnumbered,
  endSubjects,
  listSubjectEvents,
  resumeSubject,
  type SubjectEvent,
} from './store.ts';
export { makeTail } from './tail.ts';

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
      const parts = events.map(partsOf);
      const rows = events.map((event, n) => ({ ...event, ...must(parts[n]?.row, 'parts') }));
      const shapes = new Map(parts.map(({ row, names }) => [row.shape, { id: row.shape, names }]));
      const eventIds = events.map(({ id }) => id);
      // Pipelined: one round trip.
      const [numbers, deliveries] = await Promise.all([
        store.insertEvents(tx, rows, [...shapes.values()], recordedAt),
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

export const SEQUENCE_MAX = 1_000;

/**
 * Inserts the deliveries of events that a subscriber missed because it was added between the
 * fan-out and the commit of their producer; implemented by webhooks.
 * @param after the events are those with higher numbers
 */
export type CatchUp = (tx: Tx, after: bigint) => Promise<void>;

/**
 * One pass of the sequencer over at most `SEQUENCE_MAX` emits; returns how many events it numbered.
 * The row lock on the feed elects one daemon; the others return 0 at once.
 */
export async function sequence(db: Db, catchUp?: CatchUp): Promise<number> {
  return db.begin(async (tx) => {
    const after = await store.lockFeed(tx, false);
    return after === undefined ? 0 : numberAfter(tx, after, catchUp);
  });
}

/**
 * Numbers every event that is committed. Until the transaction ends, no other is numbered: a
 * subscriber added in it is known to `catchUp` for all later events.
 */
export async function takePosition(tx: Tx, catchUp: CatchUp): Promise<void> {
  let after = must(await store.lockFeed(tx, true), 'feed');
  for (let numbered = 1; numbered > 0; after += BigInt(numbered))
    numbered = await numberAfter(tx, after, catchUp);
}

async function numberAfter(tx: Tx, after: bigint, catchUp?: CatchUp): Promise<number> {
  const numbered = await store.numberEvents(tx, SEQUENCE_MAX);
  if (numbered > 0) await catchUp?.(tx, after);
  return numbered;
}
