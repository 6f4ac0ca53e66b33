/** `/api/audit`: who changed what, and when. */
import { z } from '@hono/zod-openapi';
import { auditEntry } from '../../../resources/audit-entry.ts';
import type { ApiDeps } from '../../deps.ts';
import { numberPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

export function addAudit(router: Router, { audit }: Pick<ApiDeps, 'audit'>): void {
  router.listOf({
    tag: 'keys',
    scope: 'admin',
    path: '/api/audit',
    summary: 'List what was changed through the API, newest first',
    request: z.object({ query: z.strictObject(paging) }),
    items: auditEntry,
    parsePosition: numberPosition,
    list: (_, { after: before, limit }) => audit.list({ before, limit }),
    position: ({ n }) => n,
  });
}
