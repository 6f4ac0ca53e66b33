/** `/api/alerts`: what the watchdog and the rules of the configuration find now. */
import { z } from '@hono/zod-openapi';
import { listAlerts } from '../../../reconciler/reconciler.ts';
import { alert } from '../../../resources/alert.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

export function addAlerts(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.listOf({
    tag: 'operating',
    scope: 'read',
    path: '/api/alerts',
    summary: 'List the alerts that are raised, oldest first',
    request: z.object({ query: z.strictObject(paging) }),
    items: alert,
    parsePosition: idPosition('alr'),
    list: (_, page) => listAlerts(db, page),
    position: ({ id }) => id,
  });
}
