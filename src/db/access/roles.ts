/**
 * Creates the roles: `tallyhook_writer` for the daemon and `tallyhook_finance` for read-only
 * access. All databases of a cluster share them, so another process may create them at the same
 * time.
 */
import { connect, type Sql } from '../connect.ts';
import { DatabaseError, toDatabaseError } from '../sqlstate.ts';

export const WRITER = 'tallyhook_writer';
export const FINANCE = 'tallyhook_finance';

/** duplicate_object, unique_violation, and "tuple concurrently updated". */
const CONCURRENT = ['42710', '23505', 'XX000'];
/** insufficient_privilege */
const REFUSED = '42501';

/**
 * Creates missing roles, and grants them to the login if it may.
 * @throws DatabaseError 42501 when a role is missing and the login may not create it
 */
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
  if (found.length === 0) await tolerate(sql.unsafe(`create role ${role} nologin`), CONCURRENT);
  // Since Postgres 16 a membership may lack the right to SET ROLE, which is needed here.
  const [member] = await sql<{ allowed: boolean }[]>`
    select pg_has_role(${role}::name, case when current_setting('server_version_num')::int >= 160000
      then 'SET' else 'MEMBER' end) as allowed`;
  // A login that only applies migrations need not be a member.
  if (!member?.allowed)
    await tolerate(sql.unsafe(`grant ${role} to current_user`), [...CONCURRENT, REFUSED]);
}

async function tolerate(statement: PromiseLike<unknown>, codes: readonly string[]): Promise<void> {
  try {
    await statement;
  } catch (raw) {
    const error = toDatabaseError(raw);
    if (!(error instanceof DatabaseError && codes.includes(error.code))) throw error;
  }
}
