/** `/api/operations`: operations with their transitions, sends and evidence; read-only. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../../kernel/errors.ts';
import {
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
import { operation, operationDetail } from '../../../resources/operation.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput } from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf } from '../../http/schemas.ts';
import { decisionRow } from './decisions.ts';

const base = { tag: 'operations', scope: 'read' as const };
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
    request: z.object({ params: z.object({ id: idInput('op') }) }),
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
