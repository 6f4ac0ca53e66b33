/** Monthly partitions are created ahead and dropped after their retention; nothing else is. */
import { describe, expect, it } from 'vitest';
import { dropPartitions, makePartitions } from '../../src/db/partitions.ts';
import { useDatabase } from '../harness/database.ts';

const KEEP = { events: 400, observations: 90, deliveries: 90, attempts: 30 };
const DAY_MS = 86_400_000;

const database = await useDatabase();

const idOf = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;

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
      insert into tallyhook.events (id, type, subject, subject_seq, occurred_at, recorded_at,
        shape, data)
      values (${id}, 't', 's', 1, ${at}, ${at}, 0, '')`;
    await put(idOf(1), '2026-11-30T23:59:59.999Z');
    await put(idOf(2), '2026-12-01T00:00:00.000Z');
    await put(idOf(3), '2031-01-01T00:00:00.000Z');
    const rows = await database.owner.sql`
      select id, tableoid::regclass::text as place from tallyhook.events order by id`;
    expect(rows).toEqual([
      { id: idOf(1), place: 'tallyhook.events_2026_11' },
      { id: idOf(2), place: 'tallyhook.events_2026_12' },
      { id: idOf(3), place: 'tallyhook.events_default' },
    ]);
  });

  it('are not created while the default partition has rows of them, unlike other months', async () => {
    await makePartitions(database.db, Date.UTC(2030, 11, 15));
    expect(await months()).toContain('observations_2031_01');
    expect(await months('events')).not.toContain('events_2031_01');
    expect(await months('events')).toContain('events_2031_02');
    const rows = await database.owner.sql`
      select tableoid::regclass::text as place from tallyhook.events where id = ${idOf(3)}`;
    expect(rows).toEqual([{ place: 'tallyhook.events_default' }]);
  });

  it('are dropped when all their rows are older than their retention', async () => {
    const others = (await tables()).filter((name) => !/_\d{4}_\d{2}$/.test(name));
    const dropped = async (at: number) => {
      const there = await months();
      expect(await dropPartitions(database.db, at, KEEP)).toBe(true);
      const left = await months();
      return there.filter((name) => !left.includes(name));
    };
    const ended = Date.UTC(2026, 11, 1);
    expect(await dropped(ended + 30 * DAY_MS - 1)).toEqual([]);
    expect(await dropped(ended + 30 * DAY_MS)).toEqual(['attempts_2026_11']);
    expect(await dropped(ended + 90 * DAY_MS)).toEqual([
      'attempts_2026_12',
      'deliveries_2026_11',
      'observations_2026_11',
    ]);
    expect(await dropped(ended + 400 * DAY_MS)).toContain('events_2026_11');
    expect(await dropped(Date.UTC(2050, 0, 1))).toContain('events_2026_12');
    expect(await months()).toEqual([]);
    expect(await tables()).toEqual(others);
    // Neither is what the default partition took.
    expect(await database.owner.sql`select id from tallyhook.events`).toEqual([]);
  });

  it.each(['operations', 'entries', 'transitions', 'events_default', 'pg_class', ''])(
    'of %j are never dropped',
    async (table) => {
      const call = database.db.begin(
        ({ sql }) => sql`select tallyhook.drop_partition(${table}, '2100-01-01'::date)`,
      );
      await expect(call).rejects.toMatchObject({ code: 'TH001' });
    },
  );

  it('equal those that Postgres makes itself', async () => {
    await makePartitions(database.db, Date.UTC(2033, 0, 1));
    await database.owner.sql`create table tallyhook.events_2034 partition of tallyhook.events
      for values from ('2034-01-01') to ('2035-01-01')`;
    const [made, own] = await Promise.all(['events_2033_01', 'events_2034'].map(definition));
    await database.owner.sql`drop table tallyhook.events_2034`;
    expect(made).toEqual(own);
  });
});

/** Columns, constraints and indexes of a table, without its name. */
async function definition(table: string): Promise<unknown> {
  return database.owner.sql`
    select replace(d.text, ${table}, 'x') as text from pg_class c cross join lateral (
      select concat_ws(' ', a.attname, a.atttypid::regtype, a.attnotnull, a.attidentity,
          a.attgenerated, a.attstorage, pg_get_expr(f.adbin, f.adrelid)) as text
        from pg_attribute a left join pg_attrdef f on f.adrelid = c.oid and f.adnum = a.attnum
        where a.attrelid = c.oid and a.attnum > 0
      union all select pg_get_constraintdef(k.oid) from pg_constraint k where k.conrelid = c.oid
      union all select pg_get_indexdef(i.indexrelid) from pg_index i where i.indrelid = c.oid
      union all select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgrelid = c.oid
      union all select coalesce(c.relacl, '{}')::text
    ) d where c.oid = ${`tallyhook.${table}`}::regclass order by 1`;
}

describe('While a session reads every table, as a backup does', () => {
  const at = Date.UTC(2040, 0, 15);
  const write = (id: string) => database.db.sql`
    insert into tallyhook.events (id, type, subject, subject_seq, occurred_at, recorded_at,
      shape, data)
    values (${id}, 't', 's', 1, ${at}, '2039-01-01', 0, '')`;

  it('partitions are made when it ends, and writes do not wait for it', async () => {
    const later = await whileReading('table tallyhook.events', async () => {
      const [made] = await Promise.all([makePartitions(database.db, at), write(idOf(11))]);
      await write(idOf(12));
      return made;
    });
    expect(later).toBe(false);
    expect(await months('events_2040')).toEqual([]);
    expect(await makePartitions(database.db, at)).toBe(true);
    expect(await months('events_2040')).toHaveLength(3);
  });

  it('partitions are dropped when it ends, and writes do not wait for it', async () => {
    const next = Date.UTC(2042, 0, 15);
    const later = await whileReading('table tallyhook.numbered_events', async () => {
      const [done] = await Promise.all([dropPartitions(database.db, next, KEEP), write(idOf(13))]);
      await write(idOf(14));
      return done;
    });
    expect(later).toBe(false);
    expect(await months('events_2040')).toHaveLength(3);
    expect(await dropPartitions(database.db, next, KEEP)).toBe(true);
    expect(await months('events_2040')).toEqual([]);
  });

  it('partitions are made at once if it reads only others', async () => {
    const made = await whileReading('only tallyhook.events', () =>
      makePartitions(database.db, Date.UTC(2050, 0, 15)),
    );
    expect(made).toBe(true);
    expect(await months('events_2050')).toHaveLength(3);
  });
});

async function whileReading<T>(tables: string, work: () => Promise<T>): Promise<T> {
  return database.owner.begin(async ({ sql }) => {
    await sql.unsafe(`lock ${tables} in access share mode`);
    return work();
  });
}
