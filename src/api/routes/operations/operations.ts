/** `/api/operations`: operations with their transitions, sends and evidence; read-only. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../../kernel/errors.ts';
import {
  FOLLOWS,
  findOperation,
  imageOf,
  KINDS,
  listDecisions,
  listOperations,
  listSends,
  listTransitions,
  type Send,
  type State,
  waitsForOf,
} from '../../../operations/operations.ts';
import { decision } from '../../../resources/decision.ts';
import { shower } from '../../../resources/show.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  addressInput,
  anyJson,
  decimalInput,
  idInput,
  instant,
  instantInput,
  instantText,
  textInput,
  txHashInput,
} from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { schemaOf } from '../../http/schemas.ts';
import { decisionRow } from './decisions.ts';
import { operation, operationOutput } from './fields.ts';

const showDecision = shower(decision);
const STATES = Object.keys(FOLLOWS) as [State, ...State[]];

const detail = operation
  .extend({
    transitions: z.array(
      z.object({
        from_state: z.string().nullable(),
        to_state: z.string(),
        at: instant,
        cause: z.string(),
        evidence: anyJson,
      }),
    ),
    sends: z
      .array(
        z.object({
          n: z.int(),
          started_at: instant,
          deadline_at: instant,
          after: z
            .string()
            .nullable()
            .openapi({ description: 'Why the previous send allowed another one' }),
        }),
      )
      .openapi({ description: 'Every attempt to deliver it to the service' }),
    decisions: z.array(schemaOf(decision)),
    waits_for: z
      .object({ drifts: z.array(z.string()), operations: z.array(z.string()) })
      .nullable()
      .openapi({
        description:
          'Why an executed operation does not settle although its balance is explained: these ' +
          'open drifts and unknown operations could hold the same difference',
      }),
    pre_image: anyJson.openapi({
      description: 'Last observation of its wallets or token before it was sent',
    }),
    evidence: anyJson.openapi({
      description: 'Why the outcome is known, if not by the answer of the service',
    }),
  })
  .openapi('OperationDetail');

const base = { tag: 'operations', scope: 'read' as const };

const filters = z.strictObject({
  ...paging,
  state: z.enum(STATES).optional(),
  kind: z.enum(KINDS).optional(),
  addr: addressInput.optional(),
  contract_id: decimalInput.optional(),
  token_id: decimalInput.optional(),
  tx_log_no: decimalInput.optional(),
  tx_hash: txHashInput.optional(),
  idempotency_key: textInput(1_000).optional(),
  reference: textInput(1_000).optional(),
  open: z
    .literal('true')
    .optional()
    .openapi({ description: 'Only those whose state is not final, as `open` in the status' }),
  proposed: z.literal('true').optional().openapi({
    description: 'Only operations whose proposed outcome waits for another owner',
  }),
  since: instantInput.optional(),
  until: instantInput.optional(),
});

export function addOperations(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.list({
    ...base,
    path: '/api/operations',
    summary: 'List operations, newest first',
    request: z.object({ query: filters }),
    item: operation,
    parsePosition: idPosition('op'),
    list: ({ query }, { after: before, limit }) =>
      listOperations(db, {
        state: query.state,
        kind: query.kind,
        addr: query.addr,
        contractId: query.contract_id,
        tokenId: query.token_id,
        txLogNo: query.tx_log_no,
        txHash: query.tx_hash,
        idempotencyKey: query.idempotency_key,
        reference: query.reference,
        open: query.open === 'true',
        proposed: query.proposed === 'true',
        since: query.since,
        until: query.until,
        before,
        limit,
      }),
    output: operationOutput,
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/operations/{id}',
    summary: 'Read an operation with its history and evidence',
    request: z.object({ params: z.object({ id: idInput('op') }) }),
    response: 'The operation',
    schema: detail,
    async handle({ params: { id } }) {
      const found = await findOperation(db, id);
      if (!found) throw new Failure('not_found');
      const [transitions, sends, decisions] = await Promise.all([
        listTransitions(db, id),
        listSends(db, id),
        listDecisions(db, id),
      ]);
      return {
        ...operationOutput(found),
        transitions: transitions.map(transitionOutput),
        sends: sends.map(sendOutput),
        decisions: decisions.map((one) => showDecision(decisionRow(one))),
        waits_for: waitsForOf(found, transitions),
        pre_image: imageOf(found.preImage),
        evidence: found.evidence,
      };
    },
  });
}

function transitionOutput(row: Awaited<ReturnType<typeof listTransitions>>[number]) {
  return {
    from_state: row.fromState,
    to_state: row.toState,
    cause: row.cause,
    at: instantText(row.at),
    evidence: row.evidence,
  };
}

function sendOutput(row: Send) {
  return {
    n: row.n,
    started_at: instantText(row.startedAt),
    deadline_at: instantText(row.deadlineAt),
    after: row.after,
  };
}
