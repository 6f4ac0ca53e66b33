/** Applying migrations: concurrently, twice, with errors, and to databases that do not match. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { FINANCE, WRITER } from '../../src/db/access/roles.ts';
import { connect } from '../../src/db/connect.ts';
import { findMismatch, migrate, missingMigrations, readMigrations } from '../../src/db/migrate.ts';
import { useFolder } from '../harness/folder.ts';
import { untilLockWaits } from '../harness/lock-waits.ts';
import { over, useEmptyDatabases } from './empty-database.ts';
import { dumpSchema } from './schema-dump.ts';

const DRIZZLE = join(import.meta.dirname, '../../drizzle');
const DEFINITIONS = 'definitions/*';
const databases = useEmptyDatabases();
const folder = useFolder();
let tags: string[];
/** Migrated once, for all tests that only read it. */
let migrated: string;
let empty: string;

beforeAll(async () => {
  await cp(DRIZZLE, folder, { recursive: true });
  tags = (await readMigrations()).map(({ tag }) => tag);
});

/** A copy of the migrations, for one test. */
async function copyOf<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const copy = await mkdtemp(join(tmpdir(), 'tallyhook-migrations-'));
  try {
    await cp(DRIZZLE, copy, { recursive: true });
    return await work(copy);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** Adds a migration to a copied folder. */
async function addMigration(folder: string, tag: string, text: string): Promise<void> {
  const path = join(folder, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(path, 'utf8'));
  journal.entries.push({ idx: journal.entries.length, tag });
  await writeFile(path, JSON.stringify(journal));
  await writeFile(join(folder, `${tag}.sql`), text);
}

describe('Migrating', () => {
  it('four databases of one cluster at once results in the same schema', async () => {
    const urls = await Promise.all(Array.from({ length: 4 }, () => databases.make()));
    migrated = urls[0] ?? '';
    expect(await missingMigrations(migrated)).toEqual(tags);
    const applied = await Promise.all(urls.map((url) => migrate(url)));
    expect(applied).toEqual([tags, tags, tags, tags]);
    const [first, ...others] = await Promise.all(urls.map((url) => over(url, dumpSchema)));
    for (const other of others) expect(other).toBe(first);
  });

  it('a second time applies nothing', async () => {
    expect(await migrate(migrated)).toEqual([]);
    expect(await missingMigrations(migrated)).toEqual([]);
    const known = await readMigrations();
    const mismatch = (migrations: { idx: number }[]) =>
      over(migrated, ({ sql }) => findMismatch(sql, migrations));
    expect(await mismatch(known)).toBe(null);
    expect(await mismatch(known.slice(0, 2))).toContain('0002_rights does not work with it');
    expect(await mismatch([...known, { idx: 99 }])).toContain('migrations are missing');
  });

  it('with an error applies none of the migrations', async () => {
    empty = await databases.make();
    await addMigration(
      folder,
      '0900_broken',
      'create table tallyhook.half (a int);\nselect 1 / 0;',
    );
    await expect(migrate(empty, folder)).rejects.toMatchObject({ code: '22012' });
    await over(empty, async ({ sql }) => {
      expect(await sql`select to_regnamespace('tallyhook') as there`).toEqual([{ there: null }]);
    });
  });

  it('eight times at once applies the migrations once, and all succeed', async () => {
    const applied = await Promise.all(Array.from({ length: 8 }, () => migrate(empty)));
    expect(applied.filter((done) => done.length > 0)).toEqual([tags]);
  });

  it('a table that a backup reads waits until it ends, and lets writes pass', async () => {
    const url = await databases.make();
    await migrate(url);
    await copyOf(async (copy) => {
      await addMigration(copy, '0900_wider', 'alter table tallyhook.feed add column more int');
      const backup = connect({ url, max: 2 });
      let migrating: Promise<string[]> | undefined;
      await backup.begin(async ({ sql }) => {
        await sql`lock table tallyhook.feed in access share mode`;
        migrating = migrate(url, copy);
        await untilLockWaits(backup, { everyMs: 2 });
        await backup.sql`insert into tallyhook.feed values ('written', 1)`;
        expect(await missingMigrations(url, copy)).toEqual(['0900_wider', DEFINITIONS]);
      });
      expect(await migrating).toEqual(['0900_wider', DEFINITIONS]);
      await backup.end();
    });
  });

  it('in steps makes an index while writes go on, and one that was interrupted goes on', async () => {
    const url = await databases.make();
    await migrate(url);
    const app = connect({ url, max: 2 });
    await copyOf(async (copy) => {
      const columns = 'alter table tallyhook.feed add column a int, add column b int';
      await addMigration(copy, '0900_columns', columns);
      expect(await migrate(url, copy)).toEqual(['0900_columns', DEFINITIONS]);
      await addMigration(
        copy,
        '0901_index',
        `-- in steps
         do $$ begin update tallyhook.feed set a = 1 where a is null; commit; end $$;
         --> statement-breakpoint
         create index concurrently if not exists feed_b on tallyhook.feed (b);`,
      );
      await addMigration(copy, '0902_after', 'alter table tallyhook.feed drop column a');
      const valid = () => app.sql<{ valid: boolean }[]>`
        select indisvalid as valid from pg_index where indexrelid = 'tallyhook.feed_b'::regclass`;
      const migrateAll = () => migrate(url, copy);
      let first: Promise<unknown> | undefined;
      await app.begin(async ({ sql }) => {
        // Until it ends, the index cannot be made.
        await sql`insert into tallyhook.feed values ('open', 1)`;
        first = migrateAll().catch((error) => error.code);
        await untilLockWaits(app, { everyMs: 2 });
        await app.sql`insert into tallyhook.feed values ('during', 1)`;
        expect(await valid()).toEqual([{ valid: false }]);
        expect(await missingMigrations(url, copy)).toEqual([
          '0901_index',
          '0902_after',
          DEFINITIONS,
        ]);
        await app.sql`select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'tallyhook migrate' and datname = current_database()`;
        expect(await first).toMatch(/57P01|CONNECTION/);
      });
      expect(await valid()).toEqual([{ valid: false }]);
      const applied = await Promise.all([migrateAll(), migrateAll()]);
      expect(applied.flat()).toEqual(['0901_index', '0902_after', DEFINITIONS]);
      expect(await valid()).toEqual([{ valid: true }]);
    });
    await app.end();
  });

  it('in steps refuses an index that a repeat could not make, and a pooler', async () => {
    await copyOf(async (copy) => {
      await addMigration(copy, '0900_index', '-- in steps\ncreate index x on tallyhook.feed (n);');
      await expect(readMigrations(copy)).rejects.toThrow('concurrently if not exists');
    });
    await copyOf(async (copy) => {
      await addMigration(copy, '0900_steps', '-- in steps\nselect 1;');
      await expect(migrate(`${migrated}?pool_mode=transaction`, copy)).rejects.toMatchObject({
        code: 'bad_setting',
        message: expect.stringContaining('DATABASE_OWNER_URL'),
      });
    });
  });

  it('makes functions and views again with each migration, and never without one', async () => {
    const url = await databases.make();
    await migrate(url);
    await copyOf(async (copy) => {
      const made =
        'create or replace function tallyhook.made() returns int language sql as $$select 1$$';
      await writeFile(join(copy, 'definitions/made.sql'), made);
      expect(await migrate(url, copy)).toEqual([]);
      await addMigration(copy, '0900_made', '-- for the function made');
      expect(await missingMigrations(url, copy)).toEqual(['0900_made', DEFINITIONS]);
      expect(await migrate(url, copy)).toEqual(['0900_made', DEFINITIONS]);
      const rows = await over(url, ({ sql }) => sql`select tallyhook.made() as made`);
      expect(rows).toEqual([{ made: 1 }]);
      // Those of an older program never come back.
      await expect(migrate(url)).rejects.toMatchObject({ code: 'bad_setting' });
    });
  });

  it('makes functions and views after an interruption between the migration and them', async () => {
    const url = await databases.make();
    await migrate(url);
    await over(
      url,
      ({ sql }) => sql`update tallyhook.applied_migrations set hash = '1' where idx = -1`,
    );
    expect(await missingMigrations(url)).toEqual([DEFINITIONS]);
    expect(await migrate(url)).toEqual([DEFINITIONS]);
  });

  it('tells programs of release 0.2.0 what they have to refuse, and nothing else', async () => {
    const url = await databases.make();
    await migrate(url);
    const known = () =>
      over(url, ({ sql }) => sql`select idx, hash from tallyhook.migrations order by idx`);
    const [definitions, ...others] = await known();
    expect(definitions).toEqual({ idx: -1, hash: '2' });
    expect(others.map(({ idx }) => idx)).toEqual([0, 1, 2]);
    await copyOf(async (copy) => {
      await addMigration(copy, '0900_added', '-- compatible from 0002_rights\nselect 1');
      await addMigration(copy, '0901_contracted', '-- compatible from 0900_added\nselect 1');
      await migrate(url, copy);
      expect((await known()).length).toBe(5);
      const added = { idx: (await readMigrations(copy)).at(-3)?.idx ?? 0 };
      const mismatch = (newest: { idx: number }) =>
        over(url, ({ sql }) => findMismatch(sql, [newest]));
      expect(await mismatch(added)).toBe(null);
      expect(await mismatch({ idx: 2 })).toContain('0901_contracted');
    });
  });

  it('names a compatible migration that is none', async () => {
    await copyOf(async (copy) => {
      await addMigration(copy, '0900_x', '-- compatible from 0899_none\nselect 1');
      await expect(readMigrations(copy)).rejects.toThrow('0900_x: the migration 0899_none');
    });
  });

  it('changes one table after the other, and holds the lock of none while it waits for another', async () => {
    const url = await databases.make();
    await migrate(url);
    await copyOf(async (copy) => {
      const compatible = '-- compatible from 0002_rights\n';
      for (const [tag, table] of [
        ['0900_feed', 'feed'],
        ['0901_keys', 'keys'],
      ])
        await addMigration(
          copy,
          `${tag}`,
          `${compatible}alter table tallyhook.${table} add column more int`,
        );
      const app = connect({ url, max: 2 });
      let migrating: Promise<string[]> | undefined;
      await app.begin(async ({ sql }) => {
        await sql`lock table tallyhook.keys in access share mode`;
        migrating = migrate(url, copy);
        await untilLockWaits(app, { everyMs: 2 });
        await app.sql`insert into tallyhook.feed values ('written', 1)`;
        expect(await missingMigrations(url, copy)).toEqual(['0901_keys', DEFINITIONS]);
      });
      expect(await migrating).toEqual(['0900_feed', '0901_keys', DEFINITIONS]);
      await app.end();
    });
  });

  it('works with a login that may not create databases', async () => {
    const url = new URL(await databases.make());
    const role = `owner_${url.pathname.slice(9)}`;
    await databases.run(`create role ${role} login createrole password '${role}'`);
    try {
      await databases.run(`grant ${WRITER}, ${FINANCE} to ${role}`);
      await databases.run(`alter database ${url.pathname.slice(1)} owner to ${role}`);
      url.username = role;
      url.password = role;
      expect(await migrate(url.href)).toEqual(tags);
    } finally {
      await databases.run(`drop database ${url.pathname.slice(1)} with (force)`);
      await databases.run(`drop role ${role}`);
    }
  });

  it('refuses a file that was edited after it was applied, by its name', async () => {
    const path = join(folder, '0001_guards.sql');
    await writeFile(path, `${await readFile(path, 'utf8')}\n-- edited`);
    for (const act of [migrate, missingMigrations])
      await expect(act(migrated, folder)).rejects.toMatchObject({
        code: 'bad_setting',
        message: expect.stringContaining('drizzle/0001_guards.sql'),
      });
  });

  it('refuses a database that is newer than the program', async () => {
    await over(
      migrated,
      ({ sql }) =>
        sql`insert into tallyhook.applied_migrations (idx, tag, hash, compatible_from)
          values (99, '0099_x', 'h', 98)`,
    );
    for (const act of [migrate, missingMigrations])
      await expect(act(migrated)).rejects.toMatchObject({
        code: 'bad_setting',
        message: expect.stringContaining('newer'),
      });
  });
});

it.each([
  ["encoding 'LATIN1' locale_provider libc locale 'C'", 'has encoding LATIN1'],
  ["locale_provider icu icu_locale 'tr' locale 'C' encoding 'UTF8'", 'other small letters'],
])(
  'A database with %s is refused, since it compares texts in another way',
  async (options, why) => {
    const url = await databases.make(options);
    await expect(migrate(url)).rejects.toMatchObject({
      code: 'bad_setting',
      message: expect.stringContaining(why),
    });
  },
);
