/** What a transaction does after its commit. */
import { expect, it } from 'vitest';
import { useDatabase } from '../harness/database.ts';

const { db } = await useDatabase();

it('What a transaction asks for after its commit happens once, and never after a rollback', async () => {
  const done: string[] = [];
  const fails = db.begin(async ({ sql, afterCommit }) => {
    afterCommit(() => done.push('failed'));
    await sql`select 1 / 0`;
  });
  await expect(fails).rejects.toMatchObject({ code: '22012' });
  let tries = 0;
  await db.begin(async ({ sql, afterCommit }) => {
    tries += 1;
    afterCommit(() => done.push(`try ${tries}`));
    if (tries === 1) await sql.unsafe(`do $$ begin raise sqlstate '40001'; end $$`);
    expect(done).toEqual([]);
  });
  expect(done).toEqual(['try 2']);
});
