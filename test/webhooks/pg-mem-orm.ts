/**
 * Drizzle over pg-mem with tables of our migration, for fast tests of stores that use no amounts,
 * locks or transactions.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/pg-proxy';
import { newDb } from 'pg-mem';
import type { Orm } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';

const MIGRATIONS = join(import.meta.dirname, '../../drizzle/*.sql');

/** An empty database with these tables; `reset` empties it. */
export function openMemory(...tables: string[]): { orm: Orm; reset(): void } {
  const memory = newDb();
  memory.createSchema('tallyhook');
  const [first = '', ...later] = globSync(MIGRATIONS).sort();
  const text = readFileSync(first, 'utf8');
  const changes = later.map((path) => readFileSync(path, 'utf8')).join('\n');
  for (const table of tables) {
    const create = new RegExp(`CREATE TABLE "tallyhook"."${table}" \\([^;]*\\);`).exec(text)?.[0];
    if (!create) throw new Error(`the migration has no table ${table}`);
    const added = new RegExp(`ALTER TABLE "tallyhook"."${table}" ADD COLUMN [^;]*;`, 'g');
    for (const statement of [create, ...(changes.match(added) ?? [])])
      memory.public.none(statement.replaceAll('timestamptz(3)', 'timestamptz'));
  }
  const { Client } = memory.adapters.createPg();
  const client = new Client();
  const empty = memory.backup();
  const orm = drizzle(async (sql, values, method) => {
    const { rows } = (await client.query(sql, values.map(toDriver))) as { rows: object[] };
    if (method === 'execute') return { rows };
    return { rows: rows.map((row) => Object.values(row).map(fromDriver)) };
  });
  return { orm: orm as unknown as Orm, reset: () => empty.restore() };
}

/** Drizzle sends arrays as Postgres text; pg-mem takes arrays. */
function toDriver(value: unknown): unknown {
  const list = typeof value === 'string' ? /^\{(.*)\}$/.exec(value) : null;
  return list ? (list[1] ?? '').split(',').map((item) => item.replace(/^"|"$/g, '')) : value;
}

function fromDriver(value: unknown): unknown {
  return value instanceof Date ? isoText(value.getTime()) : value;
}
