/** The health of an endpoint: circuit breaker and disabling. */
import { expect, it } from 'vitest';
import {
  foldHealth,
  HEALTHY,
  type Health,
  type HealthSignal,
  isOpen,
} from '../../src/webhooks/endpoints/health.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { seededRandom } from '../harness/seeded-random.ts';

const { health: policy } = webhookDefaults;
const random = seededRandom(3);
const NOW = Date.UTC(2026, 0, 1);
const DAY = 86_400_000;

const failed = (at: number, extra: Partial<HealthSignal> = {}): HealthSignal => ({
  startedAt: at,
  endedAt: at,
  result: 'failed',
  pausedUntil: null,
  ...extra,
});
const fold = (health: Health, ...signals: HealthSignal[]) =>
  foldHealth(health, signals, policy, random);
const failures = (n: number) =>
  fold(HEALTHY, ...Array.from({ length: n }, (_, i) => failed(NOW + i))).health;

it('The breaker opens at the configured number of failures', () => {
  const closed = failures(policy.openAfter - 1);
  expect([isOpen(closed, policy), closed.pausedUntil]).toEqual([false, null]);
  const open = failures(policy.openAfter);
  expect(isOpen(open, policy)).toBe(true);
  expect(open.pausedUntil).toBeGreaterThanOrEqual(NOW + policy.pauseBaseMs / 2);
});

it('Attempts in flight when the breaker opened do not lengthen the pause', () => {
  const open = failures(policy.openAfter);
  const { consecutiveFailures, pausedUntil } = open;
  const late = fold(open, failed(NOW), failed(NOW + 1)).health;
  expect(late).toMatchObject({ consecutiveFailures, pausedUntil });
});

it('Each failed probe doubles the pause, up to the longest', () => {
  let health = failures(policy.openAfter);
  const pauses: number[] = [];
  for (let i = 0; i < 20; i++) {
    const at = health.pausedUntil ?? 0;
    health = fold(health, failed(at)).health;
    pauses.push((health.pausedUntil ?? 0) - at);
  }
  expect(pauses[0]).toBeGreaterThanOrEqual(policy.pauseBaseMs);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(policy.pauseCapMs);
  expect(pauses.at(-1)).toBeGreaterThanOrEqual(policy.pauseCapMs / 2);
});

it('The first success resets the health; it is a recovery only if the breaker was open', () => {
  const success = failed(NOW + DAY, { result: 'delivered' });
  const health = { ...HEALTHY, lastSuccessAt: NOW + DAY };
  expect(fold(failures(policy.openAfter), success)).toEqual({ health, change: 'recovered' });
  expect(fold(failures(2), success)).toEqual({ health, change: undefined });
});

it('Days of nothing but failures, or one 410, disable the endpoint', () => {
  const before = failures(3);
  const end = NOW + policy.disableAfterMs;
  expect(fold(before, failed(end - 1)).change).toBeUndefined();
  expect(fold(before, failed(end)).change).toBe('failing');
  const gone = failed(NOW, { result: 'gone' });
  expect(fold(HEALTHY, gone, failed(end)).change).toBe('gone');
  const success = failed(end - 2, { result: 'delivered' });
  expect(fold(before, success, failed(end)).change).toBeUndefined();
});

it('The longest requested pause is kept', () => {
  const throttled = failed(NOW, { pausedUntil: NOW + DAY });
  expect(fold(HEALTHY, throttled, failed(NOW + 1)).health.pausedUntil).toBe(NOW + DAY);
});
