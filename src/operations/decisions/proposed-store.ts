/** SQL of operations whose proposed outcome waits for the approval of another owner. */
import type { Queryable, Sql } from '../../db/connect.ts';
import { NFT_KINDS } from '../operation.ts';

/**
 * The ids of such operations. A proposal waits until it is approved or replaced, and while its
 * outcome may still be decided, as in rule.ts. It is found by the decisions, which people make.
 */
function waiting(sql: Sql) {
  return sql`
    select p.id from tallyhook.decisions d join tallyhook.operations p on p.id = d.subject
    where d.subject like 'op\\_%'
      and d.n = (select max(m.n) from tallyhook.decisions m where m.subject = d.subject)
      and d.approvals_needed > (
        select count(*) from tallyhook.approvals a where a.subject = d.subject and a.n = d.n)
      and (p.state = 'undecided'
        or p.state in ('accepted', 'executed', 'settled') and d.decision = 'not_executed'
        or p.state in ('accepted', 'executed') and p.kind = any(${[...NFT_KINDS]}::text[])
        or p.state = 'not_executed' and d.decision = 'executed')`;
}

/** The condition on operations `o`. */
export function isProposed(sql: Sql) {
  return sql`o.id = any(array(${waiting(sql)}))`;
}

/** Counted up to `max`. */
export async function countProposed({ sql }: Queryable, max: number): Promise<number> {
  const rows = await sql<{ count: number }[]>`
    select count(*)::int as count from (${waiting(sql)} limit ${max}) w`;
  return rows[0]?.count ?? 0;
}
