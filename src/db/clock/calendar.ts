/** Days of time zones. Postgres alone decides where a day begins: `tallyhook.day_begin`. */
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Queryable } from '../connect.ts';

/** A day of a time zone, from its first instant up to that of the next one. */
export interface Day {
  from: Instant;
  /** Exclusive. */
  to: Instant;
}

/** @param day such as 2026-12-01 */
export async function beginOfDay(
  { sql }: Queryable,
  day: string,
  timeZone: string,
): Promise<Instant> {
  const rows = await sql<{ at: Instant }[]>`
    select tallyhook.day_begin(${day}::date, ${timeZone}) as at`;
  return rows[0]?.at ?? 0;
}

/** The day that an instant is in. */
export async function dayAround({ sql }: Queryable, at: Instant, timeZone: string): Promise<Day> {
  const rows = await sql<Day[]>`
    select tallyhook.day_begin(day, ${timeZone}) as "from",
      tallyhook.day_begin(day + 1, ${timeZone}) as "to"
    from tallyhook.day_of(${isoText(at)}::timestamptz, ${timeZone}) as d(day)`;
  return rows[0] ?? { from: at, to: at };
}

/** The days that instants are in, such as 2026-12-01, in their order. */
export async function daysOf(
  { sql }: Queryable,
  instants: readonly Instant[],
  timeZone: string,
): Promise<string[]> {
  const texts = instants.map(isoText);
  const rows = await sql<{ day: string }[]>`
    select tallyhook.day_of(x.at, ${timeZone})::text as day
    from unnest(${texts}::timestamptz[]) with ordinality as x(at, place) order by place`;
  return rows.map(({ day }) => day);
}
