/** What operators read and order: alerts, settings, freezes, deadlines of the service. */
import { z } from '@hono/zod-openapi';
import { listAlerts } from '../../../reconciler/reconciler.ts';
import { alert } from '../../../resources/admin/alert.ts';
import { setting } from '../../../resources/admin/setting.ts';
import { budget, freeze } from '../../../resources/admin/status.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { reasonInput, schemaOf } from '../../http/schemas.ts';
import { budgetOf } from './status.ts';

/** An order with a reason, which its audit entry has. */
const order = {
  method: 'post',
  tag: 'operating',
  scope: 'admin',
  request: z.object({ body: z.strictObject({ reason: reasonInput }) }),
} as const;

type Deps = Pick<ApiDeps, 'db' | 'settings' | 'operations' | 'upstream' | 'log' | 'wake'>;

export function addOperating(router: Router, deps: Deps): void {
  const { db, settings, operations, upstream, log, wake } = deps;
  router.answer({
    ...order,
    path: '/api/deadlines/clear',
    summary: 'Remove the deadlines that the service set with Retry-After',
    description:
      'For deadlines that are wrong, such as a day after one request. All daemons send again ' +
      'within seconds; a deadline that the service sets afterwards is obeyed.',
    response: 'The budget after it',
    answer: budget,
    async handle({ body: { reason } }, { owner }) {
      await upstream.clearDeadlines();
      log.warn({ owner, reason }, 'the deadlines of the service were removed');
      wake('observer', 'probe');
      return budgetOf(upstream);
    },
  });
  router.answer({
    ...order,
    answer: freeze,
    path: '/api/freeze',
    summary: 'Stop all writes',
    description: 'After the response no write is recorded, and none is sent from the queue.',
    response: 'The freeze in effect; an earlier one if writes were already frozen',
    handle: ({ body: { reason } }, { owner }) => operations.freeze({ by: owner, reason }),
  });
  router.answer({
    ...order,
    answer: freeze,
    path: '/api/unfreeze',
    summary: 'Release all writes',
    response: 'The freeze that ended',
    async handle({ body: { reason } }, { owner }) {
      const ended = await operations.unfreeze({ by: owner, reason });
      wake('queue');
      return ended;
    },
  });
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
  router.add({
    method: 'get',
    path: '/api/settings',
    tag: 'operating',
    scope: 'admin',
    summary: 'List the settings in effect on this daemon and their sources, without secrets',
    request: z.object({}),
    response: 'Every setting',
    schema: z.object({ data: z.array(schemaOf(setting)) }),
    handle: () => ({ data: [...settings] }),
  });
}
