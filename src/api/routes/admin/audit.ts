/** `/api/audit`: who changed what, and when. */
import { z } from '@hono/zod-openapi';
import type { ApiDeps } from '../../deps.ts';
import { instant, instantText } from '../../http/fields.ts';
import { numberPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const entry = z
  .object({
    n: z.string().openapi({ description: 'Entries are numbered in their order, with gaps' }),
    at: instant,
    owner: z.string(),
    key_id: z.string(),
    action: z.string().openapi({ description: 'Method and path, such as POST /api/freeze' }),
    detail: z.record(z.string(), z.unknown()).openapi({
      description: 'What it names and asks for, without addresses, headers and secrets',
    }),
    result: z.string().nullable().openapi({
      description: '`done`, the code of a refusal, or null if its daemon ended meanwhile',
    }),
  })
  .openapi('AuditEntry');

export function addAudit(router: Router, { audit }: Pick<ApiDeps, 'audit'>): void {
  router.list({
    tag: 'keys',
    scope: 'admin',
    path: '/api/audit',
    summary: 'List what was changed through the API, newest first',
    request: z.object({ query: z.strictObject(paging) }),
    item: entry,
    parsePosition: numberPosition,
    list: (_, { after: before, limit }) => audit.list({ before, limit }),
    output: ({ id, at, owner, keyId, action, detail, result }) => ({
      n: id.toString(),
      at: instantText(at),
      owner,
      key_id: keyId,
      action,
      detail: detail as Record<string, unknown>,
      result,
    }),
    position: ({ id }) => id,
  });
}
