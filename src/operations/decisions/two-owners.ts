/**
 * Decisions by two owners: one person proposes with a reason, another owner approves, and above a
 * set amount a third owner as well. The subject is an operation or a drift; the caller locks it
 * first, and then applies what was approved. Constraints of the database refuse a repeated owner.
 */
import type { Tx } from '../../db/connect.ts';
import { sameOwner } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { type Decision, insertApproval, insertDecision, newestDecision } from './store.ts';

export interface Person {
  owner: string;
  keyId: string;
}

/** What the approver has read; a different proposal is refused. */
export interface ExpectedProposal {
  n?: number | undefined;
  decision?: string | undefined;
}

/** Proposes; it replaces an earlier proposal that is not approved. */
export async function propose(
  tx: Tx,
  proposal: Pick<Decision, 'subject' | 'decision' | 'operationId' | 'reason'>,
  /** Its amount, and the amount above which two approvals are needed. */
  { amount, secondApproverAbove }: { amount: bigint; secondApproverAbove?: bigint | undefined },
  by: Person,
  at: Instant,
): Promise<Decision> {
  const size = amount < 0n ? -amount : amount;
  const decision: Decision = {
    ...proposal,
    n: ((await newestDecision(tx, proposal.subject))?.n ?? 0) + 1,
    approvalsNeeded: secondApproverAbove !== undefined && size > secondApproverAbove ? 2 : 1,
    proposedBy: by.owner,
    proposedKey: by.keyId,
    proposedAt: at,
    approvals: [],
  };
  await insertDecision(tx, decision);
  return decision;
}

/**
 * Approves the newest proposal.
 * @throws Failure `same_owner`, or `conflict` when there is no proposal or not the expected one
 */
export async function approve(
  tx: Tx,
  subject: string,
  expected: ExpectedProposal,
  by: Person,
  at: Instant,
): Promise<Decision> {
  const newest = await newestDecision(tx, subject);
  if (!newest || isApproved(newest))
    throw new Failure('conflict', `nothing waits for approval on ${subject}; propose first`);
  const { n = newest.n, decision = newest.decision } = expected;
  if (n !== newest.n || decision !== newest.decision) {
    const found = `the newest proposal on ${subject} is number ${newest.n}: ${newest.decision}`;
    throw new Failure('conflict', `${found}; read it first`);
  }
  const { owner } = by;
  if (sameOwner(newest.proposedBy, owner))
    throw new Failure('same_owner', `${owner} proposed it; a key of another owner approves`);
  if (newest.approvals.some((approval) => sameOwner(approval.owner, owner)))
    throw new Failure('same_owner', `${owner} approved it already; a third owner approves as well`);
  await insertApproval(tx, newest, by, at);
  return { ...newest, approvals: [...newest.approvals, { ...by, at }] };
}

export function isApproved({ approvals, approvalsNeeded }: Decision): boolean {
  return approvals.length >= approvalsNeeded;
}

/** The owners that approved it, for people; null until it is approved. */
export function approversOf(decision: Decision): string | null {
  return isApproved(decision) ? decision.approvals.map(({ owner }) => owner).join(', ') : null;
}

/** With who approved it when; null until it is approved. */
export function withApproval(decision: Decision) {
  const approvedAt = isApproved(decision) ? (decision.approvals.at(-1)?.at ?? null) : null;
  return { ...decision, approvedBy: approversOf(decision), approvedAt };
}
