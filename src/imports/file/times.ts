/** Times of files as instants: with an offset, of a zone, in any order, or since 1970. Pure. */
import { isoText, parseInstant } from '../../kernel/clock.ts';
import { instantsAt } from '../../resources/local-time.ts';
import type { DATE_ORDERS, UNIX_UNITS } from '../../resources/operations/import.ts';

export interface TimeOptions {
  /** Of times without an offset. */
  zone?: string | undefined;
  /** Of dates in figures; year, month and day by default. */
  order?: (typeof DATE_ORDERS)[number] | undefined;
  /** Times are numbers: how long after 1970 began. */
  unix?: (typeof UNIX_UNITS)[number] | undefined;
}

const WITH_OFFSET = /^(\d{4}-\d\d-\d\d)[T ](.*?) ?(Z|UTC|[+-]\d\d:?\d\d)$/i;
const DATE = /^(\d{1,4})([-./])(\d{1,2})\2(\d{1,4})[T ,]+(.*)$/;
const CLOCK = /^(\d{1,2}):(\d\d)(?::(\d\d)(\.\d{1,9})?)?(?: ?([AP]M))?$/i;
/** No zone changes its offset more often. */
const SLOT_MS = 900_000;

/** RFC 3339 text, or why the text names no single instant. */
export type Read = { text: string } | { code: string; detail: string };

/** Texts that it cannot read stay as they are: the report is refused with what is expected. */
export function makeTimeReader({ zone, order = 'ymd', unix }: TimeOptions): (text: string) => Read {
  const offsetAt = zone === undefined ? undefined : makeOffsets(zone);
  return (text) => {
    if (unix !== undefined) return { text: unixText(text, unix) ?? text };
    const [, day, time, offset] = WITH_OFFSET.exec(text) ?? [];
    if (offset !== undefined) return { text: `${day}T${time}${rfcOffset(offset)}` };
    const local = localText(text, order);
    const naive = local === undefined ? undefined : parseInstant(`${local}Z`);
    if (naive === undefined) return { text };
    if (!offsetAt)
      return {
        code: 'time_without_zone',
        detail: 'occurred_at: has no offset; name its zone with --time-zone, such as Asia/Seoul',
      };
    const instants = instantsAt(naive, offsetAt);
    const [at] = instants;
    if (instants.length === 1 && at !== undefined) return { text: isoText(at) };
    return instants.length === 0
      ? { code: 'time_not_in_zone', detail: `occurred_at: the clocks of ${zone} skipped this time` }
      : {
          code: 'time_ambiguous',
          detail: `occurred_at: the clocks of ${zone} showed this time twice; add its offset`,
        };
  };
}

function unixText(text: string, unit: 's' | 'ms'): string | undefined {
  if (!/^\d{1,16}(\.\d{1,9})?$/.test(text)) return undefined;
  const at = Math.round(Number(text) * (unit === 's' ? 1000 : 1));
  return Math.abs(at) <= 8.64e15 ? isoText(at) : undefined;
}

/** `2026-01-31T09:00:00.5` of a date in that order and a clock of 24 hours or of twice 12. */
function localText(text: string, order: (typeof DATE_ORDERS)[number]): string | undefined {
  const [, first = '', , second = '', third = '', time = ''] = DATE.exec(text) ?? [];
  const [year, month, day] = {
    ymd: [first, second, third],
    dmy: [third, second, first],
    mdy: [third, first, second],
  }[order] as [string, string, string];
  const [, hour = '', minute, seconds = '00', fraction = '', half] = CLOCK.exec(time) ?? [];
  if (year.length !== 4 || minute === undefined) return undefined;
  const hours = half === undefined ? Number(hour) : hourOf(Number(hour), half.toUpperCase());
  if (hours === undefined) return undefined;
  const two = (figures: string | number) => String(figures).padStart(2, '0');
  return `${year}-${two(month)}-${two(day)}T${two(hours)}:${minute}:${seconds}${fraction}`;
}

function hourOf(hour: number, half: string): number | undefined {
  if (hour < 1 || hour > 12) return undefined;
  return (hour % 12) + (half === 'PM' ? 12 : 0);
}

function rfcOffset(text: string): string {
  if (/^(Z|UTC)$/i.test(text)) return 'Z';
  return text.includes(':') ? text : `${text.slice(0, 3)}:${text.slice(3)}`;
}

/** The offset of the zone at an instant, in milliseconds. @throws RangeError for an unknown zone */
function makeOffsets(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  const known = new Map<number, number>();
  return (at) => {
    const slot = Math.floor(at / SLOT_MS);
    const found = known.get(slot);
    if (found !== undefined) return found;
    const parts = format.formatToParts(slot * SLOT_MS);
    const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, sign, hours, minutes, seconds = '0'] =
      /([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(name) ?? [];
    const size = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60 + Number(seconds);
    const offset = (sign === '-' ? -size : size) * 1000;
    known.set(slot, offset);
    return offset;
  };
}
