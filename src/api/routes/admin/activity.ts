/** `/api/activity`: what the daemon did over time, from the database, for plots. */
import { z } from '@hono/zod-openapi';
import { listServiceChanges } from '../../../observer/observer.ts';
import { listWriteActivity } from '../../../operations/operations.ts';
import { listAttemptActivity } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { instant, instantText } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';

/** Length and step of each range, in milliseconds. */
const RANGES = {
  hour: { lengthMs: 3_600_000, stepMs: 60_000 },
  day: { lengthMs: 86_400_000, stepMs: 900_000 },
  month: { lengthMs: 30 * 86_400_000, stepMs: 21_600_000 },
};

const activity = z
  .object({
    since: instant,
    step_s: z
      .int()
      .openapi({ description: 'Length of a step; a step without any row is left out' }),
    steps: z.int().openapi({ description: 'From `since` until now' }),
    writes: z.array(
      z.object({
        at: instant,
        writes: z.int(),
        not_executed: z.int(),
        open: z.int().openapi({ description: 'Whose outcome is still open or undecided' }),
        answer_p95_ms: z.number().nullable(),
      }),
    ),
    attempts: z
      .array(
        z.object({
          at: instant,
          delivered: z.int(),
          failed: z.int(),
          duration_p95_ms: z.number().nullable(),
        }),
      )
      .openapi({ description: 'Attempts to deliver webhooks' }),
    service: z
      .array(
        z.object({
          from: instant,
          to: instant,
          state: z.enum(['active', 'announced', 'maintenance', 'unreachable']),
        }),
      )
      .openapi({ description: 'The states of the service, as far as they are known' }),
  })
  .openapi('Activity');

export function addActivity(router: Router, { db, clock }: Pick<ApiDeps, 'db' | 'clock'>): void {
  router.add({
    method: 'get',
    path: '/api/activity',
    tag: 'operating',
    summary: 'Read writes and deliveries over the last hour, day or month',
    scope: 'read',
    request: z.object({
      query: z.strictObject({ range: z.enum(['hour', 'day', 'month']).default('hour') }),
    }),
    response: 'Counts and latencies in steps of time',
    schema: activity,
    async handle({ query: { range } }) {
      const { lengthMs, stepMs } = RANGES[range];
      // Steps begin at multiples of their length, so that only the last one is partial.
      const now = clock.now();
      const since = Math.ceil((now - lengthMs) / stepMs) * stepMs;
      const [writes, attempts, changes] = await Promise.all([
        listWriteActivity(db, since, stepMs),
        listAttemptActivity(db, since, stepMs),
        listServiceChanges(db, since),
      ]);
      return {
        since: instantText(since),
        step_s: stepMs / 1_000,
        steps: lengthMs / stepMs,
        writes: writes.map((step) => ({
          ...{ at: instantText(step.at), writes: step.writes, open: step.open },
          ...{ not_executed: step.notExecuted, answer_p95_ms: step.answerP95Ms },
        })),
        attempts: attempts.map((step) => ({
          ...{ at: instantText(step.at), delivered: step.delivered, failed: step.failed },
          duration_p95_ms: step.durationP95Ms,
        })),
        service: changes.map(({ at, state }, n) => ({
          ...{ from: instantText(Math.max(at, since)), state },
          to: instantText(changes[n + 1]?.at ?? Math.max(now, at)),
        })),
      };
    },
  });
}
