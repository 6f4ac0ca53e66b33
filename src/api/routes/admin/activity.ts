/** `/api/activity`: what the daemon did over time, from the database, for plots. */
import { z } from '@hono/zod-openapi';
import { listPollActivity, listServiceChanges } from '../../../observer/observer.ts';
import { listWriteActivity } from '../../../operations/operations.ts';
import { activity } from '../../../resources/admin/activity.ts';
import { listAttemptActivity } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Router } from '../../http/router.ts';
import { rangeQuery, stepsOf } from '../../http/steps.ts';

export function addActivity(router: Router, { db, clock }: Pick<ApiDeps, 'db' | 'clock'>): void {
  router.answer({
    method: 'get',
    path: '/api/activity',
    tag: 'operating',
    summary: 'Read writes and deliveries over the last hour, day or month',
    scope: 'read',
    request: z.object({ query: rangeQuery }),
    response: 'Counts and latencies in steps of time',
    answer: activity,
    async handle({ query: { range } }) {
      const now = clock.now();
      const { stepMs, ...steps } = stepsOf(range, now);
      const { since } = steps;
      const [writes, attempts, polling, changes] = await Promise.all([
        listWriteActivity(db, since, stepMs),
        listAttemptActivity(db, since, stepMs),
        listPollActivity(db, since, stepMs, now),
        listServiceChanges(db, since),
      ]);
      const service = changes.map(({ at, state }, n) => ({
        from: Math.max(at, since),
        to: changes[n + 1]?.at ?? Math.max(now, at),
        state,
      }));
      return { ...steps, writes, attempts, polling, service };
    },
  });
}
