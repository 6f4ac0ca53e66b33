/** Timestamps of the service: `YYYY-MM-DD HH:MM:SS` in a time zone that it does not name. */
import type { Instant } from '../../kernel/clock.ts';

const formats = new Map<string, Intl.DateTimeFormat>();

/** @param timeZone an IANA name such as `UTC` or `Asia/Seoul` */
export function timestampText(at: Instant, timeZone: string): string {
  if (timeZone === 'UTC') return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
  let format = formats.get(timeZone);
  if (!format) {
    // The Swedish locale writes ISO dates: 2026-07-02 05:00:00.
    format = new Intl.DateTimeFormat('sv-SE', {
      timeZone,
      dateStyle: 'short',
      timeStyle: 'medium',
    });
    formats.set(timeZone, format);
  }
  return format.format(at);
}
