/** `/api/watches`: what is kept under observation because somebody asked for it. */
import { createRoute, z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { isId } from '../../../kernel/ids.ts';
import { listWatches, type TargetRef, type Watch } from '../../../observer/observer.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  addressIn,
  digits,
  idIn,
  instantOut,
  numberIn,
  page,
  pageOf,
  paging,
  placeIn,
  timeText,
} from '../../http/fields.ts';
import { bodyRefusals, json, jsonBody, refusals } from '../../http/problems.ts';

const WISHES_MAX = 1_000;

const watch = z
  .object({
    id: z.string(),
    kind: z.string(),
    addr: z.string().nullable(),
    contract_id: digits.nullable(),
    token_id: digits.nullable(),
    created_at: instantOut,
    created_by: z.string(),
  })
  .openapi('Watch');

const observationAge = {
  observation_age_max_ms: z.int().openapi({
    description: 'The longest time between two polls of a steady target at the present budget',
  }),
};

const wish = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('wallet'), addr: addressIn }),
  z.strictObject({ kind: z.literal('contract'), contract_id: numberIn }),
  z.strictObject({
    kind: z.literal('token'),
    contract_id: numberIn,
    token_id: numberIn,
  }),
]);
const wishes = z.union([wish, z.array(wish).min(1).max(WISHES_MAX)]);

const base = { tags: ['watches'] };

const listRoute = createRoute({
  ...base,
  ...deps('read'),
  method: 'get',
  path: '/api/watches',
  summary: 'Watches, the oldest first',
  request: { query: z.strictObject(paging) },
  responses: { 200: json('A page of watches', pageOf(watch).extend(observationAge)), ...refusals },
});
const addRoute = createRoute({
  ...base,
  ...deps('manage'),
  method: 'post',
  path: '/api/watches',
  summary: 'Watches a target, or an array of them; watching again changes nothing',
  request: { body: jsonBody(wishes) },
  responses: {
    201: json(
      'The watch; for an array all of them',
      z.union([
        watch.extend(observationAge),
        z.object({ data: z.array(watch), ...observationAge }),
      ]),
    ),
    ...bodyRefusals,
  },
});
const deleteRoute = createRoute({
  ...base,
  ...deps('manage'),
  method: 'delete',
  path: '/api/watches/{id}',
  summary: 'Ends a watch; its target is still polled while operations touch it',
  request: { params: z.object({ id: idIn('wat') }) },
  responses: { 204: { description: 'It is ended' }, ...refusals },
});

export function addWatches(app: Api, deps: ApiDeps): void {
  const { db, observer } = deps;
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const after = placeIn(cursor, (place) => isId('wat', place));
    const rows = await listWatches(db, { after, limit: limit + 1 });
    const data = page(rows, limit, shown, ({ id }) => id);
    return reply(c, { ...data, observation_age_max_ms: await observationAgeMs(deps) }, 200);
  });
  app.openapi(guarded(deps, addRoute), async (c) => {
    const body = c.req.valid('json');
    const given = Array.isArray(body) ? body : [body];
    const watches = await observer.watch(given.map(toWish), c.get('caller').owner);
    const data = watches.map(shown);
    const age = { observation_age_max_ms: await observationAgeMs(deps) };
    const [only] = data;
    return reply(c, only && !Array.isArray(body) ? { ...only, ...age } : { data, ...age }, 201);
  });
  app.openapi(guarded(deps, deleteRoute), async (c) => {
    await observer.unwatch(c.req.valid('param').id);
    return c.body(null, 204);
  });
}

async function observationAgeMs({ observer }: ApiDeps): Promise<number> {
  return Math.round(await observer.observationAgeMaxMs());
}

function toWish(wished: z.output<typeof wish>): TargetRef {
  switch (wished.kind) {
    case 'wallet':
      return { kind: 'wallet', addr: wished.addr };
    case 'contract':
      return { kind: 'contract', contractId: wished.contract_id };
    case 'token': {
      const { contract_id: contractId, token_id: tokenId } = wished;
      return { kind: 'token', contractId, tokenId };
    }
  }
}

function shown(row: Watch) {
  return {
    id: row.id,
    kind: row.kind,
    addr: row.addr,
    contract_id: decimalText(row.contractId),
    token_id: decimalText(row.tokenId),
    created_at: timeText(row.createdAt),
    created_by: row.createdBy,
  };
}
