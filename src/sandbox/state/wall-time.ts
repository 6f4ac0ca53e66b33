/**
 * Timestamps as the service writes them: `YYYY-MM-DD HH:MM:SS`, in a time zone it does not tell.
 */
import type { Instant } from '../../kernel/clock.ts';

const formats = new Map<string, Intl.DateTimeFormat>();

/** @param timeZone an IANA name such as `UTC` or `Asia/Seoul` */
export function wallText(at: Instant, timeZone: string): string {
  if (timeZone === 'UTC') return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
  const parts = formatOf(timeZone).formatToParts(at);
  const part = (type: string) => parts.find((each) => each.type === type)?.value ?? '';
  const day = `${part('year')}-${part('month')}-${part('day')}`;
  return `${day} ${part('hour')}:${part('minute')}:${part('second')}`;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known) return known;
  const made = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
  formats.set(timeZone, made);
  return made;
}
