/**
 * The schema that the migrations make: as it was looked at and committed (test/schema.sql), as the
 * tables in the code say, and as drizzle-kit remembers it. After an intended change, check
 * what differs and run `npx vitest run test/db/schema.test.ts -u`.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api';
import { is } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { useDatabase } from '../harness/database.ts';
import { ENDS } from './growth/ends.ts';
import { dumpSchema } from './schema-dump.ts';

const ROOT = join(import.meta.dirname, '../..');
const REMEMBERED = join(ROOT, 'drizzle/meta');

const database = await useDatabase();
let tables: Record<string, PgTable>;

beforeAll(async () => {
  const files = globSync('src/*/tables.ts', { cwd: ROOT }).map((file) => join(ROOT, file));
  const modules = await Promise.all(files.map((file): Promise<object> => import(file)));
  const found = modules.flatMap((module) => Object.entries(module));
  tables = Object.fromEntries(found.filter(([, value]) => is(value, PgTable)));
});

/** A column as both sides can say it: `name type[ not null]`. */
const columnLine = (name: string, type: string, notNull: boolean) =>
  `${name} ${type.replace(/\s/g, '')}${notNull ? ' not null' : ''}`;

/** How the catalogue spells the types that drizzle abbreviates. */
const SPELLED: Record<string, string> = {
  'timestamptz(3)': 'timestamp(3) with time zone',
  'timestamptz(3)[]': 'timestamp(3) with time zone[]',
  'timestamptz(6)': 'timestamp(6) with time zone',
};

describe('The schema', () => {
  it('The schema is the committed one', async () => {
    await expect(await dumpSchema(database.owner)).toMatchFileSnapshot('../schema.sql');
  });

  it('The schema has the tables of the code, column for column', async () => {
    const rows = await database.owner.sql<
      { table: string; name: string; type: string; required: boolean }[]
    >`
      select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
        a.attnotnull as required
      from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'tallyhook'::regnamespace and c.relkind in ('r', 'p')
        and not c.relispartition and c.relname not in ('migrations', 'applied_migrations')`;
    const existing: Record<string, string[]> = {};
    for (const { table, name, type, required } of rows)
      existing[table] = [...(existing[table] ?? []), columnLine(name, type, required)];
    const written = Object.values(tables).map((table) => {
      const { name, schema, columns } = getTableConfig(table);
      expect(schema).toBe('tallyhook');
      const lines = columns.map((column) => {
        const type = column.getSQLType();
        return columnLine(column.name, SPELLED[type] ?? type, column.notNull || column.primary);
      });
      return [name, lines.sort()] as const;
    });
    for (const lines of Object.values(existing)) lines.sort();
    expect(existing).toEqual(Object.fromEntries(written));
  });

  it('Each table has a line in growth/ends.ts that says what ends its growth', () => {
    const names = Object.values(tables).map((table) => getTableConfig(table).name);
    const others = ['migrations', 'applied_migrations'];
    expect(Object.keys(ENDS).toSorted()).toEqual([...names, ...others].toSorted());
  });

  it('The schema has the indexes and foreign keys of the code', async () => {
    const indexes = await database.owner.sql<{ name: string; unique: boolean }[]>`
      select c.relname as name, i.indisunique as unique
      from pg_index i join pg_class c on c.oid = i.indexrelid
      where c.relnamespace = 'tallyhook'::regnamespace and not c.relispartition`;
    const references = await database.owner.sql<{ name: string }[]>`
      select conname as name from pg_constraint
      where connamespace = 'tallyhook'::regnamespace and contype = 'f'`;
    const existing = new Map(indexes.map(({ name, unique }) => [name, unique]));
    const keys = references.map(({ name }) => name);
    for (const table of Object.values(tables)) {
      const { indexes: written, foreignKeys } = getTableConfig(table);
      for (const { config } of written)
        expect([config.name, existing.get(config.name ?? '')]).toEqual([
          config.name,
          config.unique,
        ]);
      for (const key of foreignKeys) expect(keys).toContain(key.getName());
    }
  });

  it('The schema is what the one snapshot of drizzle-kit remembers, so that it generates no migration', async () => {
    const journal = JSON.parse(readFileSync(join(REMEMBERED, '_journal.json'), 'utf8'));
    const last = String(journal.entries.at(-1).idx).padStart(4, '0');
    const name = `${last}_snapshot.json`;
    // Only the last one is compared with, so that those before it are deleted.
    const kept = globSync('*_snapshot.json', { cwd: REMEMBERED });
    expect(kept, 'keep the newest of drizzle/meta, and delete those before it').toEqual([name]);
    const path = join(REMEMBERED, name);
    const { id, prevId } = JSON.parse(readFileSync(path, 'utf8'));
    const now = generateDrizzleJson(tables, prevId, ['tallyhook']);
    const text = JSON.stringify({ ...now, id, prevId }, null, 2);
    await expect(text).toMatchFileSnapshot(path);
    expect(await generateMigration(JSON.parse(text), now)).toEqual([]);
  });
});
