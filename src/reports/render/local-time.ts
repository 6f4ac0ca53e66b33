/** Instants as people of a time zone read them. */
import { isoText } from '../../kernel/clock.ts';

const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * `2026-01-31 09:15:02` of an RFC 3339 text, without fractions of a second; a dash for null.
 * @param zone an IANA name
 */
export function localText(iso: string | null, zone: string): string {
  if (iso === null) return '–';
  let format = formats.get(zone);
  if (!format) {
    // Sweden writes times in this form.
    const parts = { dateStyle: 'short', timeStyle: 'medium' } as const;
    format = new Intl.DateTimeFormat('sv-SE', { ...parts, timeZone: zone });
    formats.set(zone, format);
  }
  return format.format(Date.parse(iso));
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
