/** `/api/activity`: what the daemon did over time, from the database, for plots. */
import { z } from '@hono/zod-openapi';
import { listPollActivity, listServiceChanges } from '../../../observer/observer.ts';
import { listWriteActivity } from '../../../operations/operations.ts';
import { listAttemptActivity } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { instant, instantText } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';
import { rangeQuery, stepFields, stepsOf } from '../../http/steps.ts';
import { attemptOutput, attemptStep } from '../delivery/endpoint-activity.ts';

const activity = z
  .object({
    ...stepFields,
    writes: z.array(
      z.object({
        at: instant,
        writes: z.int(),
        not_executed: z.int(),
        open: z.int().openapi({ description: 'Whose outcome is still open or undecided' }),
        answer_p95_ms: z.number().nullable(),
      }),
    ),
    attempts: z.array(attemptStep).openapi({ description: 'Attempts to deliver webhooks' }),
    polling: z
      .array(
        z.object({
          at: instant,
          requests_per_s: z.number().openapi({ description: 'Polls' }),
          allowed_per_s: z.number(),
          expected_delay_ms: z.number().nullable().openapi({
            description: 'Mean time from a change to its poll, by the learned change rates',
          }),
          oldest_poll_ms: z.number().nullable().openapi({
            description: 'The greatest age of the oldest poll: no change was undetected for longer',
          }),
        }),
      )
      .openapi({ description: 'The use of the request budget, and the delay of detection' }),
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
    request: z.object({ query: rangeQuery }),
    response: 'Counts and latencies in steps of time',
    schema: activity,
    async handle({ query: { range } }) {
      const now = clock.now();
      const { since, stepMs, fields } = stepsOf(range, now);
      const [writes, attempts, polling, changes] = await Promise.all([
        listWriteActivity(db, since, stepMs),
        listAttemptActivity(db, since, stepMs),
        listPollActivity(db, since, stepMs, now),
        listServiceChanges(db, since),
      ]);
      return {
        ...fields,
        writes: writes.map((step) => ({
          at: instantText(step.at),
          writes: step.writes,
          open: step.open,
          not_executed: step.notExecuted,
          answer_p95_ms: step.answerP95Ms,
        })),
        attempts: attempts.map(attemptOutput),
        polling: polling.map((step) => ({
          at: instantText(step.at),
          requests_per_s: step.requestsPerS,
          allowed_per_s: step.allowedPerS,
          expected_delay_ms: step.expectedDelayMs,
          oldest_poll_ms: step.oldestPollMs,
        })),
        service: changes.map(({ at, state }, n) => ({
          from: instantText(Math.max(at, since)),
          state,
          to: instantText(changes[n + 1]?.at ?? Math.max(now, at)),
        })),
      };
    },
  });
}
