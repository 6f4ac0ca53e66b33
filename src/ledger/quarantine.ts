/** Quarantined postings, which the ledger does not try until a person releases them. */
import type { Tx } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';
import { quarantineDuePosting, releaseDuePosting } from '../operations/operations.ts';
import type { Problem } from './plan/draft.ts';

/** Excludes what cannot be posted until a person releases it; reports show it as a break. */
export async function quarantine(tx: Tx, { of, id, problem }: Problem, at: Instant): Promise<void> {
  const { sql } = tx;
  switch (of) {
    case 'operation':
      return quarantineDuePosting(tx, id, problem, at);
    case 'posting_request':
      await sql`update tallyhook.posting_requests set problem = ${problem} where id = ${id}`;
      return;
    case 'observed_holder':
      await sql`
        update tallyhook.observed_holders set problem = ${problem} where id = ${id}::bigint`;
  }
}

/**
 * Makes the ledger try a quarantined posting again. Returns why it was quarantined; undefined if it
 * is not.
 */
export async function releasePosting(
  tx: Tx,
  kind: Problem['of'],
  id: string,
): Promise<string | undefined> {
  const rows = await released(tx, kind, id);
  return rows[0]?.problem;
}

async function released(tx: Tx, kind: Problem['of'], id: string) {
  const { sql } = tx;
  switch (kind) {
    case 'operation':
      return releaseDuePosting(tx, id);
    case 'posting_request':
      return sql<{ problem: string }[]>`
        update tallyhook.posting_requests r set problem = null
        from (select id, problem from tallyhook.posting_requests
          where id = ${id} and problem is not null and posted_at is null for update) q
        where r.id = q.id returning q.problem`;
    case 'observed_holder':
      if (!/^\d{1,18}$/.test(id)) return [];
      return sql<{ problem: string }[]>`
        update tallyhook.observed_holders h set problem = null
        from (select id, problem from tallyhook.observed_holders
          where id = ${id}::bigint and problem is not null for update) q
        where h.id = q.id returning q.problem`;
  }
}
