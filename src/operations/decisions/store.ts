/** SQL of decisions. */
import type { Queryable, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Operation } from '../operation.ts';
import { operationColumns } from '../store.ts';
import type { DecidedOutcome } from './rule.ts';

/** A proposed outcome; it has no effect before the approval. */
export interface Decision {
  operationId: string;
  /** Counts the proposals of the operation from 1. */
  n: number;
  outcome: DecidedOutcome;
  reason: string;
  proposedBy: string;
  proposedKey: string;
  proposedAt: Instant;
  approvedBy: string | null;
  approvedKey: string | null;
  approvedAt: Instant | null;
}

/** The operation, locked until the end of the transaction. */
export async function lockOperation(tx: Tx, id: string): Promise<Operation | undefined> {
  const rows = await tx.sql<Operation[]>`
    select ${operationColumns(tx.sql)} from tallyhook.operations o
    where o.id = ${id} for update`;
  return rows[0];
}

const DECISIONS_MAX = 1_000;

export async function listDecisions(db: Queryable, operationId: string): Promise<Decision[]> {
  return db.sql<Decision[]>`
    select operation_id, n::int as n, outcome, reason,
      proposed_by, proposed_key, proposed_at,
      approved_by, approved_key, approved_at
    from tallyhook.decisions where operation_id = ${operationId} order by n limit ${DECISIONS_MAX}`;
}

export async function insertDecision(tx: Tx, decision: Decision): Promise<void> {
  await tx.sql`
    insert into tallyhook.decisions (operation_id, n, outcome, reason, proposed_by, proposed_key,
      proposed_at)
    values (${decision.operationId}, ${decision.n}, ${decision.outcome}, ${decision.reason},
      ${decision.proposedBy}, ${decision.proposedKey}, ${isoText(decision.proposedAt)})`;
}

export async function approveDecision(
  tx: Tx,
  { operationId, n }: Pick<Decision, 'operationId' | 'n'>,
  by: { owner: string; keyId: string },
  at: Instant,
): Promise<void> {
  await tx.sql`
    update tallyhook.decisions
    set approved_by = ${by.owner}, approved_key = ${by.keyId}, approved_at = ${isoText(at)}
    where operation_id = ${operationId} and n = ${n} and approved_at is null`;
}
