/**
 * Events, committed with the change they announce. The table is partitioned by `recorded_at` and
 * pruned by dropping partitions, so it has no unique key over ids; ids are UUIDv7, without their
 * prefix.
 */
import { instant, tallyhook } from '../db/columns.ts';
import { bigint, index, integer, primaryKey, sql, text, uniqueIndex, uuid } from '../db/drizzle.ts';

export const events = tallyhook.table(
  'events',
  {
    id: uuid().notNull(),
    type: text().notNull(),
    subject: text().notNull(),
    /** Gap-free from 1 per subject. */
    subjectSeq: bigint('subject_seq', { mode: 'bigint' }).notNull(),
    occurredAt: instant('occurred_at').notNull(),
    recordedAt: instant('recorded_at').notNull(),
    /** Of `event_shapes`: the names of the members of its data. */
    shape: bigint({ mode: 'bigint' }).notNull(),
    /**
     * Their values, each JSON on a line; a null is an empty line, and `$` is the subject after its
     * first colon. The function `event_body` makes the exact bytes of the webhook body from it.
     */
    data: text().notNull(),
  },
  (t) => [primaryKey({ columns: [t.recordedAt, t.id] })],
);

/**
 * The names of the members of `data` of events, in order, which repeat in every event of a type: a
 * third of a body. Its id is their hash. It has no unique key, because a second producer would wait
 * for the commit of the first one; both then insert the same row.
 */
export const eventShapes = tallyhook.table(
  'event_shapes',
  {
    id: bigint({ mode: 'bigint' }).notNull(),
    names: text().array().notNull(),
  },
  (t) => [index('event_shapes_by_id').on(t.id)],
);

/**
 * The events of one `emit`, until the sequencer has them in `numbered_events`. Ids are those
 * of the events without their prefix, in order. The rows of one subject have rising ids, because
 * their producers hold its lock.
 */
export const unnumberedEvents = tallyhook.table('unnumbered_events', {
  id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
  recordedAt: instant('recorded_at').notNull(),
  ids: uuid().array().notNull(),
});

/**
 * The pull feed, gap-free from 1, a row for the events that were numbered together; partitioned and
 * pruned like the events.
 */
export const numberedEvents = tallyhook.table(
  'numbered_events',
  {
    /** The number of the first of the ids, of which there are at most 256. */
    firstSeq: bigint('first_seq', { mode: 'bigint' }).notNull(),
    /** The earliest of `recordedAts`. */
    recordedAt: instant('recorded_at').notNull(),
    ids: uuid().array().notNull(),
    recordedAts: instant('recorded_ats').array().notNull(),
  },
  (t) => [primaryKey({ columns: [t.firstSeq, t.recordedAt] })],
);

/** The last number of each subject; removed with its last event. */
export const subjects = tallyhook.table('subjects', {
  subject: text().primaryKey(),
  lastSeq: bigint('last_seq', { mode: 'bigint' }).notNull(),
});

/** One row: the last number of the pull feed. Its lock elects the sequencer. */
export const feed = tallyhook.table('feed', {
  name: text().primaryKey(),
  lastSeq: bigint('last_seq', { mode: 'bigint' }).notNull(),
});

/** Named positions in the feed, kept for those who pull. */
export const consumers = tallyhook.table(
  'consumers',
  {
    id: text().primaryKey(),
    name: text().notNull(),
    /** Exact types, `group.*` or `*`. */
    eventTypes: text('event_types').array().notNull(),
    /** What is not acknowledged within so many seconds is handed out again. */
    redeliverAfterS: integer('redeliver_after_s').notNull(),
    createdBy: text('created_by').notNull(),
    createdAt: instant('created_at').notNull(),
    /** Rises with every seek, so that a receipt from before it names nothing. */
    seeks: integer().notNull().default(0),
    /** Events that retention removed before they were acknowledged. */
    missed: bigint({ mode: 'bigint' }).notNull().default(sql`0`),
    /** Up to this number the feed was read: what is not acknowledged of it is in the window. */
    readTo: bigint('read_to', { mode: 'bigint' }).notNull(),
  },
  (t) => [uniqueIndex('consumers_by_name').on(t.createdBy, t.name)],
);

/**
 * The window of a consumer: events that were read from the feed and are not acknowledged. What is
 * acknowledged has no row, so the position of a consumer is before its first row.
 */
export const consumedEvents = tallyhook.table(
  'consumed_events',
  {
    consumerId: text('consumer_id')
      .notNull()
      .references(() => consumers.id, { onDelete: 'cascade' }),
    /** Its number in the feed. */
    seq: bigint({ mode: 'bigint' }).notNull(),
    eventId: uuid('event_id').notNull(),
    recordedAt: instant('recorded_at').notNull(),
    subject: text().notNull(),
    // Last what a hand-out changes: an update logs a row from its first changed column.
    handedOut: integer('handed_out').notNull().default(0),
    /** Unexpired a worker has it. */
    leaseUntil: instant('lease_until'),
  },
  (t) => [
    primaryKey({ columns: [t.consumerId, t.seq] }),
    index('consumed_events_by_subject').on(t.consumerId, t.subject),
  ],
);
