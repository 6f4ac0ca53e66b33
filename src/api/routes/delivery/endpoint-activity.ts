/** `/api/endpoints/{id}/activity`: the attempts of one endpoint over time, for plots. */
import { z } from '@hono/zod-openapi';
import { type AttemptActivity, listAttemptActivity } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput, instant, instantText } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';
import { rangeQuery, stepFields, stepsOf } from '../../http/steps.ts';

export const attemptStep = z.object({
  at: instant,
  delivered: z.int(),
  failed: z.int(),
  mean_ms: z.number().openapi({ description: 'How long receivers took to answer' }),
  slowest_ms: z.int(),
});

const activity = z
  .object({ ...stepFields, attempts: z.array(attemptStep) })
  .openapi('EndpointActivity');

export function addEndpointActivity(
  router: Router,
  { db, clock, webhooks }: Pick<ApiDeps, 'db' | 'clock' | 'webhooks'>,
): void {
  router.add({
    method: 'get',
    path: '/api/endpoints/{id}/activity',
    tag: 'endpoints',
    summary: 'Read the attempts of an endpoint over the last hour, day or month',
    scope: 'read',
    request: z.object({ params: z.object({ id: idInput('ep') }), query: rangeQuery }),
    response: 'Counts and durations in steps of time',
    schema: activity,
    async handle({ params: { id }, query: { range } }) {
      await webhooks.getEndpoint(id);
      const { since, stepMs, fields } = stepsOf(range, clock.now());
      const attempts = await listAttemptActivity(db, since, stepMs, id);
      return { ...fields, attempts: attempts.map(attemptOutput) };
    },
  });
}

export function attemptOutput({ at, delivered, failed, meanMs, slowestMs }: AttemptActivity) {
  return { at: instantText(at), delivered, failed, mean_ms: meanMs, slowest_ms: slowestMs };
}
