/**
 * Reaches a Postgres before it is used: waits a bounded time for one that is starting, and turns
 * what is wrong with a login into one line that names the variable and says what to do.
 */
import { monotonicMs, pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { FAULT_WORDS, isTlsFault, type TlsFault } from '../../resources/faults.ts';
import { asJson, connect, type Sql } from '../connect.ts';
import { NO_BINDING } from '../connection/log-in.ts';
import { NO_TARGET, TLS_FILES } from '../connection/open-socket.ts';
import { SCRAM_FAILED } from '../connection/scram.ts';
import { parseConnection, placeOf } from '../connection/settings.ts';
import { DatabaseError, isAway, toDatabaseError } from '../sqlstate.ts';
import { SESSION } from './session.ts';

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
      if (error instanceof DatabaseError && error.code === TLS_FILES)
        throw new Failure('bad_setting', `${login.variable}: ${(raw as Error).message}`);
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
  const { keepsSession } = parseConnection(url, variable);
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

const NO_PASSWORD = 'its URL has no password: add it, or correct PGPASSWORD';
const POOLER = 'behind PgBouncer in transaction mode add ?pool_mode=transaction to the URL';
const IGNORED = `a pooler ignores the settings of the session; ${POOLER}, else connect to Postgres`;

function unset(url: string, settings: readonly string[]): string {
  return (
    `with pool_mode=transaction login ${parseConnection(url).user} itself needs the settings ` +
    `${settings.join(', ')}; run npx tallyhook setup`
  );
}

function overpowered(url: string, role: string): string {
  const { user } = parseConnection(url);
  return (
    `with pool_mode=transaction login ${user} must have the rights of ${role} ` +
    'and no others; use the login that npx tallyhook setup makes'
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

const ADVICE: Record<TlsFault, string> = {
  tls_expired: 'renew it, or set the clock',
  tls_not_yet_valid: 'replace it, or set the clock',
  tls_wrong_host: 'use the name that it is for, or sslmode=verify-ca',
  tls_unknown_ca:
    'set sslrootcert to the file of its authority, or use sslmode=require without one',
  tls_certificate: 'replace it, or correct sslrootcert and sslcrl',
  tls_protocol: 'correct ssl_min_protocol_version and ssl_max_protocol_version, or the server',
  tls_client_certificate: 'set sslcert and sslkey to the files of one that it accepts',
  tls_absent: 'turn on TLS there, or set sslmode=disable',
  tls_failed: 'see the log of the server',
};

/** What is wrong and what to do; undefined for what has nothing to do with the login. */
function lineOf({ variable, url, role }: Login, code: string): string | undefined {
  const settings = parseConnection(url, variable);
  const { host, user, database } = placeOf(settings);
  const refused = `login ${user} is refused by ${host}`;
  const lines: Record<string, string> = {
    '28P01': `${refused}; ${settings.password ? 'correct its name or password' : NO_PASSWORD}`,
    '28000': `${refused}; correct its name, allow it in pg_hba.conf, or set another sslmode`,
    '3D000': `database ${database} does not exist at ${host}; create it or correct the name`,
    '42501':
      `login ${user} may not work as ${role ?? 'itself'} in database ${database}; ` +
      'run npx tallyhook setup',
    '08P01': `${host} refuses the settings of the session; ${POOLER}, else connect to Postgres`,
    '57P03': `Postgres at ${host} is starting or stopping; wait for it and start again`,
    '53300': `${host} has no connection left; raise max_connections or end others`,
    ENOTFOUND: `host ${host} is unknown; correct the name`,
    EAI_AGAIN: `host ${host} cannot be looked up; correct the name or the name server`,
    [NO_TARGET]: `target_session_attrs: ${host} is not ${settings.targetSession}; correct one`,
    [SCRAM_FAILED]: `${host} does not prove that it knows the password; correct the address`,
    [NO_BINDING]:
      `channel_binding: ${host} has none for this login; use channel_binding=prefer, and ` +
      'sslmode=verify-full so that its certificate proves it',
  };
  // A role that does not exist is an invalid value of the session.
  const line = lines[code === '22023' ? '42501' : code];
  if (line) return `${variable}: ${line}`;
  if (isTlsFault(code)) return `${variable}: ${host}: ${FAULT_WORDS[code]}; ${ADVICE[code]}`;
  // Codes of the system, such as EACCES.
  if (!isAway(new DatabaseError(code)) && !/^E[A-Z]+$/.test(code)) return undefined;
  return `${variable}: no Postgres answers at ${host} (${code}); start it or correct the address`;
}
