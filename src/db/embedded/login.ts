/** Short-lived superuser connections to a running embedded server. */
import postgres from 'postgres';
import { withDeadline } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { SUPERUSER } from './cluster.ts';

export const DATABASE = 'tallyhook';
const CONNECT_LIMIT_S = 10;
const QUERY_LIMIT_MS = 20_000;
/** invalid_password. */
const WRONG_PASSWORD = '28P01';

export interface Login {
  port: number;
  password: string;
}

/** Contains the password. */
export function databaseUrl(login: Login): string {
  return `postgres://${SUPERUSER}:${login.password}@127.0.0.1:${login.port}/${DATABASE}`;
}

/**
 * Checks the login and creates the database if it is missing.
 * @throws Failure `bad_setting` when the password is refused; else the driver's error
 */
export async function ensureDatabase(login: Login): Promise<void> {
  try {
    await query(login, 'postgres', async (sql) => {
      const found = await sql`select 1 from pg_database where datname = ${DATABASE}`;
      if (found.length === 0) await sql`create database ${sql(DATABASE)}`;
    });
  } catch (error) {
    if (!(error instanceof postgres.PostgresError) || error.code !== WRONG_PASSWORD) throw error;
    throw new Failure(
      'bad_setting',
      'the running Postgres refuses the password in postgres.password; restore that file',
    );
  }
}

/** The number of connected clients, not counting this connection. */
export async function countClients(login: Login): Promise<number> {
  let others = 0;
  await query(login, DATABASE, async (sql) => {
    const rows = await sql<{ others: number }[]>`
      select count(*)::int as others from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid()`;
    others = rows[0]?.others ?? 0;
  });
  return others;
}

/** Sets every option, because the driver takes missing ones from PG* variables. */
async function query(
  login: Login,
  database: string,
  work: (sql: postgres.Sql) => PromiseLike<unknown>,
): Promise<void> {
  const sql = postgres({
    host: '127.0.0.1',
    port: login.port,
    user: SUPERUSER,
    password: login.password,
    database,
    ssl: false,
    max: 1,
    idle_timeout: 0,
    connect_timeout: CONNECT_LIMIT_S,
    fetch_types: false,
    prepare: false,
    target_session_attrs: 'read-write',
    connection: { application_name: 'tallyhook', statement_timeout: QUERY_LIMIT_MS },
    onnotice: () => {},
  });
  try {
    await withDeadline(work(sql), QUERY_LIMIT_MS, () => {
      throw new Failure('database_unavailable', `no answer in ${QUERY_LIMIT_MS / 1000} s`);
    });
  } finally {
    await sql.end({ timeout: 1 });
  }
}
