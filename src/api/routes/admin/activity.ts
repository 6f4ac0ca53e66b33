/** `/api/activity`: what the daemon did over time, from the database, for plots. */
import { z } from '@hono/zod-openapi';
import { DAY_MS, HOUR_MS, type Instant, MINUTE_MS } from '../../../kernel/clock.ts';
import { listPollActivity, listServiceChanges } from '../../../observer/observer.ts';
import { listWriteActivity } from '../../../operations/operations.ts';
import { activity } from '../../../resources/admin/activity.ts';
import { listAttemptActivity } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Router } from '../../http/router.ts';

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

/** Length and step of each range, in milliseconds. */
const RANGES = {
  hour: { lengthMs: HOUR_MS, stepMs: MINUTE_MS },
  day: { lengthMs: DAY_MS, stepMs: 15 * MINUTE_MS },
  month: { lengthMs: 30 * DAY_MS, stepMs: 6 * HOUR_MS },
};

/** The query of a plot. */
export const rangeQuery = z.strictObject({
  range: z.enum(['hour', 'day', 'month']).default('hour'),
});

/** Steps begin at multiples of their length, so that only the last one is partial. */
export function stepsOf(range: keyof typeof RANGES, now: Instant) {
  const { lengthMs, stepMs } = RANGES[range];
  const since = Math.ceil((now - lengthMs) / stepMs) * stepMs;
  return { since, stepMs, stepS: stepMs / 1_000, steps: lengthMs / stepMs };
}
