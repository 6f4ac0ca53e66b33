/**
 * How an endpoint is doing, folded from what its attempts gave. Pure. After a run of failures the
 * breaker opens: nothing is sent until `holdUntil`, then one probe at a time, and each failed probe
 * doubles the wait. Days of nothing but failures, or one 410, disable the endpoint; the first
 * success heals it.
 */
import { backoffMs } from '../../kernel/backoff.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';

export interface Health {
  consecutiveFailures: number;
  /** The first failure since the last success. */
  failingSince: Instant | null;
  /** Nothing is sent before this. */
  holdUntil: Instant | null;
  lastSuccessAt: Instant | null;
}

export interface HealthPolicy {
  /** Failures in a row that open the breaker. */
  openAfter: number;
  /** The first hold and the longest, in milliseconds. */
  holdBaseMs: number;
  holdCapMs: number;
  /** After so long with nothing but failures the endpoint is disabled. */
  disableAfterMs: number;
}

/** What one attempt says about its endpoint. */
export interface Sign {
  startedAt: Instant;
  endedAt: Instant;
  result: 'delivered' | 'failed' | 'gone';
  /** Until when the endpoint asked to be left alone. */
  holdUntil: Instant | null;
}

/** What follows for the endpoint beside its new health; the reasons are public. */
export type HealthChange = 'recovered' | 'gone' | 'failing' | undefined;

export const HEALTHY: Health = {
  consecutiveFailures: 0,
  failingSince: null,
  holdUntil: null,
  lastSuccessAt: null,
};

/** Folds signs, in the order in which the attempts ended, into the health of their endpoint. */
export function foldHealth(
  health: Health,
  signs: readonly Sign[],
  policy: HealthPolicy,
  random: Random,
): { health: Health; change: HealthChange } {
  let now = health;
  let change: HealthChange;
  for (const sign of signs) {
    if (sign.result === 'delivered') {
      if (isOpen(now, policy) && change !== 'gone') change = 'recovered';
      now = { ...HEALTHY, lastSuccessAt: sign.endedAt };
      continue;
    }
    now = afterFailure(now, sign, policy, random);
    const failingMs = sign.endedAt - (now.failingSince ?? sign.endedAt);
    if (sign.result === 'gone') change = 'gone';
    else if (change !== 'gone') change = failingMs >= policy.disableAfterMs ? 'failing' : undefined;
  }
  return { health: now, change };
}

/** True while the breaker is open: one probe at a time, and only after the hold. */
export function isOpen(health: Health, policy: HealthPolicy): boolean {
  return health.consecutiveFailures >= policy.openAfter;
}

function afterFailure(health: Health, sign: Sign, policy: HealthPolicy, random: Random): Health {
  const open = isOpen(health, policy);
  // What was already under way when the breaker opened says nothing new.
  const counts = !open || sign.startedAt >= (health.holdUntil ?? 0);
  const consecutiveFailures = health.consecutiveFailures + (counts ? 1 : 0);
  const past = consecutiveFailures - policy.openAfter;
  const hold =
    counts && past >= 0
      ? sign.endedAt + backoffMs(past, policy.holdBaseMs, policy.holdCapMs, random)
      : 0;
  const holdUntil = Math.max(hold, sign.holdUntil ?? 0, health.holdUntil ?? 0);
  return {
    ...health,
    consecutiveFailures,
    failingSince: health.failingSince ?? sign.endedAt,
    holdUntil: holdUntil === 0 ? null : holdUntil,
  };
}
