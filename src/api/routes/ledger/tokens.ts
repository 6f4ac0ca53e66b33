/** `/api/tokens`: tokens as they were last accepted, and what happened to each. Changes nothing. */
import { createRoute, z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { Failure } from '../../../kernel/errors.ts';
import { listMovements, type Movement } from '../../../ledger/ledger.ts';
import { findToken, listTokens, type Token } from '../../../reconciler/reconciler.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  digits,
  instantOut,
  isRowNumber,
  numberIn,
  page,
  pageOf,
  paging,
  placeIn,
  timeText,
} from '../../http/fields.ts';
import { json, refusals } from '../../http/problems.ts';

const token = z
  .object({
    contract_id: digits,
    token_id: digits,
    owner: z.string().nullable(),
    creator: z.string().nullable(),
    uri: z.string().nullable(),
    metadata: z.string().nullable(),
    extra_data: z.string().nullable(),
    status: z
      .int()
      .nullable()
      .openapi({ description: '0 pending, 1 complete, 2 progress, 3 fail' }),
    locked: z.int().nullable(),
    last_tx_hash: z.string().nullable(),
    created_text: z.string().nullable().openapi({ description: "The service's own text" }),
    owned_text: z.string().nullable(),
    observed_at: instantOut,
    presence: z.enum(['present', 'absent']),
    absent_since: instantOut.nullable(),
  })
  .openapi('Token');

const movement = z
  .object({
    seq: digits,
    kind: z.string(),
    from_addr: z.string().nullable(),
    to_addr: z.string().nullable(),
    tx_hash: z.string().nullable(),
    operation_id: z.string().nullable(),
    effective_at: instantOut,
    recorded_at: instantOut,
  })
  .openapi('TokenMovement');

const ofToken = z.object({ contract_id: numberIn, token_id: numberIn });
const paged = z.strictObject(paging);
const base = { method: 'get' as const, tags: ['tokens'], ...deps('read') };

const listRoute = createRoute({
  ...base,
  path: '/api/tokens/{contract_id}',
  summary: 'Tokens of a contract that were looked at, by number',
  request: { params: z.object({ contract_id: numberIn }), query: paged },
  responses: { 200: json('A page of tokens', pageOf(token)), ...refusals },
});
const findRoute = createRoute({
  ...base,
  path: '/api/tokens/{contract_id}/{token_id}',
  summary: 'One token',
  request: { params: ofToken },
  responses: { 200: json('The token', token), ...refusals },
});
const historyRoute = createRoute({
  ...base,
  path: '/api/tokens/{contract_id}/{token_id}/history',
  summary: 'What happened to it, as the books hold it, the newest first',
  request: { params: ofToken, query: paged },
  responses: { 200: json('A page of movements', pageOf(movement)), ...refusals },
});

export function addTokens(app: Api, deps: ApiDeps): void {
  const { db } = deps;
  const insistOnToken = async (contractId: bigint, tokenId: bigint) => {
    const found = await findToken(db, contractId, tokenId);
    if (!found) throw new Failure('not_found');
    return found;
  };
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const place = placeIn(cursor, (text) => /^\d{1,1000}$/.test(text));
    const after = place === undefined ? undefined : BigInt(place);
    const contractId = c.req.valid('param').contract_id;
    const rows = await listTokens(db, { contractId, after, limit: limit + 1 });
    return reply(
      c,
      page(rows, limit, shown, (row) => row.tokenId.toString()),
      200,
    );
  });
  app.openapi(guarded(deps, findRoute), async (c) => {
    const { contract_id, token_id } = c.req.valid('param');
    return reply(c, shown(await insistOnToken(contract_id, token_id)), 200);
  });
  app.openapi(guarded(deps, historyRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const { contract_id, token_id } = c.req.valid('param');
    const found = await insistOnToken(contract_id, token_id);
    const place = placeIn(cursor, isRowNumber);
    const before = place === undefined ? undefined : BigInt(place);
    const rows = await listMovements(db, found, { before, limit: limit + 1 });
    return reply(
      c,
      page(rows, limit, moved, (row) => row.id.toString()),
      200,
    );
  });
}

function shown(row: Token) {
  return {
    contract_id: decimalText(row.contractId),
    token_id: decimalText(row.tokenId),
    owner: row.owner,
    creator: row.creator,
    uri: row.uri,
    metadata: row.metadata,
    extra_data: row.extraData,
    status: row.status,
    locked: row.locked,
    last_tx_hash: row.lastTxHash,
    created_text: row.createdText,
    owned_text: row.ownedText,
    observed_at: timeText(row.observedAt),
    presence: row.presence,
    absent_since: timeText(row.absentSince),
  };
}

function moved(row: Movement) {
  return {
    seq: decimalText(row.id),
    kind: row.kind,
    from_addr: row.fromAddr,
    to_addr: row.toAddr,
    tx_hash: row.txHash,
    operation_id: row.operationId,
    effective_at: timeText(row.effectiveAt),
    recorded_at: timeText(row.recordedAt),
  };
}
