/**
 * The first connection to a server that runs: it proves that the password is right and that the
 * server works, and makes the database if it is missing. It keeps nothing open.
 */
import postgres from 'postgres';
import { withDeadline } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { SUPERUSER } from './cluster.ts';

const DATABASE = 'tallyhook';
const CONNECT_LIMIT_S = 10;
const QUERY_LIMIT_MS = 20_000;
/** The SQLSTATE of a refused password. */
const WRONG_PASSWORD = '28P01';

/** Where and how to log in. */
export interface Login {
  port: number;
  password: string;
}

/** The URL of our database for that login. Holds the password. */
export function databaseUrl(login: Login): string {
  return `postgres://${SUPERUSER}:${login.password}@127.0.0.1:${login.port}/${DATABASE}`;
}

/**
 * Makes sure that the login works and that the database is there.
 * Fails with `bad_setting` when the password is refused, with the driver's error otherwise.
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
      'the running Postgres does not take the password in postgres.password; restore that file',
    );
  }
}

/** How many clients are connected to the server, this question aside. */
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

/** Every option is given: the driver would take what is missing from PG* in the environment. */
async function query(
  login: Login,
  database: string,
  ask: (sql: postgres.Sql) => PromiseLike<unknown>,
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
    await withDeadline(ask(sql), QUERY_LIMIT_MS, () => {
      throw new Failure('database_unavailable', `no answer in ${QUERY_LIMIT_MS / 1000} s`);
    });
  } finally {
    await sql.end({ timeout: 1 });
  }
}
