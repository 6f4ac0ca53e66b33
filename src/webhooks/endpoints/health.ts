/**
 * The health of an endpoint, computed from the results of its attempts. Pure. A run of failures
 * opens the circuit breaker: nothing is sent until `pausedUntil`. Then come probes, of each daemon
 * one at a time, and each failed probe doubles the pause. Days of nothing but failures, or one 410,
 * disable the endpoint. The first success resets it.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import { backoffMs } from '../../kernel/retry.ts';
import type { health } from '../../resources/delivery/endpoint.ts';
import type { RowOf } from '../../resources/fields.ts';

export type Health = RowOf<typeof health>;

export interface HealthPolicy {
  /** Failures in a row that open the circuit breaker. */
  openAfter: number;
  /** The first and the longest pause, in milliseconds. */
  pauseBaseMs: number;
  pauseCapMs: number;
  /** An endpoint that only fails for this long is disabled. */
  disableAfterMs: number;
}

/** The part of an attempt's result that concerns its endpoint. */
export interface HealthSignal {
  startedAt: Instant;
  endedAt: Instant;
  /** `not_sent`: by our own fault, so that it only pauses the endpoint. */
  result: 'delivered' | 'failed' | 'gone' | 'not_sent';
  pausedUntil: Instant | null;
}

/** A change to announce; `gone` and `failing` disable the endpoint and are public reasons. */
type HealthChange = 'recovered' | 'gone' | 'failing' | undefined;

export const HEALTHY: Health = {
  consecutiveFailures: 0,
  failingSince: null,
  pausedUntil: null,
  lastSuccessAt: null,
};

/** Applies signals in the order in which the attempts ended. */
export function foldHealth(
  before: Health,
  signals: readonly HealthSignal[],
  policy: HealthPolicy,
  random: Random,
): { health: Health; change: HealthChange } {
  let health = before;
  let change: HealthChange;
  for (const signal of signals) {
    if (signal.result === 'delivered') {
      if (isOpen(health, policy) && change !== 'gone') change = 'recovered';
      health = { ...HEALTHY, lastSuccessAt: signal.endedAt };
      continue;
    }
    if (signal.result === 'not_sent') {
      health = {
        ...health,
        pausedUntil: Math.max(signal.pausedUntil ?? 0, health.pausedUntil ?? 0),
      };
      continue;
    }
    health = afterFailure(health, signal, policy, random);
    const failingMs = signal.endedAt - (health.failingSince ?? signal.endedAt);
    if (signal.result === 'gone') change = 'gone';
    else if (change !== 'gone') change = failingMs >= policy.disableAfterMs ? 'failing' : undefined;
  }
  return { health, change };
}

export function isOpen(health: Health, policy: HealthPolicy): boolean {
  return health.consecutiveFailures >= policy.openAfter;
}

function afterFailure(
  health: Health,
  signal: HealthSignal,
  policy: HealthPolicy,
  random: Random,
): Health {
  // Attempts already in flight when the breaker opened are no probes and do not lengthen the pause.
  const counts = !isOpen(health, policy) || signal.startedAt >= (health.pausedUntil ?? 0);
  const consecutiveFailures = health.consecutiveFailures + (counts ? 1 : 0);
  const failedProbes = consecutiveFailures - policy.openAfter;
  const breakerUntil =
    counts && failedProbes >= 0
      ? signal.endedAt + backoffMs(failedProbes, policy.pauseBaseMs, policy.pauseCapMs, random)
      : 0;
  const pausedUntil = Math.max(breakerUntil, signal.pausedUntil ?? 0, health.pausedUntil ?? 0);
  return {
    ...health,
    consecutiveFailures,
    failingSince: health.failingSince ?? signal.endedAt,
    pausedUntil: pausedUntil === 0 ? null : pausedUntil,
  };
}
