/** Guarding triggers, durability settings, and the rights of the writer role. */
import { describe, expect, it } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { checkGuards, findMissingGuards, GUARDS } from '../../src/db/checks/guards.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { useDatabase } from '../harness/database.ts';

const database = await useDatabase();

/** Runs `check` in a transaction after a change, and rolls both back. */
async function afterChange<T>(change: string, check: (db: Db) => Promise<T>): Promise<T> {
  let seen: T | undefined;
  const undo = new Error('undo');
  await database.owner
    .begin(async (tx) => {
      await tx.sql.unsafe(change);
      seen = await check(tx as unknown as Db);
      throw undo;
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error;
    });
  return seen as T;
}

describe('Guards', () => {
  it('are all enabled after the migrations', async () => {
    expect(await findMissingGuards(database.db)).toEqual([]);
    await checkGuards(database.db);
  });

  it('are all triggers of the schema', async () => {
    const rows = await database.owner.sql<{ name: string }[]>`
      select c.relname || '.' || t.tgname as name
      from pg_trigger t join pg_class c on c.oid = t.tgrelid
      where not t.tgisinternal and c.relnamespace = 'tallyhook'::regnamespace`;
    expect(rows.map(({ name }) => name).toSorted()).toEqual([...GUARDS].toSorted());
  });

  it.each(GUARDS)('include %s, without which a start is refused by its name', async (guard) => {
    const [table, trigger] = guard.split('.');
    const changes = [
      `drop trigger ${trigger} on tallyhook.${table}`,
      `alter table tallyhook.${table} disable trigger ${trigger}`,
      `alter table tallyhook.${table} enable trigger ${trigger}`,
    ];
    for (const change of changes) {
      expect(await afterChange(change, findMissingGuards)).toEqual([guard]);
      const refused = afterChange(change, checkGuards);
      await expect(refused).rejects.toMatchObject({
        code: 'bad_setting',
        message: expect.stringContaining(guard),
      });
    }
  });

  it('are complemented by a refusal of synchronous_commit = off', async () => {
    const name = new URL(database.url).pathname.slice(1);
    await database.owner.sql.unsafe(`alter database ${name} set synchronous_commit = off`);
    const db = connect({ url: database.url, role: WRITER, max: 1 });
    try {
      await expect(checkGuards(db)).rejects.toMatchObject({
        code: 'bad_setting',
        message: expect.stringMatching(/synchronous_commit off .*set synchronous_commit = on/),
      });
    } finally {
      await db.end();
      await database.owner.sql.unsafe(`alter database ${name} reset synchronous_commit`);
    }
  });
});

describe('The writer', () => {
  /** insufficient_privilege, or "must be owner". */
  const refused = { code: '42501' };
  const month = 'tallyhook.events_default';

  it.each([
    'drop trigger entries_balance on tallyhook.entries',
    'alter table tallyhook.entries disable trigger all',
    "set session_replication_role = 'replica'",
    'create or replace function tallyhook.refuse_change() returns trigger language sql as $$$$',
    'update tallyhook.entries set amount = 0',
    'delete from tallyhook.transitions',
    'truncate tallyhook.transitions',
    'delete from tallyhook.operations',
    'delete from tallyhook.events',
    `insert into ${month} (type) values ('x')`,
    `select id from ${month}`,
    `drop table ${month}`,
    `alter table tallyhook.events detach partition ${month}`,
    'create table tallyhook.mine (a int)',
    'update tallyhook.migrations set hash = null',
    'update tallyhook.applied_migrations set compatible_from = 0',
    'create role t_more',
  ])('may not run: %s', async (statement) => {
    await expect(database.db.begin(({ sql }) => sql.unsafe(statement))).rejects.toMatchObject(
      refused,
    );
  });

  it.each(['batches', 'transactions', 'entries', 'nft_movements', 'chain', 'transitions'])(
    'and even the owner may not change or remove rows of %s',
    async (table) => {
      for (const statement of [
        `delete from tallyhook.${table}`,
        `truncate tallyhook.${table} cascade`,
      ])
        await expect(
          database.owner.begin(({ sql }) => sql.unsafe(statement)),
        ).rejects.toMatchObject({ code: 'TH001' });
    },
  );
});
