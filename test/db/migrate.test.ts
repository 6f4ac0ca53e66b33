/** Applying migrations: concurrently, twice, with errors, and to databases that do not match. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';
import { isMigrated, migrate, missingMigrations, readMigrations } from '../../src/db/migrate.ts';
import { FINANCE, WRITER } from '../../src/db/roles.ts';
import { type EmptyDatabases, emptyDatabases } from './empty-database.ts';
import { dumpSchema } from './schema-dump.ts';

const DRIZZLE = join(import.meta.dirname, '../../drizzle');
let databases: EmptyDatabases;
let folder: string;
let tags: string[];
/** Migrated once, for all tests that only read it. */
let migrated: string;
let empty: string;

beforeAll(async () => {
  databases = emptyDatabases();
  folder = await mkdtemp(join(tmpdir(), 'tallyhook-migrations-'));
  await cp(DRIZZLE, folder, { recursive: true });
  tags = (await readMigrations()).map(({ tag }) => tag);
});
afterAll(async () => {
  await databases.drop();
  await rm(folder, { recursive: true, force: true });
});

async function over<T>(url: string, work: (db: Db) => Promise<T>): Promise<T> {
  const db = connect({ url, max: 1 });
  try {
    return await work(db);
  } finally {
    await db.end();
  }
}

/** Adds a migration to the copied folder. */
async function addMigration(tag: string, text: string): Promise<void> {
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
    expect(await over(migrated, ({ sql }) => isMigrated(sql, known))).toBe(true);
  });

  it('with an error applies none of the migrations', async () => {
    empty = await databases.make();
    await addMigration('0900_broken', 'create table tallyhook.half (a int);\nselect 1 / 0;');
    await expect(migrate(empty, folder)).rejects.toMatchObject({ code: '22012' });
    await over(empty, async ({ sql }) => {
      expect(await sql`select to_regnamespace('tallyhook') as there`).toEqual([{ there: null }]);
    });
  });

  it('eight times at once applies the migrations once, and all succeed', async () => {
    const applied = await Promise.all(Array.from({ length: 8 }, () => migrate(empty)));
    expect(applied.filter((done) => done.length > 0)).toEqual([tags]);
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
        sql`insert into tallyhook.migrations (idx, tag, hash) values (99, '0099_x', 'h')`,
    );
    for (const act of [migrate, missingMigrations])
      await expect(act(migrated)).rejects.toMatchObject({
        code: 'bad_setting',
        message: expect.stringContaining('newer'),
      });
    const known = await readMigrations();
    expect(await over(migrated, ({ sql }) => isMigrated(sql, known))).toBe(false);
  });
});
