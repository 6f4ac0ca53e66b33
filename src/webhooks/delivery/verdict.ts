/**
 * What an answer means for one delivery: done, again at an instant, or never again. Pure.
 *
 * Only 2xx is success. The wait before the next try is the step of the schedule plus jitter, so
 * never earlier than the step; `Retry-After` is a floor under it. A 429 or 503 that names a time
 * uses up no try, but the delivery's whole time is bounded. A 410 ends the endpoint, not the
 * delivery: should somebody enable the endpoint again, it goes on where it stopped.
 */

import type { Instant } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import { parseRetryAfter } from '../../kernel/retry-after.ts';

/** What came back: a status, or why there was none. */
export interface Answer {
  status: number | null;
  /**
   * Such as timeout, refused, reset, dns, tls, blocked_address. Set also when the body broke off.
   */
  error: string | null;
  retryAfter: string | undefined;
}

export interface RetryPolicy {
  /** Waits before each try, in milliseconds; the first is 0. Its length is the number of tries. */
  scheduleMs: readonly number[];
  /** The most that is added to a step, as a part of it (0.1: ten percent). */
  jitter: number;
  /** How long one delivery may take in all, deferrals included. */
  giveUpMs: number;
}

/** Where a delivery stands when it is sent. */
export interface Progress {
  /** Tries used before this one. */
  tries: number;
  queuedAt: Instant;
}

export type Verdict =
  | { verdict: 'delivered'; tries: number }
  | { verdict: 'exhausted'; tries: number; holdUntil: Instant | null }
  | {
      verdict: 'retry' | 'gone';
      tries: number;
      dueAt: Instant;
      /** Nothing is sent to the endpoint before this; null when it asked for no pause. */
      holdUntil: Instant | null;
    };

/** Judges one answer that was complete at `now`. */
export function judge(
  answer: Answer,
  progress: Progress,
  policy: RetryPolicy,
  now: Instant,
  random: Random,
): Verdict {
  const { status } = answer;
  if (answer.error === null && isSuccess(status))
    return { verdict: 'delivered', tries: progress.tries + 1 };
  const retryAt = parseRetryAfter(answer.retryAfter, now);
  const throttled = (status === 429 || status === 503) && retryAt !== undefined;
  const gone = status === 410;
  const deferred = throttled || gone || answer.error === 'interrupted';
  const tries = progress.tries + (deferred ? 0 : 1);
  const holdUntil = throttled ? retryAt : null;
  const step = policy.scheduleMs[Math.max(1, tries)];
  const dueAt = Math.max(now + withJitter(step ?? 0, policy.jitter, random), retryAt ?? now);
  if (gone) return { verdict: 'gone', tries, dueAt, holdUntil: null };
  if (step === undefined || dueAt > progress.queuedAt + policy.giveUpMs)
    return { verdict: 'exhausted', tries, holdUntil };
  return { verdict: 'retry', tries, dueAt, holdUntil };
}

/** True for 200 to 299. */
export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299;
}

function withJitter(stepMs: number, part: number, random: Random): number {
  return Math.ceil(stepMs * (1 + part * random.unit()));
}
