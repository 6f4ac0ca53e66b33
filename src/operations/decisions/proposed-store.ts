/** SQL of undecided operations whose proposal waits for the approval of another owner. */
import type { Queryable, Sql } from '../../db/connect.ts';

/** The condition on operations `o`. An approved proposal ends the state, so the newest waits. */
export function isProposed(sql: Sql) {
  return sql`(o.state = 'undecided' and exists (
    select from tallyhook.decisions d where d.subject = o.id))`;
}

/** Counted up to `max`. */
export async function countProposed({ sql }: Queryable, max: number): Promise<number> {
  const rows = await sql<{ count: number }[]>`
    select count(*)::int as count from (
      select from tallyhook.operations o where ${isProposed(sql)} limit ${max}) p`;
  return rows[0]?.count ?? 0;
}
