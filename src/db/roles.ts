/**
 * Creates the roles: `tallyhook_writer` for the daemon and `tallyhook_finance` for read-only
 * access. All databases of a cluster share them, so another process may create them at the same
 * time.
 */
import { connect, type Sql } from './connect.ts';
import { DatabaseError, toDatabaseError } from './sqlstate.ts';

export const WRITER = 'tallyhook_writer';
export const FINANCE = 'tallyhook_finance';

/** duplicate_object, unique_violation, and "tuple concurrently updated". */
const CONCURRENT = new Set(['42710', '23505', 'XX000']);

/** Creates missing roles and grants them to the login. @throws DatabaseError */
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
  if (found.length === 0) await tolerateConcurrent(sql.unsafe(`create role ${role} nologin`));
  // Since Postgres 16 a membership may lack the right to SET ROLE, which is needed here.
  const [member] = await sql<{ allowed: boolean }[]>`
    select pg_has_role(${role}::name, case when current_setting('server_version_num')::int >= 160000
      then 'SET' else 'MEMBER' end) as allowed`;
  if (!member?.allowed) await tolerateConcurrent(sql.unsafe(`grant ${role} to current_user`));
}

async function tolerateConcurrent(statement: PromiseLike<unknown>): Promise<void> {
  try {
    await statement;
  } catch (raw) {
    const error = toDatabaseError(raw);
    if (!(error instanceof DatabaseError && CONCURRENT.has(error.code))) throw error;
  }
}
