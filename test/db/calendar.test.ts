/** Days of time zones: where they begin, in every zone that Postgres or Node.js knows. */
import { describe, expect, it } from 'vitest';
import { beginOfDay, dayAround, daysOf } from '../../src/db/clock/calendar.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { useDatabase } from '../harness/database.ts';

const { db } = await useDatabase();
const HOUR = 3_600_000;
const LAST_KNOWN = Date.UTC(2025, 0, 1);

describe('A day begins at its first instant', () => {
  it.each([
    ['at midnight', 'Asia/Seoul', '2026-11-01', '2026-10-31T15:00:00.000Z', 24],
    ['at the first of two midnights', 'Atlantic/Azores', '2026-10-25', '2026-10-25T00:00:00Z', 25],
    ['and ends at it', 'Atlantic/Azores', '2026-10-24', '2026-10-24T00:00:00Z', 24],
    ['at the first of two midnights', 'America/Havana', '2026-11-01', '2026-11-01T04:00:00Z', 25],
    ['without a midnight', 'America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00Z', 23],
    ['without a midnight', 'Asia/Beirut', '2026-03-29', '2026-03-28T22:00:00Z', 23],
    ['without a midnight', 'Africa/Cairo', '2026-04-24', '2026-04-23T22:00:00Z', 23],
    ['when clocks skip from 23:30', 'America/Toronto', '1919-03-31', '1919-03-31T04:30:00Z', 23.5],
    ['before clocks are set back', 'America/St_Johns', '2006-10-29', '2006-10-29T02:30:00Z', 25],
    ['which is at 23:00 of two', 'America/Sao_Paulo', '2018-02-18', '2018-02-18T03:00:00Z', 24],
    ['and a skipped day has no length', 'Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00Z', 0],
    ['or half an hour early', 'Australia/Lord_Howe', '2026-04-05', '2026-04-04T13:00:00Z', 24.5],
  ])('%s: %s %s', async (_title, zone, day, begin, hours) => {
    const next = isoText(Date.parse(`${day}T00:00:00Z`) + 24 * HOUR).slice(0, 10);
    const [from, to] = [await beginOfDay(db, day, zone), await beginOfDay(db, next, zone)];
    expect([isoText(from), (to - from) / HOUR]).toEqual([isoText(Date.parse(begin)), hours]);
    if (hours === 0) return;
    expect(await dayAround(db, from, zone)).toEqual({ from, to });
    expect(await dayAround(db, to - 1, zone)).toEqual({ from, to });
    expect(await daysOf(db, [to - 1, from, from - 1], zone)).toMatchObject([day, day, /-/]);
  });
});

/** Days from 1970 to 2037 on which clocks change, some for each zone, and those beside them. */
function daysWithChanges(zones: readonly string[]) {
  return db.sql<{ zone: string; day: string; begin: number; faults: string[] }[]>`
    with month as (
      select * from (
        select z.name, s.first,
          row_number() over (partition by z.name order by md5(z.name || s.first)) as place
        from unnest(${[...zones]}::text[]) z(name)
        cross join generate_series('1970-01-01'::timestamp, '2037-12-01', '1 month') s(first)
        where (s.first + interval '1 month') at time zone z.name - s.first at time zone z.name
          <> (s.first + interval '1 month') - s.first) m
      where m.place <= 8
    ), change as (
      select m.name, d.day from month m
      cross join generate_series(m.first, m.first + interval '1 month', '1 day') d(day)
      where d.day at time zone m.name - (d.day - interval '1 day') at time zone m.name
        <> interval '1 day'
    ), begun as (
      select n.*, tallyhook.day_begin(n.day, n.name) as begin,
        tallyhook.day_begin(n.day + 1, n.name) as next
      from (select distinct c.name, (c.day + n * interval '1 day')::date as day
        from change c cross join generate_series(-1, 1) n) n
    )
    select name as zone, day::text, begin,
      array_remove(array[
        case when begin > next then 'ends before it begins' end,
        case when begin < next and tallyhook.day_of(begin, name) <> day then 'lacks its begin' end,
        case when begin < next and tallyhook.day_of(next - interval '1 ms', name) <> day
          then 'lacks its end' end,
        case when tallyhook.day_of(begin - interval '1 ms', name) >= day then 'began earlier' end,
        case when begin at time zone name < day then 'begins too early' end,
        case when begin < next and exists (
          select from generate_series(begin - interval '3 hours', begin - interval '1 s', '30 min')
            t(at) where (t.at at time zone name)::date >= day) then 'begins too late' end], null)
        as faults
    from begun`;
}

it('Days of every zone follow each other, and Node.js shows the same ones', async () => {
  const shown = Intl.supportedValuesOf('timeZone');
  const zones = await distinctZones(shown);
  const found: string[] = [];
  let count = 0;
  for (let i = 0; i < zones.length; i += 50) {
    const rows = await daysWithChanges(zones.slice(i, i + 50));
    count += rows.length;
    for (const { zone, day, begin, faults } of rows) {
      if (faults.length > 0) found.push(`${zone} ${day}: ${faults.join(', ')}`);
      // Rules of later years are forecasts, of which each has its own version.
      if (!shown.includes(zone) || begin > LAST_KNOWN) continue;
      const format = formatOf(zone);
      if (format.format(begin) < day || format.format(begin - 1) >= day)
        found.push(`${zone} ${day}: begins elsewhere in Node.js`);
    }
  }
  expect(found).toEqual([]);
  expect(count).toBeGreaterThan(4_000);
}, 120_000);

/** One name of each zone that Postgres or Node.js knows. */
async function distinctZones(shown: readonly string[]): Promise<string[]> {
  const rows = await db.sql<{ name: string }[]>`
    select max(z.name) as name from (
      select name from pg_timezone_names where name !~ '^(posix|right)/'
      union select x.name from unnest(${[...shown]}::text[]) x(name)) z
    cross join lateral (
      select string_agg((s.at at time zone z.name - s.at at time zone 'UTC')::text, ' '
        order by s.at) as offsets
      from generate_series('1970-01-01 00:00 UTC'::timestamptz, '2037-12-01', '30 days') s(at)) o
    group by o.offsets`;
  return rows.map(({ name }) => name);
}

const formats = new Map<string, Intl.DateTimeFormat>();
function formatOf(timeZone: string): Intl.DateTimeFormat {
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('sv-SE', { timeZone });
  formats.set(timeZone, format);
  return format;
}
