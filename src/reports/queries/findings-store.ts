/** The SQL that all queries for findings of several kinds end with. */
import type { ReportParams } from '../params.ts';

/**
 * Ends a query whose CTE `found` has the columns kind, subject, amount, since and evidence: lists
 * the oldest findings of each kind, at most `listMax`, with the count of the kind.
 */
export function firstOfEachKind({ tx, limits }: ReportParams) {
  return tx.sql`
    select kind, subject, amount, since, null as assignee, evidence, total from (
      select kind, subject, amount, since, evidence,
        (count(*) over (partition by kind))::int as total,
        row_number() over (partition by kind order by since, subject) as place
      from found) numbered
    where place <= ${limits.listMax} order by kind, place`;
}
