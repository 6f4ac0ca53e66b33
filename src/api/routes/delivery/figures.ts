/** `/api/figures` and `/api/endpoints/{id}/figures`: figures of attempts to deliver webhooks. */
import { z } from '@hono/zod-openapi';
import { EVENT_TYPES } from '../../../resources/delivery/events.ts';
import { FIGURE_STEPS, figures } from '../../../resources/delivery/figures.ts';
import { readFigures } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Router } from '../../http/router.ts';
import { idInput, instantInput } from '../../http/schemas.ts';
import { requireSeen } from './endpoints.ts';

const query = z.strictObject({
  step: z.enum(FIGURE_STEPS).default('hour').openapi({
    description: 'Minutes of at most a day, or hours or days of at most 30 days; in UTC',
  }),
  since: instantInput.optional().openapi({
    description: 'By default an hour, a day or 30 days before until',
  }),
  until: instantInput.optional().openapi({ description: 'By default now' }),
  type: z.enum(EVENT_TYPES).optional().openapi({ description: 'By default all types' }),
});

const base = { method: 'get', scope: 'read', answer: figures } as const;
const response = 'Counts, success rates and durations in steps of time and by event type';

export function addFigures(
  router: Router,
  { db, clock, webhooks }: Pick<ApiDeps, 'db' | 'clock' | 'webhooks'>,
): void {
  router.answer({
    ...base,
    path: '/api/figures',
    tag: 'deliveries',
    summary: 'Read figures of the attempts to deliver to all endpoints',
    request: z.object({ query }),
    response,
    handle: ({ query }) => readFigures(db, query, clock.now()),
  });
  router.answer({
    ...base,
    path: '/api/endpoints/{id}/figures',
    tag: 'endpoints',
    summary: 'Read figures of the attempts to deliver to an endpoint',
    request: z.object({ params: z.object({ id: idInput('ep') }), query }),
    response,
    ownOnly: true,
    async handle({ params: { id: endpointId }, query }, caller) {
      await requireSeen(webhooks, endpointId, caller);
      await webhooks.getEndpoint(endpointId);
      return readFigures(db, { ...query, endpointId }, clock.now());
    },
  });
}
