/**
 * Applies the migrations of the folder `drizzle` in transactions under one lock, so that several
 * daemons may start at once. An edited file is refused; drizzle's own migrator does not detect it.
 *
 * The line `-- compatible from 0002_rights` of a migration says that programs work with it that
 * know none newer than that one: they run on while and after it is applied. Without such a line
 * only programs that know the migration work with the database; others refuse it. A compatible
 * migration is a transaction of its own, so that it holds the lock of no table while it waits for
 * that of another one, as the statements of daemons do.
 *
 * A file whose first line is `-- in steps` changes a large table while writes go on. Each of its
 * statements runs by itself outside of a transaction, such as `create index concurrently if not
 * exists`. An interrupted migration begins again with its first statement, so each must be
 * repeatable; an index that the interruption left invalid is dropped before.
 *
 * Functions and views stand once, in `drizzle/definitions`, as `create or replace`. All of them
 * are made again after the newest migration, with it if it is a transaction. So a change of them
 * needs a migration, be it an empty one; it also drops what gets other arguments or another result.
 */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DAY_MS, pause } from '../kernel/clock.ts';
import { assert, Failure, must } from '../kernel/errors.ts';
import { sha256Hex } from '../kernel/json.ts';
import { ensureRoles, WRITER } from './access/roles.ts';
import { connect, type Db, type Queryable, type Sql } from './connect.ts';
import { parseConnection } from './connection/settings.ts';
import { DatabaseError, isLocked, toDatabaseError } from './sqlstate.ts';

const FOLDER = join(import.meta.dirname, '../../drizzle');
/** The key of the advisory lock; arbitrary. */
const LOCK = 7240124;
/** Statements of daemons queue behind a wait for a lock; so it ends soon, and is repeated. */
const LOCK_TIMEOUT = '100ms';
const LOCKED_PAUSE_MS = { first: 200, longest: 5_000 };
/** How long a backup, a report or another migrating program may hold a lock. */
const LOCKED_LIMIT_MS = 120_000;
const MIGRATING_POLL_MS = 200;
const TRANSACTION_MS = 600_000;
/** An index on a large table takes hours. */
const STEP_MS = DAY_MS;
const LOCKED = new Failure(
  'database_unavailable',
  'a table that a migration changes is locked by another session, such as a backup or a report; ' +
    'start again when it has ended',
);
const MIGRATING = new Failure(
  'database_unavailable',
  'another program is migrating the database; start again when it has ended',
);
const POOLED = new Failure(
  'bad_setting',
  'a migration runs in steps, which a pooler in transaction mode cannot; set DATABASE_OWNER_URL ' +
    'to a login at Postgres itself',
);

interface Migration {
  idx: number;
  tag: string;
  statements: string[];
  hash: string;
  inSteps: boolean;
  /** The newest migration that a program knows which works with this one. */
  compatibleFrom: number;
}

const COMPATIBLE = /^-- compatible from (\w+)$/m;
const IN_STEPS = '-- in steps\n';
const REPEATABLE = 'in steps an index needs `concurrently if not exists`';
const NEW_INDEX = /create (?:unique )?index\b(?: concurrently if not exists (\w+))?/i;

/** The definitions, as the last migration; their hash is the number of the one before. */
const DEFINITIONS = { idx: -1, tag: 'definitions/*', inSteps: false, compatibleFrom: -1 };
/** The newest migration of release 0.2.0, which refuses what else is in `tallyhook.migrations`. */
const NEWEST_OF_0_2_0 = 2;
const BREAKPOINT = '--> statement-breakpoint';

/** The migrations in their order, and the definitions. */
export async function readMigrations(folder = FOLDER): Promise<Migration[]> {
  const journal = JSON.parse(await readFile(join(folder, 'meta/_journal.json'), 'utf8')) as {
    entries: { idx: number; tag: string }[];
  };
  const numbered = await Promise.all(
    journal.entries.map(async ({ idx, tag }) => {
      const text = await readFile(join(folder, `${tag}.sql`), 'utf8');
      const statements = statementsOf(text);
      const inSteps = text.startsWith(IN_STEPS);
      const isRepeatable = (step: string) => !NEW_INDEX.test(step) || indexOf(step) !== undefined;
      assert(!inSteps || statements.every(isRepeatable), `${tag}: ${REPEATABLE}`);
      const from = COMPATIBLE.exec(text)?.[1] ?? tag;
      const compatibleFrom = must(
        journal.entries.find((entry) => entry.tag === from),
        `${tag}: the migration ${from}`,
      ).idx;
      return { idx, tag, statements, hash: sha256Hex(text), inSteps, compatibleFrom };
    }),
  );
  const files = globSync('definitions/*.sql', { cwd: folder }).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const hash = String(must(numbered.at(-1), 'migration').idx);
  return [...numbered, { ...DEFINITIONS, statements: texts.flatMap(statementsOf), hash }];
}

function statementsOf(text: string): string[] {
  return text.split(BREAKPOINT).filter((part) => part.trim());
}

/**
 * Applies missing migrations; returns their tags.
 * @param ownerUrl a login that may create schemas and roles
 * @throws Failure `bad_setting` for a newer database or an edited migration, `database_unavailable`
 * when another session keeps a table locked
 */
export async function migrate(ownerUrl: string, folder = FOLDER): Promise<string[]> {
  const migrations = await readMigrations(folder);
  try {
    await ensureRoles(ownerUrl);
    return await applyMissing(ownerUrl, migrations);
  } catch (error) {
    throw explained(error, ownerUrl, 'change the tables of Tallyhook');
  }
}

/** @throws Failure `bad_setting` when migrations are missing */
export function refuseUnmigrated(missing: readonly string[]): void {
  if (missing.length === 0) return;
  const lacks = `the database is older than this program: it lacks ${missing.join(', ')}`;
  throw new Failure('bad_setting', `${lacks}; run npx tallyhook migrate`);
}

/** insufficient_privilege as one line that says what to do. */
function explained(raw: unknown, url: string, what: string): unknown {
  const error = toDatabaseError(raw);
  if (!(error instanceof DatabaseError && error.code === '42501')) return error;
  return new Failure(
    'bad_setting',
    `login ${parseConnection(url).user} may not ${what}; set DATABASE_OWNER_URL to a login that ` +
      'may, which npx tallyhook setup makes',
  );
}

async function applyMissing(url: string, migrations: Migration[]): Promise<string[]> {
  const db = connect({ url, max: 1, name: 'tallyhook migrate', statementTimeoutMs: STEP_MS });
  try {
    await checkText(db);
    const applied: string[] = [];
    for (const part of partsOf(migrations, (await listApplied(db.sql)).length === 0)) {
      const [first] = part;
      const apply = () =>
        first?.inSteps
          ? applyInSteps(db, url, first, migrations)
          : applyInTransaction(db, part, migrations);
      applied.push(...(await whenUnlocked(apply)));
    }
    return applied;
  } finally {
    await db.end();
  }
}

/**
 * Neighbours that share a transaction, and by itself each that runs in steps or is compatible. On
 * an empty database no program works.
 */
function partsOf(migrations: readonly Migration[], isEmpty: boolean): Migration[][] {
  const parts: Migration[][] = [];
  const isAlone = ({ idx, inSteps, compatibleFrom }: Migration) =>
    inSteps || (!isEmpty && compatibleFrom < idx);
  for (const migration of migrations) {
    const last = parts.at(-1);
    if (!last || isAlone(migration) || last.some(isAlone)) parts.push([migration]);
    else last.push(migration);
  }
  return parts;
}

async function whenUnlocked<T>(work: () => Promise<T>): Promise<T> {
  for (let lockedMs = LOCKED_PAUSE_MS.first, waitedMs = 0; ; ) {
    try {
      return await work();
    } catch (error) {
      if ((error !== LOCKED && error !== MIGRATING) || waitedMs >= LOCKED_LIMIT_MS) throw error;
      const pauseMs = error === LOCKED ? lockedMs : MIGRATING_POLL_MS;
      if (error === LOCKED) lockedMs = Math.min(2 * lockedMs, LOCKED_PAUSE_MS.longest);
      await pause(pauseMs);
      waitedMs += pauseMs;
    }
  }
}

/** Applies all of the part or nothing. @throws LOCKED, MIGRATING */
function applyInTransaction(db: Db, part: Migration[], known: Migration[]): Promise<string[]> {
  const apply = async (sql: Sql) => {
    // An index that another program makes concurrently would wait for the end of a wait here.
    await refuseUnless(sql`select pg_try_advisory_xact_lock(${LOCK}) as free`);
    await sql`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`;
    await sql`create schema if not exists tallyhook`;
    await makeTables(sql);
    const missing = await missingOf(sql, part, known);
    for (const migration of missing) {
      for (const statement of migration.statements) await sql.unsafe(statement);
      await insertApplied(sql, migration);
    }
    return missing.map(({ tag }) => tag);
  };
  // `begin` would retry at once what a lock ended.
  return db.begin(({ sql }) => apply(sql).catch(throwLocked), { deadlineMs: TRANSACTION_MS });
}

/**
 * A database of release 0.2.0 has only the first of these tables. That release refuses what it does
 * not know in it, so it gets what the release has to refuse.
 */
async function makeTables(sql: Sql): Promise<void> {
  await sql`create table if not exists tallyhook.migrations (
    idx int primary key, tag text not null, hash text not null,
    applied_at timestamptz not null default now())`;
  if (await hasTable(sql, 'applied_migrations')) return;
  await sql`create table tallyhook.applied_migrations (
    idx int primary key, tag text not null, hash text not null, compatible_from int not null,
    applied_at timestamptz not null default now())`;
  await sql`grant select on tallyhook.applied_migrations to ${sql(WRITER)}`;
  await sql`
    insert into tallyhook.applied_migrations (idx, tag, hash, compatible_from, applied_at)
    select idx, tag, hash, idx, applied_at from tallyhook.migrations`;
}

async function hasTable(sql: Sql, name: 'migrations' | 'applied_migrations'): Promise<boolean> {
  const [row] = await sql<{ exists: boolean }[]>`
    select to_regclass(${`tallyhook.${name}`}) is not null as exists`;
  return row?.exists ?? false;
}

/** @throws LOCKED, MIGRATING */
async function applyInSteps(
  { sql }: Db,
  url: string,
  migration: Migration,
  known: Migration[],
): Promise<string[]> {
  if ((await missingOf(sql, [migration], known)).length === 0) return [];
  if (!parseConnection(url).keepsSession) throw POOLED;
  // The lock lasts until the session ends, which may be after a kill of this program.
  await refuseUnless(sql`select pg_try_advisory_lock(${LOCK}) as free`);
  const missing = await missingOf(sql, [migration], known);
  for (const statement of missing.flatMap(({ statements }) => statements)) {
    // What runs concurrently waits for others without being in their way.
    const timeout = /\bconcurrently\b/i.test(statement) ? '0' : LOCK_TIMEOUT;
    await sql`select set_config('lock_timeout', ${timeout}, false)`;
    const index = indexOf(statement);
    if (index && (await isInvalid(sql, index)))
      await sql.unsafe(`drop index concurrently tallyhook.${index}`);
    await sql.unsafe(statement).catch(throwLocked);
  }
  for (const one of missing) await insertApplied(sql, one);
  return missing.map(({ tag }) => tag);
}

/** The index that a statement makes concurrently. */
function indexOf(statement: string): string | undefined {
  return NEW_INDEX.exec(statement)?.[1];
}

async function isInvalid(sql: Sql, index: string): Promise<boolean> {
  const rows = await sql`
    select from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'tallyhook'::regnamespace and c.relname = ${index}
      and not i.indisvalid`;
  return rows.length > 0;
}

async function refuseUnless(rows: PromiseLike<readonly { free?: boolean }[]>): Promise<void> {
  if (!(await rows)[0]?.free) throw MIGRATING;
}

function throwLocked(error: unknown): never {
  throw isLocked(error) ? LOCKED : error;
}

/** The tags that `migrate` would apply. @throws as `migrate` */
export async function missingMigrations(url: string, folder = FOLDER): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const db = connect({ url, max: 1, name: 'tallyhook migrate' });
  try {
    const missing = await missingOf(db.sql, migrations, migrations);
    return missing.map(({ tag }) => tag);
  } catch (error) {
    throw explained(error, url, 'read the tables of Tallyhook');
  } finally {
    await db.end();
  }
}

interface Applied extends Pick<Migration, 'idx' | 'tag' | 'hash' | 'compatibleFrom'> {}

/** None of an empty database. */
async function listApplied(sql: Sql): Promise<Applied[]> {
  if (await hasTable(sql, 'applied_migrations'))
    return sql<Applied[]>`
      select idx, tag, hash, compatible_from from tallyhook.applied_migrations order by idx`;
  if (!(await hasTable(sql, 'migrations'))) return [];
  return sql<Applied[]>`
    select idx, tag, hash, idx as compatible_from from tallyhook.migrations order by idx`;
}

async function missingOf(sql: Sql, of: Migration[], known: Migration[]): Promise<Migration[]> {
  const applied = await listApplied(sql);
  for (const row of applied) refuseMismatch(row, known);
  return of.filter((m) => !applied.some((row) => isApplied(m, row)));
}

/** Newer definitions are compatible if the migration is that they were made with. */
function isApplied(migration: Migration, row: Applied): boolean {
  if (migration.idx !== row.idx) return false;
  if (migration.idx === DEFINITIONS.idx) return Number(row.hash) >= Number(migration.hash);
  return migration.hash === row.hash;
}

async function insertApplied(sql: Sql, migration: Migration): Promise<void> {
  const { idx, tag, hash, compatibleFrom } = migration;
  await sql`
    insert into tallyhook.applied_migrations (idx, tag, hash, compatible_from)
    values (${idx}, ${tag}, ${hash}, ${compatibleFrom})
    on conflict (idx) do update set hash = excluded.hash, applied_at = now()`;
  const isDefinitions = idx === DEFINITIONS.idx;
  if (idx <= NEWEST_OF_0_2_0 || compatibleFrom > NEWEST_OF_0_2_0)
    await sql`
      insert into tallyhook.migrations (idx, tag, hash)
      values (${idx}, ${tag}, ${isDefinitions ? String(NEWEST_OF_0_2_0) : hash})
      on conflict (idx) do nothing`;
}

function refuseMismatch(row: Applied, known: Migration[]): void {
  const own = known.find((m) => m.idx === row.idx);
  if (!own) {
    if (isCompatible(row, known)) return;
    throw new Failure('bad_setting', newerText(row.tag));
  }
  if (own.hash !== row.hash && own.idx !== DEFINITIONS.idx) {
    throw new Failure(
      'bad_setting',
      `drizzle/${row.tag}.sql was edited after it was applied; restore its former content`,
    );
  }
}

function isCompatible(row: Applied, known: readonly Pick<Migration, 'idx'>[]): boolean {
  return known.some(({ idx }) => idx >= row.compatibleFrom);
}

function newerText(tag: string): string {
  const newer = `the database is newer than this program: ${tag} does not work with it`;
  return `${newer}; run a newer program`;
}

/**
 * Why this program cannot work with the database: that lacks a migration, or has a newer one that
 * is not compatible. Null when it can.
 */
export async function findMismatch(
  sql: Sql,
  migrations: readonly Pick<Migration, 'idx'>[],
): Promise<string | null> {
  const rows = await listApplied(sql);
  const known = new Set(migrations.map(({ idx }) => idx));
  const newer = rows.find((row) => !known.has(row.idx) && !isCompatible(row, migrations));
  if (newer) return newerText(newer.tag);
  return known.isSubsetOf(new Set(rows.map(({ idx }) => idx)))
    ? null
    : 'migrations are missing; run `npx tallyhook migrate`';
}

/**
 * Whether the database compares addresses, hashes and names by the forms of the kernel.
 * @throws Failure `bad_setting` that says how the database has to be created
 */
async function checkText(db: Queryable): Promise<void> {
  const rows = await db.sql<{ encoding: string; lower: string }[]>`
    select getdatabaseencoding() as encoding, lower('ABCDEFGHIJKLMNOPQRSTUVWXYZ') as lower`;
  const { encoding, lower } = must(rows[0], 'row');
  if (encoding === 'UTF8' && lower === 'abcdefghijklmnopqrstuvwxyz') return;
  const found = encoding === 'UTF8' ? 'a locale with other small letters' : `encoding ${encoding}`;
  throw new Failure(
    'bad_setting',
    `the database has ${found}; create one with encoding UTF8 and locale C.UTF-8`,
  );
}
