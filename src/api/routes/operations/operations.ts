/**
 * `/api/operations`: operations with their transitions, sends and evidence; decisions of people
 * about their outcomes; and cancelling a queued one.
 */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../../kernel/errors.ts';
import {
  type Decision,
  findOperation,
  imageOf,
  listDecisions,
  listOperations,
  listSends,
  listTransitions,
  operationRow,
  waitsForOf,
} from '../../../operations/operations.ts';
import { givenOf } from '../../../resources/fields.ts';
import { decision, OUTCOMES } from '../../../resources/operations/decision.ts';
import { operation, operationDetail } from '../../../resources/operations/operation.ts';
import type { Row } from '../../../resources/resource.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf, idInput, reasonInput } from '../../http/schemas.ts';

const outcome = z.enum(OUTCOMES);
const params = z.object({ id: idInput('op') });
const base = { tag: 'operations', scope: 'read' } as const;
const query = z.strictObject({ ...paging, ...filtersOf(operation.filters) });

export function addOperations(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.listOf({
    ...base,
    path: '/api/operations',
    summary: 'List operations, newest first',
    request: z.object({ query }),
    items: operation,
    parsePosition: idPosition('op'),
    async list({ query }, { after: before, limit }) {
      const filter = givenOf(operation.filters, query);
      return (await listOperations(db, { ...filter, before, limit })).map(operationRow);
    },
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    method: 'get',
    path: '/api/operations/{id}',
    summary: 'Read an operation with its history and evidence',
    request: z.object({ params }),
    response: 'The operation',
    answer: operationDetail,
    async handle({ params: { id } }) {
      const found = await findOperation(db, id);
      if (!found) throw new Failure('not_found');
      const [transitions, sends, decisions] = await Promise.all([
        listTransitions(db, id),
        listSends(db, id),
        listDecisions(db, id),
      ]);
      return {
        ...operationRow(found),
        transitions,
        sends,
        decisions: decisions.map(decisionRow),
        waitsFor: waitsForOf(found, transitions),
        preImage: imageOf(found.preImage),
        evidence: found.evidence,
      };
    },
  });
}

/** The outcome of an operation is proposed by one owner and approved by another. */
export function addDecisions(
  router: Router,
  { decisions, operations, wake }: Pick<ApiDeps, 'decisions' | 'operations' | 'wake'>,
): void {
  router.answer({
    tag: 'operations',
    scope: 'decide',
    method: 'post',
    path: '/api/operations/{id}/decide',
    summary: 'Propose the outcome of an operation',
    description:
      'For an undecided operation, one whose outcome was inferred, reported or decided, and to ' +
      'take back one that was accepted or has settled. The outcome changes when a key of ' +
      'another owner approves.',
    request: z.object({
      params,
      body: z.strictObject({ outcome, reason: reasonInput }),
    }),
    status: 201,
    response: 'The proposal',
    answer: decision,
    handle: async ({ params: { id }, body }, caller) =>
      decisionRow(await decisions.propose(id, body, caller)),
  });
  router.answer({
    tag: 'operations',
    scope: 'decide',
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
    tag: 'operations',
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

function decisionRow(made: Decision): Row<typeof decision> {
  return { ...made, outcome: made.decision as (typeof OUTCOMES)[number] };
}
