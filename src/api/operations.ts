/** `/api/operations`: what was asked of the service, and how each write ended. Changes nothing. */
import { createRoute, z } from '@hono/zod-openapi';
import {
  FOLLOWS,
  findOperation,
  KINDS,
  listOperations,
  listTransitions,
  type Operation,
  operationFields,
  type State,
} from '../journal/journal.ts';
import { Failure } from '../kernel/errors.ts';
import { isId } from '../kernel/ids.ts';
import { EVENTS } from '../outbox/events.ts';
import { guarded, needs, reply } from './access.ts';
import type { Api, ApiDoors } from './doors.ts';
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
} from './fields.ts';
import { json, refusals } from './problems.ts';

const STATES = Object.keys(FOLLOWS) as [State, ...State[]];

const operation = EVENTS['operation.accepted'].data
  .omit({ subject_seq: true })
  .extend({
    id: z.string(),
    source: z.enum(['gateway', 'report']),
    token_uri: z.string().nullable(),
    extra_data: z.string().nullable(),
    ambiguous: z.boolean().openapi({
      description: 'Sent beside another open write that it cannot be told apart from',
    }),
    recorded_at: instantOut,
    sent_at: instantOut.nullable(),
    answered_at: instantOut.nullable(),
    settled_at: instantOut.nullable(),
    effective_at: instantOut.nullable(),
    effective_basis: z.string().nullable(),
  })
  .openapi('Operation');

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
  ...needs('read'),
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
  ...needs('read'),
  request: { params: z.object({ id: idIn('op') }) },
  responses: { 200: json('The write', detail), ...refusals },
});

export function addOperations(app: Api, doors: ApiDoors): void {
  const { db } = doors;
  app.openapi(guarded(doors, listRoute), async (c) => {
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
      page(rows, limit, shown, (row) => row.id),
      200,
    );
  });
  app.openapi(guarded(doors, findRoute), async (c) => {
    const { id } = c.req.valid('param');
    const found = await findOperation(db, id);
    if (!found) throw new Failure('not_found');
    const transitions = await listTransitions(db, id);
    return reply(
      c,
      {
        ...shown(found),
        transitions: transitions.map((t) => ({
          ...t,
          at: timeText(t.at),
          evidence: asJson(t.evidence),
        })),
        evidence: asJson(found.evidence),
      },
      200,
    );
  });
}

function shown(operation: Operation) {
  return {
    id: operation.id,
    ...operationFields(operation),
    source: operation.source,
    token_uri: operation.tokenUri,
    extra_data: operation.extraData,
    ambiguous: operation.ambiguous,
    recorded_at: timeText(operation.recordedAt),
    sent_at: timeText(operation.sentAt),
    answered_at: timeText(operation.answeredAt),
    settled_at: timeText(operation.settledAt),
    effective_at: timeText(operation.effectiveAt),
    effective_basis: operation.effectiveBasis,
  };
}
