/**
 * Reaches a Postgres before it is used: waits a bounded time for one that is starting, and turns
 * what is wrong with a login into one line that names the variable and says what to do.
 */
import { monotonicMs, pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { asJson, connect, type Sql } from '../connect.ts';
import { DatabaseError, isAway, toDatabaseError } from '../sqlstate.ts';
import { poolModeOf, SESSION } from './session.ts';

export interface Login {
  /** Where the URL is from, such as `DATABASE_URL`. */
  variable: string;
  url: string;
  /** The role to set. */
  role?: string;
}

const VERSION_MIN = 150_000;
const PAUSE_MAX_MS = 1_000;

/**
 * Connects and checks the version. While nothing answers, it tries again until `waitMs` passed.
 * @param onWait is told the line when the first try failed and it waits
 * @throws Failure `bad_setting` or `database_unavailable` with one line
 */
export async function reach(
  login: Login,
  waitMs: number,
  onWait: (line: string) => void = () => {},
): Promise<void> {
  const deadline = monotonicMs() + waitMs;
  for (let pauseMs = 50; ; pauseMs = Math.min(PAUSE_MAX_MS, pauseMs * 2)) {
    try {
      return await check(login);
    } catch (raw) {
      const error = toDatabaseError(raw);
      const line = error instanceof DatabaseError ? lineOf(login, error.code) : undefined;
      if (line === undefined) throw error;
      const away = isAway(error);
      if (!away || monotonicMs() + pauseMs > deadline)
        throw new Failure(away ? 'database_unavailable' : 'bad_setting', line);
      if (pauseMs === 50) onWait(line);
    }
    await pause(pauseMs);
  }
}

/** A statement timeout that no login has. */
const OWN_TIMEOUT = { ms: 59_000, text: '59s' };

async function check({ variable, url, role }: Login): Promise<void> {
  const refuse = (line: string) => new Failure('bad_setting', `${variable}: ${line}`);
  const { keepsSession } = poolModeOf(url);
  const session = { name: 'tallyhook check', statementTimeoutMs: OWN_TIMEOUT.ms };
  const db = connect({ url, max: 1, ...session, ...(role ? { role } : {}) });
  try {
    const [row] = await db.sql<{ number: number; version: string; timeout: string }[]>`
      select current_setting('server_version_num')::int as number,
        current_setting('server_version') as version,
        current_setting('statement_timeout') as timeout`;
    if (row && row.number < VERSION_MIN)
      throw refuse(`Postgres 15 or newer is required, this is ${row.version}; upgrade it`);
    if (keepsSession) {
      if (row?.timeout !== OWN_TIMEOUT.text) throw refuse(IGNORED);
      return;
    }
    const missing = await missingSettings(db.sql);
    if (missing.length > 0) throw refuse(unset(url, missing));
    if (role && !(await worksAs(db.sql, role))) throw refuse(overpowered(url, role));
  } finally {
    await db.end(0);
  }
}

/** Such as 18. */
export async function serverMajor(url: string): Promise<number> {
  const db = connect({ url, max: 1, name: 'tallyhook check' });
  try {
    const [row] = await db.sql<{ major: number }[]>`
      select current_setting('server_version_num')::int / 10000 as major`;
    return row?.major ?? 0;
  } finally {
    await db.end(0);
  }
}

const POOLER = 'behind PgBouncer in transaction mode add ?pool_mode=transaction to the URL';
const IGNORED = `a pooler ignores the settings of the session; ${POOLER}, else connect to Postgres`;

function unset(url: string, settings: readonly string[]): string {
  const { username } = new URL(url);
  return (
    `with pool_mode=transaction login ${username} itself needs the settings ` +
    `${settings.join(', ')}; run npx tallyhook setup`
  );
}

function overpowered(url: string, role: string): string {
  const { username } = new URL(url);
  return (
    `with pool_mode=transaction login ${username} must have the rights of ${role} and no others; ` +
    'use the login that npx tallyhook setup makes'
  );
}

/** The settings of a session that the login lacks. */
async function missingSettings(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select s.key as name from jsonb_each_text(${asJson(SESSION)}::jsonb) s
    where current_setting(s.key) <> s.value order by s.key`;
  return rows.map(({ name }) => name);
}

/** Whether the login has the rights of the role, and is neither superuser nor owner of tables. */
async function worksAs(sql: Sql, role: string): Promise<boolean> {
  const [row] = await sql<{ works: boolean }[]>`
    select pg_has_role(${role}, 'usage') and not pg_has_role(relowner, 'usage') as works
    from pg_class where oid = 'tallyhook.entries'::regclass`;
  return row?.works ?? false;
}

/** What is wrong and what to do; undefined for what has nothing to do with the login. */
function lineOf({ variable, url, role }: Login, code: string): string | undefined {
  const { host, hostname, username, pathname } = new URL(url);
  const database = decodeURIComponent(pathname.slice(1));
  const refused = `login ${username} is refused by ${host}`;
  const lines: Record<string, string> = {
    '28P01': `${refused}; correct its name or password`,
    '28000': `${refused}; correct its name, allow it in pg_hba.conf, or add ?sslmode=require`,
    '3D000': `database ${database} does not exist at ${host}; create it or correct the name`,
    '42501':
      `login ${username} may not work as ${role ?? 'itself'} in database ${database}; ` +
      'run npx tallyhook setup',
    '08P01': `${host} refuses the settings of the session; ${POOLER}, else connect to Postgres`,
    '57P03': `Postgres at ${host} is starting or stopping; wait for it and start again`,
    '53300': `${host} has no connection left; raise max_connections or end others`,
    ENOTFOUND: `host ${hostname} is unknown; correct the name`,
    EAI_AGAIN: `host ${hostname} cannot be looked up; correct the name or the name server`,
  };
  // A role that does not exist is an invalid value of the session.
  const line = lines[code === '22023' ? '42501' : code];
  if (line) return `${variable}: ${line}`;
  if (!isAway(new DatabaseError(code))) return undefined;
  return `${variable}: no Postgres answers at ${host} (${code}); start it or correct the address`;
}
