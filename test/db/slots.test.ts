/** A pool with a bound on the statements and transactions that wait for a connection. */
import { afterAll, expect, it } from 'vitest';
import { connect } from '../../src/db/connect.ts';
import { isAway } from '../../src/db/sqlstate.ts';
import { useDatabase } from '../harness/database.ts';

const database = await useDatabase();
const pool = connect({ url: database.url, max: 2, waitingMax: 1, deadlineMs: 3_000 });
afterAll(() => pool.end());

const errorOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error) => error);

it('A statement beyond the bound is refused, and a short one does not wait for a long one', async () => {
  const ended: string[] = [];
  const query = async (name: string, ms: number) => {
    await pool.sql`select pg_sleep(${ms / 1000}::float)`;
    ended.push(name);
  };
  await query('first', 0);
  const all = [query('long', 1_500), query('short', 50), query('waits', 0)];
  await expect.poll(() => pool.load()).toEqual({ running: 2, waiting: 1 });
  const refused = await errorOf(pool.begin(({ sql }) => sql`select 1`));
  expect(refused).toMatchObject({ code: 'BUSY' });
  expect(isAway(refused)).toBe(true);
  await Promise.all(all);
  expect(ended).toEqual(['first', 'short', 'waits', 'long']);
  expect(pool.load()).toEqual({ running: 0, waiting: 0 });
});

it('A statement whose deadline passed while it waited does not run', async () => {
  await database.owner.sql`create table public.written (id int)`;
  await database.owner.sql`grant all on public.written to public`;
  const busy = [1, 2].map(() => pool.begin(({ sql }) => sql`select pg_sleep(0.4)`));
  const late = pool.single(({ sql }) => sql`insert into public.written values (1)`, 100);
  expect(await errorOf(late)).toMatchObject({ code: 'DEADLINE' });
  await Promise.all(busy);
  expect(await pool.sql`select * from public.written`).toHaveLength(0);
});
