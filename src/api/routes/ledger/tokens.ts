/** `/api/tokens`: tokens as last observed, and their movements in the ledger; read-only. */
import { z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { Failure } from '../../../kernel/errors.ts';
import { listMovements, type Movement } from '../../../ledger/ledger.ts';
import { findToken, listTokens, type Token } from '../../../reconciler/reconciler.ts';
import type { ApiDeps } from '../../deps.ts';
import { decimal, decimalInput, instant, instantText } from '../../http/fields.ts';
import { numberPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const token = z
  .object({
    contract_id: decimal,
    token_id: decimal,
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
    created_text: z.string().nullable().openapi({ description: 'Text of the service' }),
    owned_text: z.string().nullable(),
    observed_at: instant,
    presence: z.enum(['present', 'absent']),
    absent_since: instant.nullable(),
  })
  .openapi('Token');

const movement = z
  .object({
    seq: decimal,
    kind: z.string(),
    from_addr: z.string().nullable(),
    to_addr: z.string().nullable(),
    tx_hash: z.string().nullable(),
    operation_id: z.string().nullable().openapi({
      description: 'Null for an opening, for what was made elsewhere, and for their reversals',
    }),
    reverses: decimal.nullable().openapi({ description: 'Of a reversal: what it takes back' }),
    not_before: instant
      .nullable()
      .openapi({ description: 'Start of the observation before the one that showed it' }),
    effective_at: instant,
    effective_basis: z.string(),
    recorded_at: instant,
  })
  .openapi('TokenMovement');

const params = z.object({ contract_id: decimalInput, token_id: decimalInput });
const query = z.strictObject(paging);
const base = { tag: 'tokens', scope: 'read' as const };

export function addTokens(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  const getToken = async (token: z.output<typeof params>) => {
    const found = await findToken(db, token.contract_id, token.token_id);
    if (!found) throw new Failure('not_found');
    return found;
  };
  router.list({
    ...base,
    path: '/api/tokens/{contract_id}',
    summary: 'List the observed tokens of a contract, by token id',
    request: z.object({ params: z.object({ contract_id: decimalInput }), query }),
    item: token,
    parsePosition: (text) => (/^\d{1,1000}$/.test(text) ? BigInt(text) : undefined),
    list: ({ params: { contract_id: contractId } }, page) =>
      listTokens(db, { contractId, ...page }),
    output: tokenOutput,
    position: ({ tokenId }) => tokenId,
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/tokens/{contract_id}/{token_id}',
    summary: 'Read a token',
    request: z.object({ params }),
    response: 'The token',
    schema: token,
    handle: async ({ params }) => tokenOutput(await getToken(params)),
  });
  router.list({
    ...base,
    path: '/api/tokens/{contract_id}/{token_id}/history',
    summary: 'List the movements of a token in the ledger, newest first',
    request: z.object({ params, query }),
    item: movement,
    parsePosition: numberPosition,
    list: async ({ params }, { after: before, limit }) =>
      listMovements(db, await getToken(params), { before, limit }),
    output: movementOutput,
    position: ({ id }) => id,
  });
}

function tokenOutput(row: Token) {
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
    observed_at: instantText(row.observedAt),
    presence: row.presence,
    absent_since: instantText(row.absentSince),
  };
}

function movementOutput(row: Movement) {
  return {
    seq: decimalText(row.id),
    kind: row.kind,
    from_addr: row.fromAddr,
    to_addr: row.toAddr,
    tx_hash: row.txHash,
    operation_id: row.operationId,
    reverses: decimalText(row.reverses),
    not_before: instantText(row.notBefore),
    effective_at: instantText(row.effectiveAt),
    effective_basis: row.effectiveBasis,
    recorded_at: instantText(row.recordedAt),
  };
}
