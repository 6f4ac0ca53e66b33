/** Instants as people of a time zone read them. */
import { type Instant, isoText } from '../../kernel/clock.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const formats = new Map<string, Intl.DateTimeFormat>();

interface LocalTime {
  /** `2026-01-31 09:15:02`, without fractions of a second. */
  text: string;
  /** `+02:00` where clocks that go back show the time twice, else null. */
  offset: string | null;
}

/** @param zone an IANA name */
export function localTime(iso: string, zone: string): LocalTime {
  const at = Date.parse(iso);
  const text = zoneText(at, zone);
  const ahead = aheadOf(at, text);
  return { text, offset: isTwice(at, ahead, zone) ? offsetText(ahead) : null };
}

/** An RFC 3339 text as `localTime`, with its offset where one is needed; a dash for null. */
export function localText(iso: string | null, zone: string): string {
  if (iso === null) return '–';
  const { text, offset } = localTime(iso, zone);
  return offset === null ? text : `${text} ${offset}`;
}

function zoneText(at: Instant, zone: string): string {
  let format = formats.get(zone);
  if (!format) {
    // Sweden writes times in this form.
    const parts = { dateStyle: 'short', timeStyle: 'medium' } as const;
    format = new Intl.DateTimeFormat('sv-SE', { ...parts, timeZone: zone });
    formats.set(zone, format);
  }
  return format.format(at);
}

/** What a clock that shows the text is ahead of UTC, in milliseconds. */
function aheadOf(at: Instant, text: string): number {
  return Date.parse(`${text.replace(' ', 'T')}Z`) - Math.floor(at / 1_000) * 1_000;
}

/** Whether another instant has the same time, by what clocks are ahead on the days around it. */
function isTwice(at: Instant, ahead: number, zone: string): boolean {
  const aheadAt = (other: Instant) => aheadOf(other, zoneText(other, zone));
  return [at - DAY_MS, at + DAY_MS].some((near) => {
    const other = aheadAt(near);
    return other !== ahead && aheadAt(at + ahead - other) === other;
  });
}

function offsetText(ahead: number): string {
  const minutes = Math.trunc(ahead / MINUTE_MS);
  const two = (number: number) => String(number).padStart(2, '0');
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** A text that is an instant as `localText`, any other unchanged. */
export function withLocal(text: string, zone: string): string {
  return INSTANT.test(text) ? localText(text, zone) : text;
}

/** The day that begins at an instant in the zone, else as `localText`. */
export function dayText(iso: string, zone: string): string {
  const text = localText(iso, zone);
  const [day, before] = [text, localText(isoText(Date.parse(iso) - 1), zone)].map(dateOf);
  return day === before ? text : (day ?? text);
}

const dateOf = (text: string) => text.split(' ')[0];
