/**
 * Events, committed with the change they announce. The table is partitioned by `recorded_at` and
 * pruned by dropping partitions, so it has no unique key over ids; ids are UUIDv7.
 */
import { instant, tallyhook } from '../db/columns.ts';
import { bigint, index, primaryKey, sql, text } from '../db/drizzle.ts';

export const events = tallyhook.table(
  'events',
  {
    id: text().notNull(),
    type: text().notNull(),
    subject: text().notNull(),
    /** Gap-free from 1 per subject. */
    subjectSeq: bigint('subject_seq', { mode: 'bigint' }).notNull(),
    occurredAt: instant('occurred_at').notNull(),
    recordedAt: instant('recorded_at').notNull(),
    /** The number in the pull feed, gap-free from 1; assigned after the commit. */
    seq: bigint({ mode: 'bigint' }),
    /** The exact bytes of the webhook body. */
    body: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.recordedAt, t.id] }),
    index('events_unsequenced').on(t.recordedAt, t.id).where(sql`seq is null`),
    index('events_by_seq').on(t.seq),
    index('events_by_id').on(t.id),
  ],
);

export const subjects = tallyhook.table('subjects', {
  subject: text().primaryKey(),
  lastSeq: bigint('last_seq', { mode: 'bigint' }).notNull(),
});

/** One row: the last number of the pull feed. Its lock elects the sequencer. */
export const feed = tallyhook.table('feed', {
  name: text().primaryKey(),
  lastSeq: bigint('last_seq', { mode: 'bigint' }).notNull(),
});
