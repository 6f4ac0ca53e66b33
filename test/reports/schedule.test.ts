/** Scheduled and requested reports: once per period, caught up, announced in the same commit. */
import { afterEach, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { makeReports, type Schedule } from '../../src/reports/reports.ts';
import { DAY, HOUR, makeWorld, START, type World } from './world.ts';

let world: World;
afterEach(() => world.drop());

const DAILY: Schedule = { every: 'day', timeZone: 'Europe/Berlin' };

async function periods() {
  const heads = await world.reports.listReports({ limit: 100 });
  const texts = heads.map((r) => [isoText(r.periodFrom), isoText(r.periodTo)]);
  return texts.reverse();
}

it('No report is due before the first operation, nor before its day has ended', async () => {
  world = await makeWorld({ settings: { schedule: DAILY } });
  world.clock.advance(5 * DAY);
  expect(await world.reports.runDue(world.clock.now())).toEqual({ made: 0, more: false });
  await world.operation({ recorded_at: isoText(world.clock.now()) });
  expect((await world.reports.runDue(world.clock.now())).made).toBe(0);
});

it('Missed days are caught up once, in order, a bounded number per pass', async () => {
  world = await makeWorld({ settings: { schedule: DAILY } });
  await world.operation();
  world.clock.set(START + 12 * DAY);
  expect(await world.reports.runDue(world.clock.now())).toEqual({ made: 10, more: true });
  expect(await world.reports.runDue(world.clock.now())).toEqual({ made: 2, more: false });
  expect(await world.reports.runDue(world.clock.now())).toEqual({ made: 0, more: false });
  const made = await periods();
  expect(made[0]).toEqual(['2025-12-31T23:00:00.000Z', '2026-01-01T23:00:00.000Z']);
  expect(made).toHaveLength(12);
  for (const [i, [from]] of made.entries()) if (i > 0) expect(from).toBe(made[i - 1]?.[1]);
});

it('A day on which daylight saving time changes has 23 or 25 hours', async () => {
  world = await makeWorld({ settings: { schedule: DAILY } });
  for (const [day, hours] of [
    [Date.UTC(2026, 2, 29), 23],
    [Date.UTC(2026, 9, 25), 25],
  ] as const) {
    await world.sql(
      'alter table tallyhook.reports disable trigger user; delete from tallyhook.reports',
    );
    await world.sql('alter table tallyhook.operations disable trigger user');
    await world.sql('delete from tallyhook.operations');
    await world.operation({ recorded_at: isoText(day + 12 * HOUR) });
    world.clock.set(day + 30 * HOUR);
    await world.reports.runDue(world.clock.now());
    const [period] = await periods();
    expect(Date.parse(period?.[1] ?? '') - Date.parse(period?.[0] ?? '')).toBe(hours * HOUR);
  }
});

it.each([
  [
    'ends at the first of two midnights',
    'Atlantic/Azores',
    ['2026-10-24T00:00Z', '2026-10-25T00:00Z', '2026-10-26T01:00Z'],
  ],
  [
    'begins when clocks skip midnight',
    'Africa/Cairo',
    ['2026-04-22T22:00Z', '2026-04-23T22:00Z', '2026-04-24T21:00Z'],
  ],
])('The day of a report %s: %s', async (_title, timeZone, ends) => {
  world = await makeWorld({ settings: { schedule: { every: 'day', timeZone } } });
  const [first = 0, second = 0, third = 0] = ends.map((text) => Date.parse(text));
  await world.operation({ recorded_at: isoText(first + HOUR) });
  world.clock.set(third + HOUR);
  await world.reports.runDue(world.clock.now());
  expect(await periods()).toEqual([
    [isoText(first), isoText(second)],
    [isoText(second), isoText(third)],
  ]);
});

it('Several daemons make one report per period', async () => {
  world = await makeWorld({ settings: { schedule: { everyMs: HOUR } } });
  await world.operation();
  const { db, clock, ids, outbox, settings } = world;
  const other = makeReports({ db, reads: db, clock, ids, outbox, settings });
  clock.set(START + 5 * HOUR);
  await Promise.all([world.reports, other, world.reports].map((r) => r.runDue(clock.now())));
  while ((await other.runDue(clock.now())).made > 0);
  expect(await periods()).toHaveLength(4);
  const events = await world.owner.sql`
    select subject from tallyhook.events where type = 'report.completed'`;
  expect(events).toHaveLength(4);
});

it('A report and its event are committed together', async () => {
  world = await makeWorld();
  const { id, hash } = await world.report();
  const rows = await world.owner.sql<{ subject: string; body: string }[]>`
    select subject, tallyhook.event_body(events) as body from tallyhook.events`;
  expect(rows.map(({ subject }) => subject)).toEqual([`report:${id}`]);
  expect(JSON.parse(rows[0]?.body ?? '')).toMatchObject({
    type: 'report.completed',
    data: {
      report_id: id,
      kind: 'reconciliation',
      period_from: '2026-01-01T00:00:00.000Z',
      period_to: '2026-01-02T00:00:00.000Z',
      verdict: 'balanced',
      breaks: 0,
      hash,
      link: `/api/reports/${id}`,
      files: [],
      subject_seq: 1,
    },
  });
});

it('A failing outbox leaves no report', async () => {
  world = await makeWorld();
  const { db, clock, ids, settings } = world;
  const emit = () => Promise.reject(new Error('no outbox'));
  const broken = makeReports({ db, reads: db, clock, ids, outbox: { emit }, settings });
  const input = { from: START, to: START + DAY, requestedBy: 'finance' };
  await expect(broken.makeReconciliation(input)).rejects.toThrow('no outbox');
  expect(await world.reports.listReports({ limit: 10 })).toEqual([]);
});

it('Empty periods, unknown reports and the name of the schedule are refused', async () => {
  world = await makeWorld();
  const { reports } = world;
  const request = (from: number, to: number, requestedBy = 'finance') =>
    reports.makeReconciliation({ from, to, requestedBy });
  await expect(request(START, START)).rejects.toMatchObject({ code: 'invalid_request' });
  await expect(request(START, Number.NaN)).rejects.toMatchObject({ code: 'invalid_request' });
  await expect(request(START, START + 1, 'schedule')).rejects.toMatchObject({
    code: 'invalid_request',
  });
  await expect(reports.getReport('rep_none')).rejects.toMatchObject({ code: 'not_found' });
});

it('Reports are listed newest first, page by page', async () => {
  world = await makeWorld();
  const made = [];
  for (let i = 0; i < 5; i++) made.unshift((await world.report()).id);
  const first = await world.reports.listReports({ limit: 3 });
  const rest = await world.reports.listReports({ limit: 3, before: first.at(-1)?.id });
  expect([...first, ...rest].map(({ id }) => id)).toEqual(made);
});

it('Lists are bounded while their counts are complete', async () => {
  world = await makeWorld({ settings: { listMax: 3 } });
  for (let i = 0; i < 5; i++) await world.operation({ state: 'undecided' });
  await world.drift('x', 1n);
  const { content, breaks } = await world.report();
  expect(breaks).toBe(6);
  expect(content.breaks.listed).toHaveLength(3);
  expect(content.breaks.by_kind).toEqual([
    { kind: 'drift_open', count: 1 },
    { kind: 'outcome_undecided', count: 5 },
  ]);
});
