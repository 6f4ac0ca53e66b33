/**
 * Outcomes decided by people: one proposes with a reason, a person of another owner approves, and
 * then the state changes. The new state makes the posting or reversal due.
 */
import type { Db, Tx } from '../../db/connect.ts';
import { type Clock, isoText } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { resolvedEvent } from '../events.ts';
import type { Operation } from '../operation.ts';
import { type AddDuePostings, applyTransitions, type Move } from '../transition-store.ts';
import { assertDecidable, type DecidedOutcome } from './rule.ts';
import {
  approveDecision,
  type Decision,
  insertDecision,
  listDecisions,
  lockOperation,
} from './store.ts';

export type { DecidedOutcome } from './rule.ts';
export { type Decision, listDecisions } from './store.ts';

interface Person {
  owner: string;
  keyId: string;
}

export interface Decisions {
  /**
   * Proposes an outcome; it replaces an earlier proposal that is not approved.
   * @throws Failure `not_found`, or `conflict` when the state does not allow it
   */
  propose(
    operationId: string,
    proposal: { outcome: DecidedOutcome; reason: string },
    by: Person,
  ): Promise<Decision>;
  /**
   * Approves the latest proposal and changes the state, with its event.
   * @param expected the proposal that the approver read; a different one is refused
   * @throws Failure `not_found`, `same_owner`, or `conflict` when there is no proposal, it is not
   * the expected one, or the state does not allow it any more
   */
  approve(
    operationId: string,
    expected: { n?: number | undefined; outcome?: DecidedOutcome | undefined },
    by: Person,
  ): Promise<Operation>;
}

export function makeDecisions(deps: {
  db: Db;
  clock: Clock;
  outbox: Outbox;
  addDuePostings: AddDuePostings;
}): Decisions {
  const { db, clock, outbox, addDuePostings } = deps;
  return {
    propose: (operationId, { outcome, reason }, by) =>
      db.begin(async (tx) => {
        const operation = await lockExisting(tx, operationId);
        assertDecidable(operation, outcome);
        const earlier = await listDecisions(tx, operationId);
        const decision: Decision = {
          operationId,
          n: (earlier.at(-1)?.n ?? 0) + 1,
          outcome,
          reason,
          proposedBy: by.owner,
          proposedKey: by.keyId,
          proposedAt: clock.now(),
          approvedBy: null,
          approvedKey: null,
          approvedAt: null,
        };
        await insertDecision(tx, decision);
        return decision;
      }),
    approve: (operationId, expected, by) =>
      db.begin(async (tx) => {
        const operation = await lockExisting(tx, operationId);
        const decision = (await listDecisions(tx, operationId)).at(-1);
        assertApprovable(operationId, decision, expected);
        if (decision.proposedBy === by.owner)
          throw new Failure(
            'same_owner',
            `${by.owner} proposed it; a key of another owner approves`,
          );
        assertDecidable(operation, decision.outcome);
        const now = clock.now();
        await approveDecision(tx, decision, by, now);
        const move = moveOf(operation, decision, by.owner, now);
        const [moved] = await applyTransitions(tx, [move], addDuePostings);
        const decided = must(moved, 'operation that was locked');
        await outbox.emit(tx, [resolvedEvent(decided, operation, now)]);
        return decided;
      }),
  };
}

async function lockExisting(tx: Tx, id: string): Promise<Operation> {
  const operation = await lockOperation(tx, id);
  if (!operation) throw new Failure('not_found', `there is no ${id}`);
  return operation;
}

function assertApprovable(
  operationId: string,
  decision: Decision | undefined,
  expected: { n?: number | undefined; outcome?: DecidedOutcome | undefined },
): asserts decision is Decision {
  const members = { operation_id: operationId };
  if (!decision || decision.approvedAt !== null) {
    const path = `/api/operations/${operationId}/decide`;
    throw new Failure('conflict', `nothing waits for approval; propose: POST ${path}`, members);
  }
  const { n = decision.n, outcome = decision.outcome } = expected;
  if (n !== decision.n || outcome !== decision.outcome) {
    const newest = `the newest proposal is number ${decision.n}: ${decision.outcome}`;
    throw new Failure('conflict', `${newest}; read it first`, members);
  }
}

/** A decided write took effect when it was sent, unless another time is known. */
function moveOf(operation: Operation, decision: Decision, approvedBy: string, at: number): Move {
  const { id, effectiveAt, sentAt, recordedAt } = operation;
  const evidence: { [key: string]: Json } = {
    decided_by: decision.proposedBy,
    approved_by: approvedBy,
    reason: decision.reason,
    decision: decision.n,
    decided_at: isoText(decision.proposedAt),
  };
  return {
    id,
    to: decision.outcome,
    at,
    cause: 'decision',
    decided: true,
    evidence,
    effectiveAt: effectiveAt ?? sentAt ?? recordedAt,
    effectiveBasis: 'decision',
  };
}
