/**
 * What a login of Postgres can do: whether it has more rights than a daemon needs, how many
 * connections it gets, and whether what it commits becomes durable.
 */
import { withDeadline } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import { connect, type Queryable } from '../connect.ts';

export interface LoginFacts {
  name: string;
  isSuperuser: boolean;
  /** The connections that it may have at most, by the narrowest of these limits. */
  connections: number;
  /** Which limit that is. */
  limitedBy: 'login' | 'database' | 'server';
}

/** Of the login behind the pool, not of the role in which it works. */
export async function readLogin({ sql }: Queryable): Promise<LoginFacts> {
  const rows = await sql<LoginFacts[]>`
    with login as (
      select rolname::text as name, rolsuper as is_superuser, rolconnlimit from pg_roles
      where rolname = session_user
    ), limits as (
      select 'login' as limited_by, nullif(rolconnlimit, -1) as connections from login
      union all
      select 'database', nullif(datconnlimit, -1) from pg_database
      where datname = current_database()
      union all
      select 'server', (select setting::int from pg_settings where name = 'max_connections')
        - (select coalesce(sum(setting::int), 0)::int from pg_settings
          where name in ('superuser_reserved_connections', 'reserved_connections')))
    select name, is_superuser, connections, limited_by from login, limits
    where connections is not null
    order by connections, limited_by limit 1`;
  return must(rows[0], 'login');
}

/**
 * Commits a record of the WAL on a connection of its own, and says whether that ended in time: a
 * commit waits for a synchronous standby, however long it is away. The waiting session is told to
 * stop waiting, which a statement timeout does not do.
 */
export async function commitsWithin(url: string, role: string, ms: number): Promise<boolean> {
  const probe = connect({ url, role, max: 1, deadlineMs: 2 * ms, name: 'tallyhook check' });
  // A role may not cancel what its login does.
  const login = connect({ url, max: 1, deadlineMs: ms, name: 'tallyhook check' });
  let pid: number | undefined;
  try {
    const committed = probe.begin(async ({ sql }) => {
      const [row] = await sql<{ pid: number }[]>`
        select pg_backend_pid() as pid, pg_logical_emit_message(true, 'tallyhook.check', '')`;
      pid = row?.pid;
    });
    const inTime = withDeadline(
      committed.then(() => true),
      ms,
      () => false,
    );
    if (await inTime) return true;
    if (pid !== undefined) await login.sql`select pg_cancel_backend(${pid})`;
    await committed.catch(() => {});
    return false;
  } finally {
    await Promise.all([probe.end(0), login.end(0)]);
  }
}
