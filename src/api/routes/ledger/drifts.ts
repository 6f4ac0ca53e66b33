/** `/api/drifts`: differences that nothing of ours explains, and their history. Changes nothing. */
import { createRoute, z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { Failure } from '../../../kernel/errors.ts';
import { isId } from '../../../kernel/ids.ts';
import {
  type Drift,
  findDrift,
  listDriftActions,
  listDrifts,
} from '../../../reconciler/reconciler.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  addressIn,
  anyJson,
  asJson,
  digits,
  idIn,
  instantOut,
  page,
  pageOf,
  paging,
  placeIn,
  timeText,
} from '../../http/fields.ts';
import { json, refusals } from '../../http/problems.ts';

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
    amount: digits.openapi({ description: 'Positive when the wallet holds more than explained' }),
    state: z.string(),
    suspected_at: instantOut,
    opened_at: instantOut,
    closed_at: instantOut.nullable(),
    window_from: instantOut.nullable().openapi({ description: 'The change lies after this' }),
    window_to: instantOut,
    evidence: anyJson,
    assignee: z.string().nullable(),
    proposal: anyJson,
    approved_by: z.string().nullable(),
  })
  .openapi('Drift');

const detail = drift
  .extend({
    actions: z.array(
      z.object({ action: z.string(), at: instantOut, by: z.string(), detail: anyJson }),
    ),
  })
  .openapi('DriftDetail');

const base = { method: 'get' as const, tags: ['drifts'], ...deps('read') };

const listRoute = createRoute({
  ...base,
  path: '/api/drifts',
  summary: 'Drifts, the newest first',
  request: {
    query: z.strictObject({
      ...paging,
      state: z.enum(STATES).optional(),
      addr: addressIn.optional(),
    }),
  },
  responses: { 200: json('A page of drifts', pageOf(drift)), ...refusals },
});
const findRoute = createRoute({
  ...base,
  path: '/api/drifts/{id}',
  summary: 'One drift with its history',
  request: { params: z.object({ id: idIn('drf') }) },
  responses: { 200: json('The drift', detail), ...refusals },
});

export function addDrifts(app: Api, deps: ApiDeps): void {
  const { db } = deps;
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor, ...filter } = c.req.valid('query');
    const before = placeIn(cursor, (place) => isId('drf', place));
    const rows = await listDrifts(db, { ...filter, before, limit: limit + 1 });
    return reply(
      c,
      page(rows, limit, shown, ({ id }) => id),
      200,
    );
  });
  app.openapi(guarded(deps, findRoute), async (c) => {
    const { id } = c.req.valid('param');
    const found = await findDrift(db, id);
    if (!found) throw new Failure('not_found');
    const actions = (await listDriftActions(db, id)).map((action) => ({
      ...action,
      at: timeText(action.at),
      detail: asJson(action.detail),
    }));
    return reply(c, { ...shown(found), actions }, 200);
  });
}

function shown(row: Drift) {
  return {
    id: row.id,
    addr: row.addr,
    amount: decimalText(row.amount),
    state: row.state,
    suspected_at: timeText(row.suspectedAt),
    opened_at: timeText(row.openedAt),
    closed_at: timeText(row.closedAt),
    window_from: timeText(row.windowFrom),
    window_to: timeText(row.windowTo),
    evidence: asJson(row.evidence),
    assignee: row.assignee,
    proposal: asJson(row.proposal),
    approved_by: row.approvedBy,
  };
}
