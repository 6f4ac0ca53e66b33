/** `/api/tokens`: tokens as last observed, and their movements in the ledger; read-only. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../../kernel/errors.ts';
import { listMovements } from '../../../ledger/ledger.ts';
import { findToken, listTokens } from '../../../reconciler/reconciler.ts';
import { token, tokenMovement } from '../../../resources/ledger/token.ts';
import type { ApiDeps } from '../../deps.ts';
import { numberPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { decimalInput } from '../../http/schemas.ts';

const params = z.object({ contract_id: decimalInput, token_id: decimalInput });
const query = z.strictObject(paging);
const base = { tag: 'tokens', scope: 'read' } as const;

export function addTokens(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  const getToken = async (token: z.output<typeof params>) => {
    const found = await findToken(db, token.contract_id, token.token_id);
    if (!found) throw new Failure('not_found');
    return found;
  };
  router.listOf({
    ...base,
    path: '/api/tokens/{contract_id}',
    summary: 'List the observed tokens of a contract, by token id',
    request: z.object({ params: z.object({ contract_id: decimalInput }), query }),
    items: token,
    parsePosition: (text) => (/^\d{1,1000}$/.test(text) ? BigInt(text) : undefined),
    list: ({ params: { contract_id: contractId } }, page) =>
      listTokens(db, { contractId, ...page }),
    position: ({ tokenId }) => tokenId,
  });
  router.answer({
    ...base,
    method: 'get',
    path: '/api/tokens/{contract_id}/{token_id}',
    summary: 'Read a token',
    request: z.object({ params }),
    response: 'The token',
    answer: token,
    handle: ({ params }) => getToken(params),
  });
  router.listOf({
    ...base,
    path: '/api/tokens/{contract_id}/{token_id}/history',
    summary: 'List the movements of a token in the ledger, newest first',
    request: z.object({ params, query }),
    items: tokenMovement,
    parsePosition: numberPosition,
    list: async ({ params }, { after: before, limit }) =>
      listMovements(db, await getToken(params), { before, limit }),
    position: ({ seq }) => seq,
  });
}
