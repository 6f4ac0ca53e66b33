/**
 * What people do about a write: decide its outcome (one proposes, another owner approves), and
 * cancel one that waits to be sent.
 */
import { createRoute, z } from '@hono/zod-openapi';
import type { Decision } from '../../../operations/operations.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import { idIn, instantOut, textIn, timeText } from '../../http/fields.ts';
import { bodyRefusals, json, jsonBody } from '../../http/problems.ts';
import { operation, shownOperation } from './fields.ts';

const outcome = z.enum(['executed', 'not_executed']);

export const decision = z
  .object({
    n: z.int().openapi({ description: 'Its number among those of the operation, from 1' }),
    outcome,
    reason: z.string(),
    proposed_by: z.string(),
    proposed_at: instantOut,
    approved_by: z.string().nullable(),
    approved_at: instantOut.nullable(),
  })
  .openapi('Decision');

const REASON_MAX = 2_000;
const one = { params: z.object({ id: idIn('op') }) };
const base = { method: 'post' as const, tags: ['operations'], ...deps('manage') };

const decideRoute = createRoute({
  ...base,
  path: '/api/operations/{id}/decide',
  summary: 'Proposes the outcome of a write that the service did not answer',
  description:
    'For an undecided write, and for one whose outcome was inferred, reported or decided before. ' +
    'Nothing changes until a key of another owner approves.',
  request: {
    ...one,
    body: jsonBody(z.strictObject({ outcome, reason: textIn(REASON_MAX) })),
  },
  responses: { 201: json('The proposal, which waits for approval', decision), ...bodyRefusals },
});
const approveRoute = createRoute({
  ...base,
  path: '/api/operations/{id}/approve',
  summary: 'Approves the newest proposal, as another owner than the one who made it',
  request: {
    ...one,
    body: jsonBody(
      z
        .strictObject({ n: z.int().min(1).max(32_767).optional(), outcome: outcome.optional() })
        .openapi({ description: 'What is approved, as it was seen; another proposal is refused' }),
    ),
  },
  responses: { 200: json('The write as it stands now', operation), ...bodyRefusals },
});
const cancelRoute = createRoute({
  ...{ ...base, method: 'delete' as const },
  path: '/api/operations/{id}',
  summary: 'Cancels a queued write; it is never sent, and its idempotency key stays used',
  request: one,
  responses: { 200: json('The write, cancelled', operation), ...bodyRefusals },
});

export function addDecisions(app: Api, deps: ApiDeps): void {
  const { decisions, operations, wake } = deps;
  app.openapi(guarded(deps, decideRoute), async (c) => {
    const { id } = c.req.valid('param');
    const made = await decisions.propose(id, c.req.valid('json'), c.get('caller'));
    return reply(c, shownDecision(made), 201);
  });
  app.openapi(guarded(deps, approveRoute), async (c) => {
    const { id } = c.req.valid('param');
    const moved = await decisions.approve(id, c.req.valid('json'), c.get('caller'));
    wake('ledger', 'sequencer', 'webhooks');
    return reply(c, shownOperation(moved), 200);
  });
  app.openapi(guarded(deps, cancelRoute), async (c) => {
    const { owner, scopes } = c.get('caller');
    const by = { owner, admin: scopes.includes('admin') };
    return reply(c, shownOperation(await operations.cancel(c.req.valid('param').id, by)), 200);
  });
}

export function shownDecision(row: Decision) {
  return {
    n: row.n,
    outcome: row.outcome,
    reason: row.reason,
    proposed_by: row.proposedBy,
    proposed_at: timeText(row.proposedAt),
    approved_by: row.approvedBy,
    approved_at: timeText(row.approvedAt),
  };
}
