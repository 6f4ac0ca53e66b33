/**
 * What a response means for its delivery. Pure.
 *
 * A head with a status 2xx is success, even if the body is late or cut: the receiver has the event.
 * All else is a failure. The wait before the next attempt is the step of the schedule plus jitter,
 * and at least `Retry-After`. A 429 or 503 with `Retry-After` defers the delivery: it uses no step,
 * but each further deferral waits longer, and `giveUpMs` bounds the total time. A 410 disables
 * the endpoint and leaves the delivery pending: if the endpoint is enabled again, it continues at
 * the same step.
 */
import { HOUR_MS, type Instant } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import { parseRetryAfter } from '../../kernel/retry.ts';

export interface ResponseSummary {
  /** Null when no response head arrived, and of a broker. */
  status: number | null;
  /** Such as timeout, refused, reset, dns, tls_expired, blocked_address; null with a status. */
  error: string | null;
  retryAfter: string | undefined;
  /** What the receiver's clock showed. */
  date: string | undefined;
}

export interface RetryPolicy {
  /** The wait before each attempt, in milliseconds; the first is 0. */
  scheduleMs: readonly number[];
  /** The largest addition to a step, as a fraction of it (0.1: ten percent). */
  jitter: number;
  /** The longest time from queueing to the last attempt. */
  giveUpMs: number;
}

/**
 * The policy of an endpoint with a retry schedule of its own, which ends with its last step and not
 * at the common limit.
 * @param scheduleS the waits before its retries, in seconds
 */
export function ownPolicy(policy: RetryPolicy, scheduleS: readonly number[] | null): RetryPolicy {
  if (scheduleS === null) return policy;
  const scheduleMs = [0, ...scheduleS.map((seconds) => seconds * 1_000)];
  const lastsMs = scheduleMs.reduce((sum, ms) => sum + ms, 0) * (1 + policy.jitter);
  return { ...policy, scheduleMs, giveUpMs: Math.max(policy.giveUpMs, lastsMs + OWN_MARGIN_MS) };
}

/** For the attempts themselves, and until each is claimed. */
const OWN_MARGIN_MS = HOUR_MS;

export const ATTEMPT_RESULTS = ['delivered', 'retry', 'exhausted', 'gone'] as const;

export interface AttemptResult {
  kind: (typeof ATTEMPT_RESULTS)[number];
  scheduleStep: number;
  /** When the next attempt is due; null when there is none. */
  dueAt: Instant | null;
  pausedUntil: Instant | null;
}

const DEFERRAL_MAX_MS = HOUR_MS;

/** @param delivery as it was claimed, before this attempt */
export function evaluateAttempt(
  response: ResponseSummary,
  delivery: { attempts: number; scheduleStep: number; queuedAt: Instant },
  policy: RetryPolicy,
  now: Instant,
  random: Random,
): AttemptResult {
  const { status, error } = response;
  if (isSuccess(response)) {
    const scheduleStep = delivery.scheduleStep + 1;
    return { kind: 'delivered', scheduleStep, dueAt: null, pausedUntil: null };
  }
  const retryAt = parseRetryAfter(response.retryAfter, now, response.date);
  const throttled = (status === 429 || status === 503) && retryAt !== undefined;
  const gone = status === 410;
  const usesStep = !throttled && !gone && error !== 'interrupted';
  const scheduleStep = delivery.scheduleStep + (usesStep ? 1 : 0);
  const pausedUntil = throttled ? retryAt : null;
  const stepMs = policy.scheduleMs[Math.max(1, scheduleStep)];
  const leastMs = throttled ? deferralMs(delivery, policy) : (stepMs ?? 0);
  const waitMs = Math.ceil(leastMs * (1 + policy.jitter * random.unit()));
  const dueAt = Math.max(now + waitMs, retryAt ?? now);
  if (gone) return { kind: 'gone', scheduleStep, dueAt, pausedUntil };
  if (stepMs === undefined || dueAt > delivery.queuedAt + policy.giveUpMs)
    return { kind: 'exhausted', scheduleStep, dueAt: null, pausedUntil };
  return { kind: 'retry', scheduleStep, dueAt, pausedUntil };
}

/** The first step of the schedule, doubled with every attempt before that used no step. */
function deferralMs(
  { attempts, scheduleStep }: { attempts: number; scheduleStep: number },
  { scheduleMs }: RetryPolicy,
): number {
  const deferrals = Math.max(0, attempts - scheduleStep);
  return Math.min((scheduleMs[1] ?? 0) * 2 ** Math.min(deferrals, 30), DEFERRAL_MAX_MS);
}

/** A broker has no status: it has stored the message unless there is an error. */
export function isSuccess({ status, error }: Pick<ResponseSummary, 'status' | 'error'>): boolean {
  return status === null ? error === null : status >= 200 && status <= 299;
}
