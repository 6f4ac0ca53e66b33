/** Instants as people of a time zone read and write them. Pure, and read by browsers too. */
import type { Instant } from '../kernel/values.ts';

/** As in `kernel/clock.ts`, which no browser can load. */
export const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const formats = new Map<string, Intl.DateTimeFormat>();

interface LocalTime {
  /** `2026-01-31 09:15:02`, without fractions of a second. */
  text: string;
  /** `+02:00` where clocks that go back show the time twice, else null. */
  offset: string | null;
}

/** @param zone an IANA name */
export function localTime(iso: string | Instant, zone: string): LocalTime {
  const at = new Date(iso).getTime();
  const ahead = aheadAt(at, zone);
  const isTwice = instantsAt(at + ahead, (other) => aheadAt(other, zone)).length > 1;
  return { text: zoneText(at, zone), offset: isTwice ? offsetText(ahead) : null };
}

/** An RFC 3339 text as `localTime`, with its offset where one is needed; a dash for null. */
export function localText(iso: string | Instant | null, zone: string): string {
  if (iso === null) return '–';
  const { text, offset } = localTime(iso, zone);
  return offset === null ? text : `${text} ${offset}`;
}

/**
 * The instants at which clocks show a time, earliest first: two where they go back, none where they
 * skip it.
 * @param local the time as if it were one of UTC
 * @param ahead what the clocks are ahead of UTC at an instant, in milliseconds
 */
export function instantsAt(local: Instant, ahead: (at: Instant) => number): Instant[] {
  const around = new Set([ahead(local - DAY_MS), ahead(local + DAY_MS)]);
  return [...around]
    .map((ms) => local - ms)
    .filter((at) => at + ahead(at) === local)
    .toSorted((a, b) => a - b);
}

/**
 * The first instant at which clocks of the zone show that time or, where they skip it, the one at
 * which they would have.
 * @param local such as `2026-01-31T09:15`; undefined for no time, and for one before 1970, which
 * no date of the books is
 */
export function instantOfLocal(local: string, zone: string): Instant | undefined {
  const asUtc = Date.parse(`${local}Z`);
  if (!(asUtc >= 0)) return undefined;
  const ahead = (at: Instant) => aheadAt(at, zone);
  const [at = asUtc - ahead(asUtc - DAY_MS)] = instantsAt(asUtc, ahead);
  return at;
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

/** What clocks of the zone are ahead of UTC, in milliseconds. */
function aheadAt(at: Instant, zone: string): number {
  return Date.parse(`${zoneText(at, zone).replace(' ', 'T')}Z`) - Math.floor(at / 1_000) * 1_000;
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
  const [day, before] = [text, localText(Date.parse(iso) - 1, zone)].map(dateOf);
  return day === before ? text : (day ?? text);
}

const dateOf = (text: string) => text.split(' ')[0];
