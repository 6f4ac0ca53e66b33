/** `/api/operations`: what was asked of the service, and how each write ended. Changes nothing. */
import { createRoute, z } from '@hono/zod-openapi';
import { Failure } from '../../../kernel/errors.ts';
import { isId } from '../../../kernel/ids.ts';
import {
  FOLLOWS,
  findOperation,
  KINDS,
  listDecisions,
  listOperations,
  listSends,
  listTransitions,
  type State,
} from '../../../operations/operations.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  addressIn,
  anyJson,
  asJson,
  idIn,
  instantIn,
  instantOut,
  numberIn,
  page,
  pageOf,
  paging,
  placeIn,
  textIn,
  timeText,
  txHashIn,
} from '../../http/fields.ts';
import { json, refusals } from '../../http/problems.ts';
import { decision, shownDecision } from './decisions.ts';
import { operation, shownOperation } from './fields.ts';

const STATES = Object.keys(FOLLOWS) as [State, ...State[]];

const detail = operation
  .extend({
    transitions: z.array(
      z.object({
        from_state: z.string().nullable(),
        to_state: z.string(),
        at: instantOut,
        cause: z.string(),
        evidence: anyJson,
      }),
    ),
    sends: z
      .array(
        z.object({
          n: z.int(),
          started_at: instantOut,
          deadline_at: instantOut,
          after: z.string().nullable().openapi({ description: 'What proved the one before it' }),
        }),
      )
      .openapi({ description: 'Every time it was about to leave' }),
    decisions: z.array(decision).openapi({ description: 'What people proposed and approved' }),
    pre_image: anyJson.openapi({ description: 'What was seen before it was sent' }),
    evidence: anyJson.openapi({
      description: 'How the outcome is known, when it was not the answer of the service',
    }),
  })
  .openapi('OperationDetail');

const listRoute = createRoute({
  method: 'get',
  path: '/api/operations',
  tags: ['operations'],
  summary: 'Writes, the newest first',
  ...deps('read'),
  request: {
    query: z.strictObject({
      ...paging,
      state: z.enum(STATES).optional(),
      kind: z.enum(KINDS).optional(),
      addr: addressIn.optional(),
      contract_id: numberIn.optional(),
      token_id: numberIn.optional(),
      tx_log_no: numberIn.optional(),
      tx_hash: txHashIn.optional(),
      idempotency_key: textIn(1_000).optional(),
      reference: textIn(1_000).optional(),
      since: instantIn.optional(),
      until: instantIn.optional(),
    }),
  },
  responses: { 200: json('A page of writes', pageOf(operation)), ...refusals },
});

const findRoute = createRoute({
  method: 'get',
  path: '/api/operations/{id}',
  tags: ['operations'],
  summary: 'One write with its history and evidence',
  ...deps('read'),
  request: { params: z.object({ id: idIn('op') }) },
  responses: { 200: json('The write', detail), ...refusals },
});

export function addOperations(app: Api, deps: ApiDeps): void {
  const { db } = deps;
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor, ...q } = c.req.valid('query');
    const rows = await listOperations(db, {
      state: q.state,
      kind: q.kind,
      addr: q.addr,
      contractId: q.contract_id,
      tokenId: q.token_id,
      txLogNo: q.tx_log_no,
      txHash: q.tx_hash,
      idempotencyKey: q.idempotency_key,
      reference: q.reference,
      since: q.since,
      until: q.until,
      before: placeIn(cursor, (place) => isId('op', place)),
      limit: limit + 1,
    });
    return reply(
      c,
      page(rows, limit, shownOperation, (row) => row.id),
      200,
    );
  });
  app.openapi(guarded(deps, findRoute), async (c) => {
    const { id } = c.req.valid('param');
    const found = await findOperation(db, id);
    if (!found) throw new Failure('not_found');
    const [transitions, sends, decisions] = await Promise.all([
      listTransitions(db, id),
      listSends(db, id),
      listDecisions(db, id),
    ]);
    return reply(
      c,
      {
        ...shownOperation(found),
        transitions: transitions.map((t) => ({
          from_state: t.fromState,
          to_state: t.toState,
          cause: t.cause,
          at: timeText(t.at),
          evidence: asJson(t.evidence),
        })),
        sends: sends.map((send) => ({
          n: send.n,
          started_at: timeText(send.startedAt),
          deadline_at: timeText(send.deadlineAt),
          after: send.after,
        })),
        decisions: decisions.map(shownDecision),
        pre_image: asJson(found.preImage),
        evidence: asJson(found.evidence),
      },
      200,
    );
  });
}
