/**
 * Decisions by people: the outcome of an operation (proposed by one owner, approved by another),
 * and cancelling a queued operation.
 */
import { z } from '@hono/zod-openapi';
import { approvedAt, approversOf, type Decision } from '../../../operations/operations.ts';
import { PROPOSALS } from '../../../reconciler/reconciler.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput, instant, instantText, textInput } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';
import { operation, operationOutput } from './fields.ts';

const outcome = z.enum(['executed', 'not_executed']);

/** A proposal of two owners, about an operation or a drift. */
const proposal = z.object({
  n: z.int().openapi({ description: 'Number of the proposal about its subject, from 1' }),
  reason: z.string(),
  proposed_by: z.string(),
  proposed_at: instant,
  approvals_needed: z.int().openapi({ description: '2 above `decisions.second_approver_above`' }),
  approvals: z.array(z.object({ owner: z.string(), at: instant })),
  approved_by: z.string().nullable().openapi({ description: 'Null until it has all approvals' }),
  approved_at: instant.nullable(),
});
export const decision = proposal.extend({ outcome }).openapi('Decision');
export const driftProposal = proposal
  .extend({ kind: z.enum(PROPOSALS), operation_id: z.string().nullable() })
  .openapi('DriftProposal');

const REASON_MAX = 2_000;
const params = z.object({ id: idInput('op') });
const base = { tag: 'operations', scope: 'decide' as const };

export function addDecisions(
  router: Router,
  { decisions, operations, wake }: Pick<ApiDeps, 'decisions' | 'operations' | 'wake'>,
): void {
  router.add({
    ...base,
    method: 'post',
    path: '/api/operations/{id}/decide',
    summary: 'Propose the outcome of an operation',
    description:
      'For an undecided operation, one whose outcome was inferred, reported or decided, and to ' +
      'take back one that was accepted or has settled. The outcome changes when a key of ' +
      'another owner approves.',
    request: z.object({
      params,
      body: z.strictObject({ outcome, reason: textInput(REASON_MAX) }),
    }),
    status: 201,
    response: 'The proposal',
    schema: decision,
    handle: async ({ params: { id }, body }, caller) =>
      decisionOutput(await decisions.propose(id, body, caller)),
  });
  router.add({
    ...base,
    method: 'post',
    path: '/api/operations/{id}/approve',
    summary: 'Approve the newest proposal of another owner',
    request: z.object({
      params,
      body: z
        .strictObject({ n: z.int().min(1).max(32_767).optional(), outcome: outcome.optional() })
        .openapi({ description: 'The proposal to approve; any other newest proposal is refused' }),
    }),
    response: 'The operation, which the last approval that is needed has changed',
    schema: operation,
    async handle({ params: { id }, body }, caller) {
      const decided = await decisions.approve(id, body, caller);
      wake('ledger', 'sequencer', 'webhooks');
      return operationOutput(decided);
    },
  });
  router.add({
    ...base,
    scope: 'gateway',
    method: 'delete',
    path: '/api/operations/{id}',
    summary: 'Cancel a queued operation',
    description: 'It is never sent, and its idempotency key stays used.',
    request: z.object({ params }),
    response: 'The cancelled operation',
    schema: operation,
    async handle({ params: { id } }, { owner, scopes }) {
      const by = { owner, admin: scopes.includes('admin') };
      return operationOutput(await operations.cancel(id, by));
    },
  });
}

export function decisionOutput(row: Decision) {
  return { ...proposalOutput(row), outcome: row.decision as z.input<typeof outcome> };
}

export function driftProposalOutput(row: Decision): z.input<typeof driftProposal> {
  const kind = row.decision as (typeof PROPOSALS)[number];
  return { ...proposalOutput(row), kind, operation_id: row.operationId };
}

function proposalOutput(row: Decision) {
  return {
    n: row.n,
    reason: row.reason,
    proposed_by: row.proposedBy,
    proposed_at: instantText(row.proposedAt),
    approvals_needed: row.approvalsNeeded,
    approvals: row.approvals.map(({ owner, at }) => ({ owner, at: instantText(at) })),
    approved_by: approversOf(row),
    approved_at: instantText(approvedAt(row)),
  };
}
