/** Monthly partitions are created ahead and dropped after their retention; nothing else is. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dropPartitions, makePartitions } from '../../src/db/partitions.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';

const KEEP = { events: 400, observations: 90, deliveries: 90, attempts: 30 };
const DAY_MS = 86_400_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

async function months(table = ''): Promise<string[]> {
  const rows = await database.owner.sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where c.relkind = 'r' and c.relname ~ '_\\d{4}_\\d{2}$' and c.relname like ${`${table}%`}
    order by c.relname`;
  return rows.map(({ name }) => name);
}

async function tables(): Promise<string[]> {
  const rows = await database.owner.sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'tallyhook'::regnamespace
    and relkind in ('r', 'p') order by relname`;
  return rows.map(({ name }) => name);
}

describe('Monthly partitions', () => {
  it('are created by the writer for this month and the next ones, also twice and concurrently', async () => {
    const before = await tables();
    const now = Date.UTC(2026, 10, 30, 23, 59);
    await Promise.all([1, 2, 3].map(() => makePartitions(database.db, now)));
    await makePartitions(database.db, now);
    expect(await months('events')).toEqual(['events_2026_11', 'events_2026_12', 'events_2027_01']);
    expect(await months()).toHaveLength(15);
    expect((await tables()).filter((name) => !/_\d{4}_\d{2}$/.test(name))).toEqual(before);
  });

  it('receive the rows of their month, to the millisecond', async () => {
    const put = (id: string, at: string) => database.db.sql`
      insert into tallyhook.events (id, type, subject, subject_seq, occurred_at, recorded_at, body)
      values (${id}, 't', 's', 1, ${at}, ${at}, '{}')`;
    await put('evt_1', '2026-11-30T23:59:59.999Z');
    await put('evt_2', '2026-12-01T00:00:00.000Z');
    await put('evt_3', '2031-01-01T00:00:00.000Z');
    const rows = await database.owner.sql`
      select id, tableoid::regclass::text as place from tallyhook.events order by id`;
    expect(rows).toEqual([
      { id: 'evt_1', place: 'tallyhook.events_2026_11' },
      { id: 'evt_2', place: 'tallyhook.events_2026_12' },
      { id: 'evt_3', place: 'tallyhook.events_default' },
    ]);
  });

  it('are not created while the default partition has rows of them, unlike other months', async () => {
    await makePartitions(database.db, Date.UTC(2030, 11, 15));
    expect(await months()).toContain('observations_2031_01');
    expect(await months('events')).not.toContain('events_2031_01');
    expect(await months('events')).toContain('events_2031_02');
    const rows = await database.owner.sql`
      select tableoid::regclass::text as place from tallyhook.events where id = 'evt_3'`;
    expect(rows).toEqual([{ place: 'tallyhook.events_default' }]);
  });

  it('are dropped when all their rows are older than their retention', async () => {
    const others = (await tables()).filter((name) => !/_\d{4}_\d{2}$/.test(name));
    const dropped = (at: number) => dropPartitions(database.db, at, KEEP);
    const ended = Date.UTC(2026, 11, 1);
    expect(await dropped(ended + 30 * DAY_MS - 1)).toEqual([]);
    expect(await dropped(ended + 30 * DAY_MS)).toEqual(['attempts_2026_11']);
    expect(await dropped(ended + 90 * DAY_MS)).toEqual([
      'observations_2026_11',
      'deliveries_2026_11',
      'attempts_2026_12',
    ]);
    expect(await dropped(ended + 400 * DAY_MS)).toContain('events_2026_11');
    expect(await dropped(Date.UTC(2050, 0, 1))).toContain('events_2026_12');
    expect(await months()).toEqual([]);
    expect(await tables()).toEqual(others);
    const rows = await database.owner.sql`select id from tallyhook.events`;
    expect(rows).toEqual([{ id: 'evt_3' }]);
  });

  it.each(['operations', 'entries', 'transitions', 'events_default', 'pg_class', ''])(
    'of %j are never dropped',
    async (table) => {
      const call = database.db.begin(
        ({ sql }) => sql`select tallyhook.drop_partitions(${table}, '2100-01-01'::date)`,
      );
      await expect(call).rejects.toMatchObject({ code: 'TH001' });
    },
  );
});
