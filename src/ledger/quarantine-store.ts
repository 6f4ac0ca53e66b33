/** SQL of quarantined postings, which the ledger does not try until a person releases them. */
import type { Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Problem } from './plan/draft.ts';
import { quarantineHolder, releaseHolder } from './tokens/store.ts';

/** Excludes what cannot be posted until a person releases it; reports show it as a break. */
export function quarantine(tx: Tx, { of, id, problem }: Problem, at: Instant): Promise<void> {
  switch (of) {
    case 'operation':
      return quarantineDue(tx, { id, problem, at });
    case 'posting_request':
      return quarantineRequest(tx, id, problem);
    case 'observed_holder':
      return quarantineHolder(tx, id, problem);
  }
}

async function quarantineDue(
  tx: Tx,
  { id, problem, at }: { id: string; problem: string; at: Instant },
): Promise<void> {
  await tx.sql`
    update tallyhook.due_postings set quarantine_reason = ${problem},
      quarantined_at = ${isoText(at)}
    where operation_id = ${id}`;
}

async function quarantineRequest(tx: Tx, id: string, problem: string): Promise<void> {
  await tx.sql`update tallyhook.posting_requests set problem = ${problem} where id = ${id}`;
}

/** Returns why it was quarantined; undefined if it is not. Its `quarantined_at` stays. */
async function releaseDue({ sql }: Tx, id: string): Promise<string | undefined> {
  const rows = await sql<{ problem: string }[]>`
    update tallyhook.due_postings d set quarantine_reason = null
    from (select operation_id, quarantine_reason from tallyhook.due_postings
      where operation_id = ${id} and quarantine_reason is not null for update) q
    where d.operation_id = q.operation_id returning q.quarantine_reason as problem`;
  return rows[0]?.problem;
}

async function releaseRequest({ sql }: Tx, id: string): Promise<string | undefined> {
  const rows = await sql<{ problem: string }[]>`
    update tallyhook.posting_requests r set problem = null
    from (select id, problem from tallyhook.posting_requests
      where id = ${id} and problem is not null and posted_at is null for update) q
    where r.id = q.id returning q.problem`;
  return rows[0]?.problem;
}

/**
 * Makes the ledger try a quarantined posting again. Returns why it was quarantined; undefined if it
 * is not.
 */
export function releasePosting(
  tx: Tx,
  kind: Problem['of'],
  id: string,
): Promise<string | undefined> {
  const release = {
    operation: releaseDue,
    posting_request: releaseRequest,
    observed_holder: releaseHolder,
  };
  return release[kind](tx, id);
}
