/** The database's clock on a real Postgres, whose time the test reads with a step. */
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { databaseClock } from '../../src/db/clock/clock.ts';
import { type Correction, timeAt } from '../../src/db/clock/slew.ts';
import type { Db } from '../../src/db/connect.ts';
import { isoText, monotonicMs } from '../../src/kernel/clock.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { manualMachine } from '../harness/manual-machine.ts';

const HOUR = 3_600_000;
/** Readings know the time to half a round trip; a second is room enough on a busy machine. */
const CLOSE_MS = 1_000;

let database: TestDatabase;
let stepMs: number;
let lines: string[];
const opened: TestDatabase[] = [];
beforeEach(async () => {
  database = await createDatabase();
  opened.push(database);
  stepMs = 0;
  lines = [];
});
afterAll(() => Promise.all(opened.map((each) => each.drop())));

const databaseNow = async ({ sql }: Db) => {
  const [row] = await sql<{ now: number }[]>`select clock_timestamp() as now`;
  return row?.now ?? Number.NaN;
};
const open = (db = database.db) => {
  const log = makeLog('info', { write: (line) => void lines.push(line) });
  return databaseClock(db, log, async (of) => (await databaseNow(of)) + stepMs);
};
const errors = () => lines.filter((line) => line.includes('"level":"error"'));

describe("The database's clock", () => {
  it('returns whole milliseconds of the server, and never goes backwards', async () => {
    const clock = await databaseClock(database.db, makeLog('silent'));
    const instants = Array.from({ length: 1_000 }, () => clock.now());
    expect(instants.every(Number.isInteger)).toBe(true);
    expect(instants.toSorted((x, y) => x - y)).toEqual(instants);
    const before = await databaseNow(database.db);
    await clock.follow();
    const now = clock.now();
    expect(now).toBeGreaterThan(before - CLOSE_MS);
    expect(now).toBeLessThan((await databaseNow(database.db)) + CLOSE_MS);
    expect(clock.correctionMs()).toBe(0);
  });

  it.each([
    ['back', -HOUR],
    ['forward', HOUR],
  ])(
    'continues for all daemons when it steps %s by an hour, with one line in the log',
    async (_where, step) => {
      const clocks = [await open(), await open(database.owner), await open()];
      for (const clock of clocks) await clock.follow();
      const startedMs = monotonicMs();
      const startedAt = await databaseNow(database.db);
      stepMs = step;
      await Promise.all(clocks.map((clock) => clock.follow()));
      clocks.push(await open());
      const expected = startedAt + monotonicMs() - startedMs;
      for (const clock of clocks) {
        expect(Math.abs(clock.now() - expected)).toBeLessThan(CLOSE_MS);
        expect(Math.abs(clock.correctionMs() + step)).toBeLessThan(CLOSE_MS);
      }
      expect(errors()).toHaveLength(1);
      expect(JSON.parse(errors()[0] ?? '').stepMs / step).toBeCloseTo(1, 2);
    },
  );

  it('continues in a daemon that starts after a step back, also when no other one runs', async () => {
    const gone = await open();
    await gone.follow();
    stepMs = -HOUR;
    const clock = await open();
    expect(Math.abs(clock.now() - gone.now())).toBeLessThan(CLOSE_MS);
    expect(errors()).toHaveLength(1);
  });

  it('follows a step forward while no daemon ran, like any downtime', async () => {
    await (await open()).follow();
    stepMs = HOUR;
    const clock = await open();
    await clock.follow();
    expect(clock.correctionMs()).toBe(0);
    expect(Math.abs(clock.now() - (await databaseNow(database.db)) - HOUR)).toBeLessThan(CLOSE_MS);
    expect(lines).toEqual([]);
  });

  it('keeps its reading when the database fails', async () => {
    let fails = false;
    const clock = await databaseClock(database.db, makeLog('silent'), (of) =>
      fails ? Promise.reject(new Error('away')) : databaseNow(of),
    );
    fails = true;
    await expect(clock.follow()).rejects.toThrow('away');
    expect(Math.abs(clock.now() - (await databaseNow(database.db)))).toBeLessThan(CLOSE_MS);
  });

  it.each([
    ['before it was set', -60_000],
    ['while it decays', 2 * HOUR],
    ['after it ended', 20 * HOUR],
  ])('is the present time of the views %s', async (_when, ageMs) => {
    const { sql } = database.owner;
    const now = await databaseNow(database.owner);
    const setAt = Math.round(now - ageMs);
    const ends = { setAt, endsAt: setAt + 10 * HOUR };
    const correction: Correction = { steps: 1, correctionMs: HOUR, ...ends, highestAt: now };
    await sql`
      update tallyhook.clock set correction_ms = ${HOUR}, set_at = ${isoText(ends.setAt)},
        ends_at = ${isoText(ends.endsAt)}`;
    const [row] = await sql<{ database: number; present: number }[]>`
      select now() as database, now as present from tallyhook.present`;
    expect(Math.abs((row?.present ?? 0) - timeAt(correction, row?.database ?? 0))).toBeLessThan(3);
  });
});

it('The time of a daemon goes on while its machine is suspended, before it reads a clock again', async () => {
  const machine = manualMachine();
  const counts = { monotonicMs: machine.count.ms, uptimeMs: machine.uptimeMs };
  const clock = await databaseClock(database.db, makeLog('silent'), databaseNow, counts);
  const before = clock.now();
  machine.suspend(HOUR);
  expect(Math.abs(clock.now() - before - HOUR)).toBeLessThanOrEqual(CLOSE_MS);
});
