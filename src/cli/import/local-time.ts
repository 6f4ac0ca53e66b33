/** Local times of a time zone as instants. Pure. */
import { isoText, parseInstant } from '../../kernel/clock.ts';

const LOCAL = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)$/;
const WITH_OFFSET = /^(\d{4}-\d\d-\d\d)[T ](.*?) ?(Z|UTC|[+-]\d\d:?\d\d)$/i;
const DAY_MS = 86_400_000;
/** No zone changes its offset more often. */
const SLOT_MS = 900_000;

/** RFC 3339 text, or why the text names no single instant. */
export type Read = { text: string } | { code: string; detail: string };

/** @throws RangeError for an unknown zone */
export function makeTimeReader(zone: string | undefined): (text: string) => Read {
  const offsetAt = zone === undefined ? undefined : makeOffsets(zone);
  return (text) => {
    const [, day, time, offset] = WITH_OFFSET.exec(text) ?? [];
    if (offset !== undefined) return { text: `${day}T${time}${rfcOffset(offset)}` };
    const local = LOCAL.exec(text);
    // The daemon refuses everything else with what it expects.
    if (!local) return { text };
    if (!offsetAt)
      return {
        code: 'time_without_zone',
        detail: 'occurred_at: has no offset; name its zone with --time-zone, such as Asia/Seoul',
      };
    const naive = parseInstant(`${local[1]}T${local[2]}Z`);
    if (naive === undefined) return { text };
    const offsets = new Set([offsetAt(naive - DAY_MS), offsetAt(naive + DAY_MS)]);
    const instants = [...offsets]
      .map((ms) => naive - ms)
      .filter((at) => at + offsetAt(at) === naive);
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

function rfcOffset(text: string): string {
  if (/^(Z|UTC)$/i.test(text)) return 'Z';
  return text.includes(':') ? text : `${text.slice(0, 3)}:${text.slice(3)}`;
}

/** The offset of the zone at an instant, in milliseconds. */
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
