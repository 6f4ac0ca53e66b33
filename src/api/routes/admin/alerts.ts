/** `/api/alerts`: what the watchdog and the rules of the configuration find now. */
import { z } from '@hono/zod-openapi';
import { listAlerts } from '../../../reconciler/reconciler.ts';
import type { ApiDeps } from '../../deps.ts';
import { instant, instantText } from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const alert = z
  .object({
    id: z.string(),
    rule: z.string().openapi({
      description:
        'The name of a rule of alerts.rules, observer.late, operation.stuck, wallet.vanished or ' +
        'ledger.fee_rule_contradicted',
    }),
    raised_at: instant,
    detail: z.record(z.string(), z.unknown()).openapi({
      description: 'As in its event, with the present values',
    }),
  })
  .openapi('Alert');

export function addAlerts(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.list({
    tag: 'operating',
    scope: 'read',
    path: '/api/alerts',
    summary: 'List the alerts that are raised, oldest first',
    request: z.object({ query: z.strictObject(paging) }),
    item: alert,
    parsePosition: idPosition('alr'),
    list: (_, page) => listAlerts(db, page),
    output: ({ id, rule, raisedAt, detail }) => ({
      id,
      rule,
      raised_at: instantText(raisedAt),
      detail,
    }),
    position: ({ id }) => id,
  });
}
