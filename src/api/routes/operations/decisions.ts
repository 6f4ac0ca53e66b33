/**
 * Decisions by people: the outcome of an operation (proposed by one owner, approved by another),
 * and cancelling a queued operation.
 */
import { z } from '@hono/zod-openapi';
import { type Decision, operationRow, withApproval } from '../../../operations/operations.ts';
import { decision, OUTCOMES } from '../../../resources/decision.ts';
import { operation } from '../../../resources/operation.ts';
import type { Row } from '../../../resources/resource.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput, textInput } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';

const outcome = z.enum(OUTCOMES);
const REASON_MAX = 2_000;
const params = z.object({ id: idInput('op') });
const base = { tag: 'operations', scope: 'decide' as const };

export function addDecisions(
  router: Router,
  { decisions, operations, wake }: Pick<ApiDeps, 'decisions' | 'operations' | 'wake'>,
): void {
  router.answer({
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
    answer: decision,
    handle: async ({ params: { id }, body }, caller) =>
      decisionRow(await decisions.propose(id, body, caller)),
  });
  router.answer({
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
    answer: operation,
    async handle({ params: { id }, body }, caller) {
      const decided = await decisions.approve(id, body, caller);
      wake('ledger', 'sequencer', 'webhooks');
      return operationRow(decided);
    },
  });
  router.answer({
    ...base,
    scope: 'gateway',
    method: 'delete',
    path: '/api/operations/{id}',
    summary: 'Cancel a queued operation',
    description: 'It is never sent, and its idempotency key stays used.',
    request: z.object({ params }),
    response: 'The cancelled operation',
    answer: operation,
    async handle({ params: { id } }, { owner, scopes }) {
      const by = { owner, admin: scopes.includes('admin') };
      return operationRow(await operations.cancel(id, by));
    },
  });
}

export function decisionRow(made: Decision): Row<typeof decision> {
  return { ...withApproval(made), outcome: made.decision as (typeof OUTCOMES)[number] };
}
