/** `/api/drifts`: drifts and their history; read-only. */
import { z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { Failure } from '../../../kernel/errors.ts';
import {
  type Drift,
  findDrift,
  listDriftActions,
  listDrifts,
} from '../../../reconciler/reconciler.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  addressInput,
  anyJson,
  decimal,
  idInput,
  instant,
  instantText,
} from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const STATES = [
  'open',
  'proposed',
  'booked',
  'linked',
  'dismissed',
  'returned',
  'explained',
] as const;

const drift = z
  .object({
    id: z.string(),
    addr: z.string(),
    amount: decimal.nullable().openapi({
      description: 'Positive if the wallet holds more than is explained; null until it is exact',
    }),
    amount_min: decimal.openapi({ description: 'The least amount that the observations allow' }),
    amount_max: decimal.openapi({ description: 'The greatest one' }),
    state: z.string(),
    suspected_at: instant,
    opened_at: instant,
    closed_at: instant.nullable(),
    window_from: instant.nullable().openapi({ description: 'The change happened after this time' }),
    window_to: instant,
    evidence: anyJson,
    assignee: z.string().nullable(),
    proposal: anyJson,
    approved_by: z.string().nullable(),
  })
  .openapi('Drift');

const detail = drift
  .extend({
    actions: z.array(
      z.object({ action: z.string(), at: instant, by: z.string(), detail: anyJson }),
    ),
  })
  .openapi('DriftDetail');

const base = { tag: 'drifts', scope: 'read' as const };

export function addDrifts(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.list({
    ...base,
    path: '/api/drifts',
    summary: 'List drifts, newest first',
    request: z.object({
      query: z.strictObject({
        ...paging,
        state: z.enum(STATES).optional(),
        addr: addressInput.optional(),
      }),
    }),
    item: drift,
    parsePosition: idPosition('drf'),
    list: ({ query: { state, addr } }, { after: before, limit }) =>
      listDrifts(db, { state, addr, before, limit }),
    output: driftOutput,
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/drifts/{id}',
    summary: 'Read a drift with its history',
    request: z.object({ params: z.object({ id: idInput('drf') }) }),
    response: 'The drift',
    schema: detail,
    async handle({ params: { id } }) {
      const found = await findDrift(db, id);
      if (!found) throw new Failure('not_found');
      const actions = await listDriftActions(db, id);
      return {
        ...driftOutput(found),
        actions: actions.map((action) => ({ ...action, at: instantText(action.at) })),
      };
    },
  });
}

function driftOutput(row: Drift) {
  return {
    id: row.id,
    addr: row.addr,
    amount: row.amount === null ? null : decimalText(row.amount),
    amount_min: decimalText(row.min),
    amount_max: decimalText(row.max),
    state: row.state,
    suspected_at: instantText(row.suspectedAt),
    opened_at: instantText(row.openedAt),
    closed_at: instantText(row.closedAt),
    window_from: instantText(row.windowFrom),
    window_to: instantText(row.windowTo),
    evidence: row.evidence,
    assignee: row.assignee,
    proposal: row.proposal,
    approved_by: row.approvedBy,
  };
}
