/** What a response means for its delivery. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { evaluateAttempt } from '../../src/webhooks/delivery/attempt-result.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { seededRandom } from '../harness/seeded-random.ts';

const { retry } = webhookDefaults;
const random = seededRandom(3);
const NOW = Date.UTC(2026, 0, 1);
const DAY = 86_400_000;

const evaluate = (
  status: number | null,
  scheduleStep = 0,
  retryAfter?: string,
  queuedAt = NOW,
  error = status === null ? 'timeout' : null,
) => {
  const response = { status, error, retryAfter, date: undefined };
  const delivery = { attempts: scheduleStep, scheduleStep, queuedAt };
  return evaluateAttempt(response, delivery, retry, NOW, random);
};

it('The next attempt is due no earlier than Retry-After and its step (the first, if throttled)', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.integer({ min: 100, max: 599 }), fc.constantFrom(410, 429, 503)),
      fc.integer({ min: 0, max: 9 }),
      fc.option(fc.integer({ min: 0, max: 200_000 }), { nil: undefined }),
      (status, step, seconds) => {
        const { dueAt, scheduleStep } = evaluate(status, step, seconds?.toString());
        if (dueAt === null) return;
        const throttled = (status === 429 || status === 503) && seconds !== undefined;
        const leastStep = throttled ? 1 : Math.max(1, scheduleStep);
        const stepMs = retry.scheduleMs[leastStep] ?? 0;
        const retryAfterMs = Math.min((seconds ?? 0) * 1000, DAY);
        expect(dueAt).toBeGreaterThanOrEqual(NOW + Math.max(stepMs, retryAfterMs));
        const longestMs = Math.max(stepMs * (1 + retry.jitter) + 1, retryAfterMs);
        expect(dueAt).toBeLessThanOrEqual(NOW + longestMs);
      },
    ),
  );
});

it.each([
  [200, 0, 'delivered'],
  [299, 9, 'delivered'],
  [304, 0, 'retry'],
  [null, 0, 'retry'],
  [500, 8, 'retry'],
  [500, 9, 'exhausted'],
  [null, 9, 'exhausted'],
  [410, 0, 'gone'],
  [410, 9, 'gone'],
])('Status %j after %i schedule steps is %s', (status, scheduleStep, kind) => {
  expect(evaluate(status, scheduleStep).kind).toBe(kind);
});

it.each([
  ['A throttled attempt', 429, 9, '60', NOW, 'retry', 9],
  ['A throttled attempt', 503, 9, '60', NOW, 'retry', 9],
  ['A 429 without Retry-After', 429, 9, undefined, NOW, 'exhausted', 10],
  ['A 500 with Retry-After', 500, 9, '60', NOW, 'exhausted', 10],
  ['A throttled attempt at the give-up time', 429, 0, '60', NOW - retry.giveUpMs, 'exhausted', 0],
])('%s (%i) at step %i, Retry-After %s, queued at %i, is %s at step %i', (...args) => {
  const [, status, step, retryAfter, queuedAt, kind, scheduleStep] = args;
  expect(evaluate(status, step, retryAfter, queuedAt)).toMatchObject({ kind, scheduleStep });
});

it.each(['0', '30'])(
  'A receiver that always answers 429 with Retry-After %s gets less than 200 attempts',
  (retryAfter) => {
    const response = { status: 429, error: null, retryAfter, date: undefined };
    let [attempts, at, kind] = [0, NOW, 'retry'];
    while (kind === 'retry' && attempts < 10_000) {
      const delivery = { attempts, scheduleStep: 0, queuedAt: NOW };
      const result = evaluateAttempt(response, delivery, retry, at, random);
      ({ kind } = result);
      at = result.dueAt ?? at;
      attempts++;
    }
    expect([kind, at <= NOW + retry.giveUpMs]).toEqual(['exhausted', true]);
    expect(attempts).toBeLessThan(200);
  },
);

it.each([
  ['A delivered one uses a step', 200, null, 'delivered', 4],
  ['A failed one uses a step', 500, null, 'retry', 4],
  ['One that our stop interrupted uses none', null, 'interrupted', 'retry', 3],
  ['A status below 200 is no success', 199, null, 'retry', 4],
  ['A 300 is no success', 300, null, 'retry', 4],
])('%s', (_title, status, error, kind, scheduleStep) => {
  expect(evaluate(status, 3, undefined, NOW, error)).toMatchObject({ kind, scheduleStep });
});

it('The last attempt is due at the latest when the time of the delivery is over', () => {
  const policy = { ...retry, jitter: 0 };
  const queuedAt = NOW + (retry.scheduleMs[1] ?? 0) - retry.giveUpMs;
  const kindOf = (at: number) =>
    evaluateAttempt(
      { status: 500, error: null, retryAfter: undefined, date: undefined },
      { attempts: 0, scheduleStep: 0, queuedAt: at },
      policy,
      NOW,
      random,
    ).kind;
  expect([kindOf(queuedAt), kindOf(queuedAt - 1)]).toEqual(['retry', 'exhausted']);
});
