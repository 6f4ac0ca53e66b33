/**
 * Stored reports: reproducible from their cut-off, hashed, scheduled once per kind and period; and
 * closed periods with what became of them. Only `reports/` writes here.
 */
import { instant, json, tallyhook } from '../db/columns.ts';
import {
  bigint,
  boolean,
  foreignKey,
  index,
  integer,
  primaryKey,
  smallint,
  sql,
  text,
  uniqueIndex,
} from '../db/drizzle.ts';
import { decisions } from '../operations/tables.ts';

export const reports = tallyhook.table(
  'reports',
  {
    id: text().primaryKey(),
    kind: text().notNull(),
    periodFrom: instant('period_from').notNull(),
    periodTo: instant('period_to').notNull(),
    /** Cut-off: time of the last ledger batch in the report. */
    knownAt: instant('known_at').notNull(),
    /** An owner, or `schedule`. */
    requestedBy: text('requested_by').notNull(),
    /** `balanced` or `breaks`. */
    verdict: text().notNull(),
    breaks: integer().notNull(),
    /** Made while the period still ran. */
    provisional: boolean().notNull(),
    content: json().notNull(),
    /** SHA-256 of the canonical content. */
    hash: text().notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [
    uniqueIndex('reports_once_per_period')
      .on(t.kind, t.periodFrom, t.periodTo)
      .where(sql`requested_by = 'schedule'`),
    index('reports_by_time').on(t.createdAt),
  ],
);

/** Files of reports that a folder gets; written once, and tried again until then. */
export const reportFiles = tallyhook.table(
  'report_files',
  {
    reportId: text('report_id')
      .notNull()
      .references(() => reports.id),
    format: text().notNull(),
    dueAt: instant('due_at').notNull(),
    attempts: integer().notNull(),
    path: text(),
    writtenAt: instant('written_at'),
    /** Why the last attempt failed. */
    problem: text(),
  },
  (t) => [
    primaryKey({ columns: [t.reportId, t.format] }),
    index('report_files_due').on(t.dueAt).where(sql`written_at is null`),
  ],
);

/**
 * Append-only: each close of a period. It is in force until it is reopened; periods in force do not
 * overlap, and each begins where the one before it ends.
 */
export const periods = tallyhook.table(
  'periods',
  {
    id: text().primaryKey(),
    periodFrom: instant('period_from').notNull(),
    periodTo: instant('period_to').notNull(),
    /** The report over exactly this period, which is its answer from now on. */
    reportId: text('report_id')
      .notNull()
      .references(() => reports.id),
    reportHash: text('report_hash').notNull(),
    /** Cut-off: the last ledger batch of the report, 0 without one, and its time. */
    lastBatch: bigint('last_batch', { mode: 'bigint' }).notNull(),
    knownAt: instant('known_at').notNull(),
    chainHead: text('chain_head'),
    /** The close as a proposal, which the signature of another owner approves. */
    decision: smallint().notNull(),
    closedBy: text('closed_by').notNull(),
    closedAt: instant('closed_at').notNull(),
  },
  (t) => [
    index('periods_by_end').on(t.periodTo),
    foreignKey({
      name: 'periods_closed_by_decision',
      columns: [t.id, t.decision, t.closedBy],
      foreignColumns: [decisions.subject, decisions.n, decisions.proposedBy],
    }),
  ],
);

/**
 * Append-only: closed, an open item signed off, signed, a reopening proposed, reopened; by the
 * owner of a key.
 */
export const periodActions = tallyhook.table(
  'period_actions',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    periodId: text('period_id')
      .notNull()
      .references(() => periods.id),
    action: text().notNull(),
    at: instant().notNull(),
    by: text().notNull(),
    keyId: text('key_id').notNull(),
    reason: text(),
    /** The open item that is signed off. */
    detail: json(),
  },
  (t) => [
    index('period_actions_by_period').on(t.periodId, t.id),
    uniqueIndex('period_actions_ended_once')
      .on(t.periodId, t.action)
      .where(sql`action in ('closed', 'signed', 'reopened')`),
  ],
);
