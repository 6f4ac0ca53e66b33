/** `/api/endpoints/{id}/activity`: the attempts of one endpoint over time, for plots. */
import { z } from '@hono/zod-openapi';
import { endpointActivity } from '../../../resources/activity.ts';
import { listAttemptActivity } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';
import { rangeQuery, stepsOf } from '../../http/steps.ts';

export function addEndpointActivity(
  router: Router,
  { db, clock, webhooks }: Pick<ApiDeps, 'db' | 'clock' | 'webhooks'>,
): void {
  router.answer({
    method: 'get',
    path: '/api/endpoints/{id}/activity',
    tag: 'endpoints',
    summary: 'Read the attempts of an endpoint over the last hour, day or month',
    scope: 'read',
    request: z.object({ params: z.object({ id: idInput('ep') }), query: rangeQuery }),
    response: 'Counts and durations in steps of time',
    answer: endpointActivity,
    async handle({ params: { id }, query: { range } }) {
      await webhooks.getEndpoint(id);
      const { stepMs, ...steps } = stepsOf(range, clock.now());
      return { ...steps, attempts: await listAttemptActivity(db, steps.since, stepMs, id) };
    },
  });
}
