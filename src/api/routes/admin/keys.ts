/** `/api/keys`: API keys. The secret of a key is part of one response only. */
import { z } from '@hono/zod-openapi';
import { type KeyLimits, type Keys, keyLimitsSchema, SCOPES } from '../../../keys/keys.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput, instant, instantInput, instantText, textInput } from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

type Key = Awaited<ReturnType<Keys['list']>>[number];

const key = z
  .object({
    id: z.string(),
    name: z.string(),
    owner: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    limits: keyLimitsSchema.nullable().openapi({ description: 'Limits of its writes, if any' }),
    created_at: instant,
    expires_at: instant.nullable(),
    revoked_at: instant.nullable(),
    last_used_at: instant.nullable().openapi({ description: 'To within a minute' }),
  })
  .openapi('Key');

const created = key.extend({
  key: z.string().openapi({ description: 'thk_…; only in this response' }),
});

const keyInput = z.strictObject({
  name: textInput(200),
  owner: textInput(200).openapi({
    description: 'The person or team that idempotency keys and approvals belong to',
  }),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .refine((scopes) => new Set(scopes).size === scopes.length, 'must not repeat a scope'),
  limits: keyLimitsSchema.optional(),
  expires_at: instantInput.optional(),
});

const base = { tag: 'keys', scope: 'admin' as const };

export function addKeys(router: Router, { keys }: Pick<ApiDeps, 'keys'>): void {
  router.list({
    ...base,
    path: '/api/keys',
    summary: 'List API keys, oldest first',
    request: z.object({ query: z.strictObject(paging) }),
    item: key,
    parsePosition: idPosition('key'),
    list: (_, { after = '', limit }) => keys.list({ after, limit }),
    output: keyOutput,
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    method: 'post',
    path: '/api/keys',
    summary: 'Create an API key',
    request: z.object({ body: keyInput }),
    status: 201,
    response: 'The key with its secret',
    schema: created,
    async handle({ body }) {
      const { expires_at: expiresAt, ...rest } = body;
      const { key, secret } = await keys.create({ ...rest, expiresAt });
      return { ...keyOutput(key), key: secret };
    },
  });
  router.add({
    ...base,
    method: 'delete',
    path: '/api/keys/{id}',
    summary: 'Revoke an API key',
    description: 'Every daemon refuses the key within one second.',
    request: z.object({ params: z.object({ id: idInput('key') }) }),
    response: 'The key is revoked',
    handle: ({ params }) => keys.revoke(params.id),
  });
}

function keyOutput(row: Key) {
  return {
    id: row.id,
    name: row.name,
    owner: row.owner,
    scopes: SCOPES.filter((scope) => row.scopes.includes(scope)),
    limits: row.limits as KeyLimits | null,
    created_at: instantText(row.createdAt),
    expires_at: instantText(row.expiresAt),
    revoked_at: instantText(row.revokedAt),
    last_used_at: instantText(row.lastUsedAt),
  };
}
