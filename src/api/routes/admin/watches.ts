/** `/api/watches`: wallets, contracts and tokens that are polled on request. */
import { z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { listWatches, type TargetRef, type Watch } from '../../../observer/observer.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  addressInput,
  decimal,
  decimalInput,
  idInput,
  instant,
  instantText,
} from '../../http/fields.ts';
import { idPosition, page, pageOf, paging, readCursor } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const WATCHES_MAX = 1_000;

const watch = z
  .object({
    id: z.string(),
    kind: z.string(),
    addr: z.string().nullable(),
    contract_id: decimal.nullable(),
    token_id: decimal.nullable(),
    created_at: instant,
    created_by: z.string(),
  })
  .openapi('Watch');

const observationAge = {
  observation_age_max_ms: z.int().openapi({
    description: 'The longest time between two polls of a steady target at the present budget',
  }),
};

const watchInput = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('wallet'), addr: addressInput }),
  z.strictObject({ kind: z.literal('contract'), contract_id: decimalInput }),
  z.strictObject({
    kind: z.literal('token'),
    contract_id: decimalInput,
    token_id: decimalInput,
  }),
]);

const base = { tag: 'watches', path: '/api/watches' };

export function addWatches(router: Router, deps: Pick<ApiDeps, 'db' | 'observer'>): void {
  const { db, observer } = deps;
  const readAge = async () => ({
    observation_age_max_ms: Math.round((await observer.pricing()).bounds.maxMs),
  });
  router.add({
    ...base,
    scope: 'read',
    method: 'get',
    summary: 'List watches, oldest first',
    request: z.object({ query: z.strictObject(paging) }),
    response: 'A page of watches',
    schema: pageOf(watch).extend(observationAge),
    async handle({ query: { limit, cursor } }) {
      const after = readCursor(cursor, idPosition('wat'));
      const rows = await listWatches(db, { after, limit: limit + 1 });
      return { ...page(rows, limit, watchOutput, ({ id }) => id), ...(await readAge()) };
    },
  });
  router.add({
    ...base,
    scope: 'manage',
    method: 'post',
    summary: 'Watch a wallet, contract or token, or an array of them',
    description: 'A repeated request for the same target changes nothing.',
    request: z.object({
      body: z.union([watchInput, z.array(watchInput).min(1).max(WATCHES_MAX)]),
    }),
    status: 201,
    response: 'The watch, or for an array all watches',
    schema: z.union([
      watch.extend(observationAge),
      z.object({ data: z.array(watch), ...observationAge }),
    ]),
    async handle({ body }, { owner }) {
      const inputs = Array.isArray(body) ? body : [body];
      const data = (await observer.watch(inputs.map(toTarget), owner)).map(watchOutput);
      const age = await readAge();
      const [only] = data;
      return only && !Array.isArray(body) ? { ...only, ...age } : { data, ...age };
    },
  });
  router.add({
    ...base,
    scope: 'manage',
    method: 'delete',
    path: '/api/watches/{id}',
    summary: 'Delete a watch',
    description: 'Its target is still polled while an operation touches it.',
    request: z.object({ params: z.object({ id: idInput('wat') }) }),
    response: 'The watch is deleted',
    handle: ({ params }) => observer.unwatch(params.id),
  });
}

function toTarget(input: z.output<typeof watchInput>): TargetRef {
  switch (input.kind) {
    case 'wallet':
      return { kind: 'wallet', addr: input.addr };
    case 'contract':
      return { kind: 'contract', contractId: input.contract_id };
    case 'token':
      return { kind: 'token', contractId: input.contract_id, tokenId: input.token_id };
  }
}

function watchOutput(row: Watch) {
  return {
    id: row.id,
    kind: row.kind,
    addr: row.addr,
    contract_id: decimalText(row.contractId),
    token_id: decimalText(row.tokenId),
    created_at: instantText(row.createdAt),
    created_by: row.createdBy,
  };
}
