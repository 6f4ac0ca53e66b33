/**
 * Due periods of scheduled reports: every whole period since the end of the last scheduled report,
 * however long ago that was.
 */
import { dayAround } from '../db/clock/calendar.ts';
import type { Queryable } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import { SCHEDULE } from './store.ts';

/** Calendar days of a time zone, or periods of `everyMs` since 1970 (for demonstrations). */
export type Schedule = { every: 'day'; timeZone: string } | { everyMs: number };

/** `to` is exclusive. */
export interface Period {
  from: Instant;
  to: Instant;
}

/** The periods of a kind that ended by `now` and have no scheduled report, oldest first. */
export async function listDue(
  db: Queryable,
  kind: string,
  schedule: Schedule,
  now: Instant,
  max: number,
): Promise<Period[]> {
  const start = await findScheduleStart(db, kind);
  if (!start) return [];
  const due: Period[] = [];
  let next = await periodAround(db, schedule, start.at);
  // After a change of the schedule, the first new period begins where the last old one ended.
  if (start.isPeriodEnd) next = { from: start.at, to: next.to };
  while (next.to <= now && due.length < max) {
    due.push(next);
    next = await periodAround(db, schedule, next.to);
  }
  return due;
}

async function periodAround(db: Queryable, schedule: Schedule, at: Instant): Promise<Period> {
  if ('every' in schedule) return dayAround(db, at, schedule.timeZone);
  const from = Math.floor(at / schedule.everyMs) * schedule.everyMs;
  return { from, to: from + schedule.everyMs };
}

/** End of the last scheduled period, else the first recorded time; undefined without either. */
async function findScheduleStart(
  db: Queryable,
  kind: string,
): Promise<{ at: Instant; isPeriodEnd: boolean } | undefined> {
  const rows = await db.sql<{ last: Instant | null; first: Instant | null }[]>`
    select (select max(period_to) from tallyhook.reports
        where kind = ${kind} and requested_by = ${SCHEDULE}) as last,
      least((select recorded_at from tallyhook.operations order by id limit 1),
        (select min(recorded_at) from tallyhook.batches)) as first`;
  const { last = null, first = null } = rows[0] ?? {};
  if (last !== null) return { at: last, isPeriodEnd: true };
  return first === null ? undefined : { at: first, isPeriodEnd: false };
}

/** The calendar of reports at an instant: their zone, the day in it, and the one before. */
export async function findDays(
  { sql }: Queryable,
  now: Instant,
): Promise<{ timeZone: string; today: string; lastDay: Period }> {
  const rows = await sql<({ timeZone: string; today: string } & Period)[]>`
    select z.name as time_zone, t.day::text as today, b.at as "to",
      tallyhook.day_begin(tallyhook.day_of(b.at - interval '1 ms', z.name), z.name) as "from"
    from (select tallyhook.zone_or_default(null) as name) z
    cross join lateral tallyhook.day_of(${isoText(now)}::timestamptz, z.name) as t(day)
    cross join lateral tallyhook.day_begin(t.day, z.name) as b(at)`;
  const { from, to, ...rest } = must(rows[0], 'calendar of reports');
  return { ...rest, lastDay: { from, to } };
}
