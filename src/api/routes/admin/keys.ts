/**
 * `/api/keys` and `/api/audit`: who may do what, and who did. The secret of a key is part of one
 * response only.
 */
import { z } from '@hono/zod-openapi';
import { keyLimitsSchema } from '../../../keys/keys.ts';
import { auditEntry } from '../../../resources/admin/audit-entry.ts';
import { createdKey, key, SCOPES } from '../../../resources/admin/key.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, numberPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { idInput, instantInput, textInput } from '../../http/schemas.ts';

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

const base = { tag: 'keys', scope: 'admin' } as const;

export function addKeys(router: Router, { keys, audit }: Pick<ApiDeps, 'keys' | 'audit'>): void {
  router.listOf({
    ...base,
    path: '/api/keys',
    summary: 'List API keys, oldest first',
    request: z.object({ query: z.strictObject(paging) }),
    items: key,
    parsePosition: idPosition('key'),
    list: (_, { after = '', limit }) => keys.list({ after, limit }),
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    method: 'post',
    path: '/api/keys',
    summary: 'Create an API key',
    request: z.object({ body: keyInput }),
    status: 201,
    response: 'The key with its secret',
    answer: createdKey,
    async handle({ body }) {
      const { expires_at: expiresAt, ...rest } = body;
      const { key, secret } = await keys.create({ ...rest, expiresAt });
      return { ...key, key: secret };
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
  router.listOf({
    ...base,
    path: '/api/audit',
    summary: 'List what was changed through the API, newest first',
    request: z.object({ query: z.strictObject(paging) }),
    items: auditEntry,
    parsePosition: numberPosition,
    list: (_, { after: before, limit }) => audit.list({ before, limit }),
    position: ({ n }) => n,
  });
}
