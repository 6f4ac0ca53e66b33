/**
 * The roles: `tallyhook_writer`, as which the daemon works, and `tallyhook_finance`, which only
 * reads. Roles belong to the whole cluster, so they are made in small steps that tolerate somebody
 * else having made them a moment ago.
 */
import { connect, type Sql } from './connect.ts';
import { DatabaseError, toDatabaseError } from './sqlstate.ts';

export const WRITER = 'tallyhook_writer';
export const FINANCE = 'tallyhook_finance';

/**
 * duplicate_object, unique_violation, and "tuple concurrently updated": another one was quicker.
 */
const QUICKER = new Set(['42710', '23505', 'XX000']);

/** Makes both roles if missing and lets the login work as the writer. @throws DatabaseError */
export async function ensureRoles(ownerUrl: string): Promise<void> {
  const db = connect({ url: ownerUrl, max: 1, name: 'tallyhook roles' });
  try {
    for (const role of [WRITER, FINANCE]) await ensureRole(db.sql, role);
  } finally {
    await db.end();
  }
}

async function ensureRole(sql: Sql, role: string): Promise<void> {
  const found = await sql`select 1 as one from pg_roles where rolname = ${role}`;
  if (found.length === 0) await tolerate(sql.unsafe(`create role ${role} nologin`));
  // Since Postgres 16 a membership may come without the right to SET ROLE, which is the one we
  // need.
  const member = await sql<{ may: boolean }[]>`
    select pg_has_role(${role}::name, case when current_setting('server_version_num')::int >= 160000
      then 'SET' else 'MEMBER' end) as may`;
  if (!member[0]?.may) await tolerate(sql.unsafe(`grant ${role} to current_user`));
}

async function tolerate(statement: PromiseLike<unknown>): Promise<void> {
  try {
    await statement;
  } catch (raw) {
    const error = toDatabaseError(raw);
    if (!(error instanceof DatabaseError && QUICKER.has(error.code))) throw error;
  }
}
