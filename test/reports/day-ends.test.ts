/** Balances kept at the ends of days: a report with them says the same, and reads its period. */
import { describe, expect, it } from 'vitest';
import type { Tx } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { keepDayEnd, verifyLedger } from '../../src/ledger/ledger.ts';
import { reconcile } from '../../src/reports/reconcile.ts';
import { DEFAULT_LIMITS } from '../../src/reports/reports.ts';
import { createDatabase } from '../harness/database.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { generateHistory, HISTORY_END } from '../tools/bench/history/generate.ts';
import { addr, balancedWorld, DAY, HOUR, START, timesAt, useEachWorld } from './world.ts';

const END = START + DAY;

describe('A day end', () => {
  const world = useEachWorld(balancedWorld);

  const keep = (timeZone = 'UTC') => keepDayEnd(world.db, world.clock.now(), timeZone);
  const keepAll = async () => {
    while (await keep());
  };
  const ends = async () => {
    const rows = await world.owner.sql<{ at: number }[]>`
      select at from tallyhook.day_ends order by at`;
    return rows.map(({ at: instant }) => isoText(instant));
  };
  const giveAt = async (instant: number, amount = 7) => {
    await world.operation({ ...timesAt(instant), amount });
    await world.post();
  };
  const reportOf = async (from: number, to: number) => (await world.report(from, to)).content;
  const reportsOf = async (periods: readonly (readonly [from: number, to: number])[]) => {
    const made = [];
    for (const [from, to] of periods) made.push(await reportOf(from, to));
    return made;
  };
  /** Changes kept rows as the owner of the database can. */
  const tamper = (statement: string) =>
    world.sql(`alter table tallyhook.day_ends disable trigger user;
      alter table tallyhook.day_balances disable trigger user; ${statement};
      alter table tallyhook.day_ends enable always trigger day_ends_append_only;
      alter table tallyhook.day_balances enable always trigger day_balances_append_only`);
  const verdict = () => verifyLedger(world.db, []);

  it('is made once a batch was recorded an hour after it, and no earlier', async () => {
    // The openings took effect a day before START, the rest on its day.
    expect([await keep(), await keep()]).toEqual([true, false]);
    world.clock.set(END + HOUR - 1);
    await giveAt(END + 1);
    expect(await keep()).toBe(false);
    world.clock.set(END + HOUR);
    await giveAt(END + 2);
    expect([await keep(), await keep()]).toEqual([true, false]);
    expect(await ends()).toEqual([isoText(START), isoText(END)]);
  });

  it('is where the day ends in the time zone', async () => {
    await keep('Asia/Seoul');
    expect(await ends()).toEqual([isoText(START - DAY + 15 * HOUR)]);
  });

  it('changes no figure of a report, also after late records and later effects', async () => {
    world.clock.set(END + 2 * HOUR);
    await giveAt(END + HOUR);
    await giveAt(START + 2 * HOUR, 11);
    await giveAt(END - 1, 13);
    const periods = [
      [START, END],
      [START - DAY, START],
      [START + 12 * HOUR, END + DAY],
      [END, END + DAY],
      [START - 9 * DAY, END + 9 * DAY],
    ] as const;
    const contents = () => reportsOf(periods);
    const before = await contents();
    await keepAll();
    expect(await ends()).toHaveLength(2);
    expect(await contents()).toEqual(before);
    // Recorded after both day ends, effective before and between them.
    world.clock.set(END + 5 * HOUR);
    await giveAt(START - 2 * HOUR, 17);
    await giveAt(END - 3 * HOUR, 19);
    const kept = await contents();
    await tamper('delete from tallyhook.day_balances; delete from tallyhook.day_ends');
    expect(await ends()).toEqual([]);
    expect(kept).toEqual(await contents());
    await keepAll();
    expect(await contents()).toEqual(kept);
    expect(await verdict()).toMatchObject({ ok: true });
  });

  it('changes no figure in any order of postings and day ends', async () => {
    const random = seededRandom(11);
    const hours = (from: number, to: number) =>
      (from + Math.floor(random.unit() * (to - from))) * HOUR;
    let now = START + 12 * HOUR;
    for (let n = 0; n < 40; n += 1) {
      now += hours(1, 8) + 1;
      world.clock.set(now);
      // A third took effect at midnight, and some took effect long ago.
      const effective = now - hours(0, n % 4 === 0 ? 90 : 3);
      await giveAt(n % 3 === 0 ? effective - (effective % DAY) : effective, n + 1);
      if (n % 2 === 0) await keep();
    }
    await keepAll();
    const days = (await ends()).length;
    expect(days).toBeGreaterThan(6);
    expect(await verdict()).toMatchObject({ ok: true });
    const periods = Array.from({ length: 12 }, (_, n) => {
      const from = START + hours(-48, 150);
      return [from - (n % 2 ? from % DAY : 0), from + hours(12, 72)] as const;
    });
    const contents = () => reportsOf(periods);
    const kept = await contents();
    await tamper('delete from tallyhook.day_balances; delete from tallyhook.day_ends');
    expect(kept).toEqual(await contents());
  });

  it('A changed kept balance is found by verify, and by a report that continues it', async () => {
    world.clock.set(END + 2 * HOUR);
    await giveAt(END + HOUR);
    await keepAll();
    const rows = await world.owner.sql<{ id: bigint }[]>`
      select id from tallyhook.accounts where lower(name) = ${`wallet:${addr(1)}`}`;
    await tamper(`update tallyhook.day_balances set balance = balance + 1
      where account_id = ${rows[0]?.id} and at = '${isoText(END)}'`);
    const { ok, findings } = await verdict();
    expect([ok, findings.map(({ kind, row }) => [kind, row])]).toEqual([
      false,
      [['day_end_off', `account wallet:${addr(1)}`]],
    ]);
    const { breaks } = await reportOf(START, END);
    expect(breaks.by_kind.map(({ kind }) => kind)).toEqual([
      'trial_balance_off',
      'account_off',
      'roll_forward_off',
    ]);
  });

  it('The writer cannot change or remove it', async () => {
    await keep();
    for (const statement of [
      'update tallyhook.day_balances set balance = 0',
      'delete from tallyhook.day_ends',
    ])
      await expect(world.db.sql.unsafe(statement)).rejects.toThrow();
  });
});

/** How many entries the session read, by index or not. */
async function entriesRead({ sql }: Tx): Promise<number> {
  const rows = await sql<{ n: bigint }[]>`
    select seq_tup_read + idx_tup_fetch as n from pg_stat_xact_user_tables
    where schemaname = 'tallyhook' and relname = 'entries'`;
  return Number(rows[0]?.n ?? 0n);
}

it('A report reads no entries of the history before its period and long after', async () => {
  const { db, url, drop } = await createDatabase();
  try {
    // Ten operations a day, with two entries each, in batches of at most half an hour.
    await generateHistory(url, 3_650, { days: 365, perUser: 5 });
    while (await keepDayEnd(db, HISTORY_END + DAY, 'UTC'));
    const reads = (from: number, to: number) =>
      db.begin(async (tx) => {
        const before = await entriesRead(tx);
        const shown = { organisation: null, timeZone: 'UTC' };
        const now = HISTORY_END + DAY;
        await reconcile(tx, { from, to, now, limits: DEFAULT_LIMITS, ...shown });
        return (await entriesRead(tx)) - before;
      });
    for (const days of [350, 180, 2]) {
      const from = HISTORY_END - days * DAY;
      // Its own 20, by several queries, and those since the newest day end.
      expect([days, (await reads(from, from + DAY)) < 200]).toEqual([days, true]);
    }
    expect(await reads(HISTORY_END - 365 * DAY, HISTORY_END)).toBeGreaterThan(7_000);
  } finally {
    await drop();
  }
}, 60_000);
