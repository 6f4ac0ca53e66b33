/** `/api/keys`: who may call. A key is shown once, where it is made. */
import { createRoute, z } from '@hono/zod-openapi';
import { isId } from '../../../kernel/ids.ts';
import { type KeyLimits, type Keys, keyLimitsSchema, SCOPES } from '../../../keys/keys.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  idIn,
  instantOut,
  page,
  pageOf,
  paging,
  placeIn,
  textIn,
  timeText,
} from '../../http/fields.ts';
import { bodyRefusals, json, jsonBody, refusals } from '../../http/problems.ts';

type Key = Awaited<ReturnType<Keys['list']>>[number];

const key = z
  .object({
    id: z.string(),
    name: z.string(),
    owner: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    limits: keyLimitsSchema.nullable().openapi({
      description: 'What it may write at most; null: anything that its scope allows',
    }),
    created_at: instantOut,
    revoked_at: instantOut.nullable(),
  })
  .openapi('Key');

const made = key.extend({ key: z.string().openapi({ description: 'thk_…, shown once' }) });

const wish = z.strictObject({
  name: textIn(200),
  owner: textIn(200).openapi({
    description: 'The person or team: idempotency keys and approvals belong to owners',
  }),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .refine((scopes) => new Set(scopes).size === scopes.length, 'names a scope twice'),
  limits: keyLimitsSchema.optional(),
});

const base = { tags: ['keys'], ...deps('admin') };

const listRoute = createRoute({
  ...base,
  method: 'get',
  path: '/api/keys',
  summary: 'Keys, the oldest first',
  request: { query: z.strictObject(paging) },
  responses: { 200: json('A page of keys', pageOf(key)), ...refusals },
});
const makeRoute = createRoute({
  ...base,
  method: 'post',
  path: '/api/keys',
  summary: 'Makes a key',
  request: { body: jsonBody(wish) },
  responses: { 201: json('The key, shown this once', made), ...bodyRefusals },
});
const revokeRoute = createRoute({
  ...base,
  method: 'delete',
  path: '/api/keys/{id}',
  summary: 'Revokes a key; every daemon stops believing it within a second',
  request: { params: z.object({ id: idIn('key') }) },
  responses: { 204: { description: 'It is revoked' }, ...refusals },
});

export function addKeys(app: Api, deps: ApiDeps): void {
  const { keys } = deps;
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const after = placeIn(cursor, (place) => isId('key', place)) ?? '';
    const rows = (await keys.list()).filter(({ id }) => id > after).slice(0, limit + 1);
    return reply(
      c,
      page(rows, limit, shown, ({ id }) => id),
      200,
    );
  });
  app.openapi(guarded(deps, makeRoute), async (c) => {
    const { key, secret } = await keys.create(c.req.valid('json'));
    return reply(c, { ...shown(key), key: secret }, 201);
  });
  app.openapi(guarded(deps, revokeRoute), async (c) => {
    await keys.revoke(c.req.valid('param').id);
    return c.body(null, 204);
  });
}

function shown(row: Key) {
  return {
    id: row.id,
    name: row.name,
    owner: row.owner,
    scopes: SCOPES.filter((scope) => row.scopes.includes(scope)),
    limits: row.limits as KeyLimits | null,
    created_at: timeText(row.createdAt),
    revoked_at: timeText(row.revokedAt),
  };
}
