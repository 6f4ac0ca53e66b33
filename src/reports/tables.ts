/** Stored reports: reproducible from their cut-off, hashed, scheduled once per kind and period. */
import { instant, json, tallyhook } from '../db/columns.ts';
import { boolean, index, integer, sql, text, uniqueIndex } from '../db/drizzle.ts';

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
