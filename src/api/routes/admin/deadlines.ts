/** `/api/deadlines/clear`: an operator removes what the service asked for with Retry-After. */
import { z } from '@hono/zod-openapi';
import { budget } from '../../../resources/status.ts';
import type { ApiDeps } from '../../deps.ts';
import { textInput } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';
import { budgetOf } from './status.ts';

const REASON_MAX = 2_000;

export function addDeadlines(
  router: Router,
  { upstream, log, wake }: Pick<ApiDeps, 'upstream' | 'log' | 'wake'>,
): void {
  router.answer({
    method: 'post',
    path: '/api/deadlines/clear',
    tag: 'operating',
    scope: 'admin',
    summary: 'Remove the deadlines that the service set with Retry-After',
    description:
      'For deadlines that are wrong, such as a day after one request. All daemons send again ' +
      'within seconds; a deadline that the service sets afterwards is obeyed.',
    request: z.object({ body: z.strictObject({ reason: textInput(REASON_MAX) }) }),
    response: 'The budget after it',
    answer: budget,
    async handle({ body: { reason } }, { owner }) {
      await upstream.clearDeadlines();
      log.warn({ owner, reason }, 'the deadlines of the service were removed');
      wake('observer', 'probe');
      return budgetOf(upstream);
    },
  });
}
