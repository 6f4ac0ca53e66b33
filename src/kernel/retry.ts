/** When a failed attempt is repeated: after a backoff, or when `Retry-After` allows it. Pure. */
import { DAY_MS, type Instant } from './clock.ts';
import type { Random } from './random.ts';

/**
 * The wait before the next attempt, in milliseconds: between half and all of `baseMs · 2^failures`,
 * which is at most `capMs`.
 * @param failures failed attempts so far, from 0
 */
export function backoffMs(failures: number, baseMs: number, capMs: number, random: Random): number {
  const step = Math.min(capMs, baseMs * 2 ** Math.min(failures, 40));
  return Math.round(step * (0.5 + 0.5 * random.unit()));
}

/** Longer waits are taken for a mistake and cut to a day. */
export const RETRY_AFTER_MAX_MS = DAY_MS;

const SECONDS = /^\d+(\.\d+)?$/;
/** Two of the three forms of an HTTP date. The third, of asctime, names no zone and means GMT. */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .{10,30} GMT$/;
const ASCTIME = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/**
 * Reads `Retry-After` (RFC 9110, section 10.2.3) as a deadline between `now` and a day later;
 * undefined for a value that is neither a number of seconds nor an HTTP date. The wait is never
 * shortened: a service asked again too early may only refuse for longer.
 * @param sentAt the header `Date`: what the sender's clock showed, which may differ from ours
 */
export function parseRetryAfter(
  value: string | undefined,
  now: Instant,
  sentAt: string | undefined,
): Instant | undefined {
  const text = value?.trim() ?? '';
  const at = SECONDS.test(text)
    ? now + Math.ceil(Number(text) * 1000)
    : parseHttpDate(text, now - (parseHttpDate(sentAt?.trim() ?? '') ?? now));
  return at === undefined ? undefined : Math.min(Math.max(at, now), now + RETRY_AFTER_MAX_MS);
}

/** @param aheadMs how far our clock is ahead of the sender's */
function parseHttpDate(text: string, aheadMs = 0): Instant | undefined {
  const zoned = HTTP_DATE.test(text) ? text : ASCTIME.test(text) ? `${text} GMT` : '';
  const at = Date.parse(zoned);
  return Number.isNaN(at) ? undefined : at + aheadMs;
}
