/**
 * Applies the migrations of the folder `drizzle`, all in one transaction under one lock, so that
 * several daemons may start at once. An edited file and a database newer than the program are
 * refused; drizzle's own migrator does not detect either.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { sha256Hex } from '../kernel/json.ts';
import { ensureRoles } from './access/roles.ts';
import { connect, type Db, type Sql } from './connect.ts';
import { DatabaseError, isLocked, toDatabaseError } from './sqlstate.ts';

const FOLDER = join(import.meta.dirname, '../../drizzle');
/** The key of the advisory lock; arbitrary. */
const LOCK = 7240124;
/** Statements of running daemons queue behind a wait for a lock. */
const LOCK_TIMEOUT = '500ms';
/** How long a backup or report may hold a lock. */
const LOCKED_LIMIT_MS = 120_000;
const LOCKED = new Failure(
  'database_unavailable',
  'a table that a migration changes is locked by another session, such as a backup or a report; ' +
    'start again when it has ended',
);

interface Migration {
  idx: number;
  tag: string;
  statements: string[];
  hash: string;
}

export async function readMigrations(folder = FOLDER): Promise<Migration[]> {
  const journal = JSON.parse(await readFile(join(folder, 'meta/_journal.json'), 'utf8')) as {
    entries: { idx: number; tag: string }[];
  };
  return Promise.all(
    journal.entries.map(async ({ idx, tag }) => {
      const text = await readFile(join(folder, `${tag}.sql`), 'utf8');
      const statements = text.split('--> statement-breakpoint').filter((part) => part.trim());
      return { idx, tag, statements, hash: sha256Hex(text) };
    }),
  );
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
    return await applyWhenUnlocked(ownerUrl, migrations);
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
    `login ${new URL(url).username} may not ${what}; set DATABASE_OWNER_URL to a login that may, ` +
      'which npx tallyhook setup makes',
  );
}

async function applyWhenUnlocked(url: string, migrations: Migration[]): Promise<string[]> {
  const db = connect({
    url,
    max: 1,
    name: 'tallyhook migrate',
    statementTimeoutMs: 600_000,
  });
  try {
    for (let pauseMs = 1_000, waitedMs = 0; ; pauseMs *= 2) {
      const applied = await applyUnlessLocked(db, migrations);
      if (applied) return applied;
      if (waitedMs >= LOCKED_LIMIT_MS) throw LOCKED;
      await pause(pauseMs);
      waitedMs += pauseMs;
    }
  } finally {
    await db.end();
  }
}

/** Undefined when another session holds a lock; nothing is applied then. */
async function applyUnlessLocked(db: Db, migrations: Migration[]): Promise<string[] | undefined> {
  try {
    return await db.begin(async ({ sql }) => {
      try {
        return await applyMissing(sql, migrations);
      } catch (error) {
        // It would be retried at once.
        throw isLocked(error) ? LOCKED : error;
      }
    });
  } catch (error) {
    if (error === LOCKED) return undefined;
    throw error;
  }
}

/** The tags that `migrate` would apply. @throws as `migrate` */
export async function missingMigrations(url: string, folder = FOLDER): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const db = connect({ url, max: 1, name: 'tallyhook migrate' });
  try {
    const [table] = await db.sql<{ exists: boolean }[]>`
      select to_regclass('tallyhook.migrations') is not null as exists`;
    const applied = table?.exists ? await listApplied(db.sql) : [];
    for (const row of applied) refuseMismatch(row, migrations);
    return migrations.filter((m) => !applied.some((row) => row.idx === m.idx)).map((m) => m.tag);
  } catch (error) {
    throw explained(error, url, 'read the tables of Tallyhook');
  } finally {
    await db.end();
  }
}

interface Applied {
  idx: number;
  tag: string;
  hash: string;
}

async function listApplied(sql: Sql): Promise<Applied[]> {
  return sql<Applied[]>`select idx, tag, hash from tallyhook.migrations order by idx`;
}

async function applyMissing(sql: Sql, migrations: Migration[]): Promise<string[]> {
  await sql`select pg_advisory_xact_lock(${LOCK})`;
  await sql`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`;
  await sql`create schema if not exists tallyhook`;
  await sql`create table if not exists tallyhook.migrations (
    idx int primary key, tag text not null, hash text not null,
    applied_at timestamptz not null default now())`;
  const applied = await listApplied(sql);
  for (const row of applied) refuseMismatch(row, migrations);
  const missing = migrations.filter((m) => !applied.some((row) => row.idx === m.idx));
  for (const { idx, tag, hash, statements } of missing) {
    for (const statement of statements) await sql.unsafe(statement);
    await sql`insert into tallyhook.migrations (idx, tag, hash) values (${idx}, ${tag}, ${hash})`;
  }
  return missing.map((m) => m.tag);
}

function refuseMismatch(row: Applied, known: Migration[]): void {
  const own = known.find((m) => m.idx === row.idx);
  if (!own) {
    throw new Failure(
      'bad_setting',
      `the database is newer than this program (it has ${row.tag}); run a newer program`,
    );
  }
  if (own.hash !== row.hash) {
    throw new Failure(
      'bad_setting',
      `drizzle/${row.tag}.sql was edited after it was applied; restore its former content`,
    );
  }
}

/** Whether the database has the migrations of this program, lacks some, or has others. */
export async function compareSchema(
  sql: Sql,
  migrations: readonly { idx: number }[],
): Promise<'same' | 'older' | 'newer'> {
  const applied = new Set((await listApplied(sql)).map(({ idx }) => idx));
  const known = new Set(migrations.map(({ idx }) => idx));
  if (!applied.isSubsetOf(known)) return 'newer';
  return known.isSubsetOf(applied) ? 'same' : 'older';
}
