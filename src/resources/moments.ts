/**
 * Dates as people name them in commands and requests about the books: an instant, or a day, month,
 * quarter or year in the zone of the reports. Pure.
 */
import { type Instant, isoText, parseInstant } from '../kernel/clock.ts';

/** An instant, or the first one of a calendar day. */
export type Moment = { at: Instant } | { day: string };

/** From the first instant of a day to that of another one, excluded. */
export interface Span {
  from: { day: string };
  to: { day: string };
}

/** From 1970 on, when no write can have been before, to the last year with four digits. */
const SPAN = /^(19[7-9]\d|[2-9]\d{3})(?:-Q([1-4])|-(\d\d)(?:-(\d\d))?)?$/;

/** A day, month, quarter or year; undefined for anything else. */
export function parseSpan(text: string): Span | undefined {
  const [, year, quarter, month, day] = SPAN.exec(text) ?? [];
  if (year === undefined) return undefined;
  const first = quarter ? 3 * Number(quarter) - 2 : Number(month ?? 1);
  const months = quarter ? 3 : month ? 1 : 12;
  const dayOf = (after: { months: number; days: number }) =>
    isoText(Date.UTC(Number(year), first - 1 + after.months, Number(day ?? 1) + after.days)).slice(
      0,
      10,
    );
  const from = dayOf({ months: 0, days: 0 });
  const isReal = day ? from === text : first >= 1 && first <= 12;
  if (!isReal || year === '9999') return undefined;
  const to = dayOf(day ? { months: 0, days: 1 } : { months, days: 0 });
  return { from: { day: from }, to: { day: to } };
}

const INSTANT_END = Date.UTC(10_000, 0, 1);

/** An instant from 1970 on: Postgres has no year 0, RFC 3339 no year 10000. Else undefined. */
export function parseInstantSince1970(text: string): Instant | undefined {
  const at = parseInstant(text);
  return at !== undefined && at >= 0 && at < INSTANT_END ? at : undefined;
}

/** An instant from 1970 on, or the begin of a day, month, quarter or year; else undefined. */
export function parseMoment(text: string): Moment | undefined {
  const at = parseInstantSince1970(text);
  return at === undefined ? parseSpan(text)?.from : { at };
}
