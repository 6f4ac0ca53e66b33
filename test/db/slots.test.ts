/** A pool with a bound on the statements and transactions that wait for a connection. */
import { afterAll, expect, it } from 'vitest';
import { connect } from '../../src/db/connect.ts';
import { isAway } from '../../src/db/sqlstate.ts';
import { useDatabase } from '../harness/database.ts';

const database = await useDatabase();
const pool = connect({ url: database.url, max: 2, waitingMax: 1, deadlineMs: 60_000 });
afterAll(() => pool.end());

const errorOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error) => error);

/** Locks that hold statements until the test lets them go on, in any order. */
async function holdLocks(...keys: number[]) {
  const held = keys.map(async (key) => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const locked = Promise.withResolvers<void>();
    const transaction = database.owner.begin(async ({ sql }) => {
      await sql`select pg_advisory_xact_lock(${key})`;
      locked.resolve();
      await released;
    });
    await locked.promise;
    return async () => {
      release();
      await transaction;
    };
  });
  return Promise.all(held);
}

it('A statement beyond the bound is refused, and a short one does not wait for a long one', async () => {
  const ended: string[] = [];
  const query = async (name: string, key: number) => {
    await pool.begin(({ sql }) => sql`select pg_advisory_xact_lock(${key})`);
    ended.push(name);
  };
  const [releaseLong, releaseShort] = await holdLocks(1, 2);
  const long = query('long', 1);
  const others = [query('short', 2), query('waits', 3)];
  await expect.poll(() => pool.load()).toEqual({ running: 2, waiting: 1 });
  const refused = await errorOf(pool.begin(({ sql }) => sql`select 1`));
  expect(refused).toMatchObject({ code: 'BUSY' });
  expect(isAway(refused)).toBe(true);
  await releaseShort?.();
  await Promise.all(others);
  await releaseLong?.();
  await long;
  expect(ended).toEqual(['short', 'waits', 'long']);
  expect(pool.load()).toEqual({ running: 0, waiting: 0 });
});

it('A statement whose deadline passed while it waited does not run', async () => {
  await database.owner.sql`create table public.written (id int)`;
  await database.owner.sql`grant all on public.written to public`;
  const releases = await holdLocks(1, 2);
  const busy = [1, 2].map((key) =>
    pool.begin(({ sql }) => sql`select pg_advisory_xact_lock(${key})`),
  );
  await expect.poll(() => pool.load()).toEqual({ running: 2, waiting: 0 });
  const late = pool.single(({ sql }) => sql`insert into public.written values (1)`, 100);
  expect(await errorOf(late)).toMatchObject({ code: 'DEADLINE' });
  for (const release of releases) await release();
  await Promise.all(busy);
  expect(await pool.sql`select id from public.written`).toHaveLength(0);
});
