/**
 * `Retry-After` (RFC 9110, section 10.2.3) as an absolute deadline. Never shortened: a service that
 * asks for an hour and is asked again after two minutes only bans for longer.
 */
import type { Instant } from '../../kernel/clock.ts';

/** What asks for more than a day is taken for a mistake and kept to a day. */
export const SILENCE_MAX_MS = 24 * 3_600_000;

const SECONDS = /^\d+(\.\d+)?$/;
/** The three forms of an HTTP date; the last, of asctime, names no zone and means GMT. */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .{10,30} GMT$/;
const ASCTIME = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/** The deadline that a header's value sets, from `now` to a day later; undefined for nonsense. */
export function retryAfter(value: string | undefined, now: Instant): Instant | undefined {
  const text = value?.trim() ?? '';
  const at = SECONDS.test(text) ? now + Math.ceil(Number(text) * 1000) : httpDate(text);
  return at === undefined ? undefined : Math.min(Math.max(at, now), now + SILENCE_MAX_MS);
}

function httpDate(text: string): Instant | undefined {
  const zoned = HTTP_DATE.test(text) ? text : ASCTIME.test(text) ? `${text} GMT` : '';
  const at = Date.parse(zoned);
  return Number.isNaN(at) ? undefined : at;
}
