/**
 * The logins that Tallyhook works with, as SQL for a login that may create roles and owns the
 * database; a superuser is not needed. The same statements serve Postgres 15 to 18, and repeating
 * them changes nothing: a login that exists keeps its password.
 */
import { Failure } from '../../kernel/errors.ts';
import { connect } from '../connect.ts';
import { parseConnection } from '../connection/settings.ts';
import { DatabaseError, toDatabaseError } from '../sqlstate.ts';
import { FINANCE, WRITER } from './roles.ts';
import { SESSION } from './session.ts';

/** The login that applies migrations, that of the daemon, and the one of finance. */
export const LOGINS = ['tallyhook_owner', 'tallyhook_daemon', 'tallyhook_reader'] as const;
export const [OWNER, DAEMON, READER] = LOGINS;

export interface Step {
  /** As in "may not …". */
  does: string;
  needs: string;
  statement: string;
}

const ADMIN = 'the admin option on it, which the login that created it has (or CREATEROLE on 15)';

/** @param passwords of letters, digits, - and _ */
export function setupSteps(
  database: string,
  passwords: Record<(typeof LOGINS)[number], string>,
): Step[] {
  const name = nameOf(database);
  return [
    ...[WRITER, FINANCE].map((role) => creation(role, 'nologin')),
    ...LOGINS.map((login) => creation(login, `login password '${passwords[login]}'`)),
    ...[`${WRITER} to ${DAEMON}`, `${FINANCE} to ${READER}`].map((what) => grant(what, ADMIN)),
    ...[
      `connect on database ${name} to ${LOGINS.join(', ')}`,
      `create on database ${name} to ${OWNER}`,
    ].map((what) => grant(what, 'to own the database')),
    ...Object.entries(SESSION).map(([setting, value]) => setTo(DAEMON, setting, value)),
    ...settingsOfReader(),
  ];
}

/** The login of finance alone, whose password becomes this one. */
export function financeSteps(database: string, password: string): Step[] {
  const secret = `login password '${password}'`;
  return [
    creation(READER, secret),
    alteration(READER, secret),
    grant(`${FINANCE} to ${READER}`, ADMIN),
    grant(`connect on database ${nameOf(database)} to ${READER}`, 'to own the database'),
    ...settingsOfReader(),
  ];
}

function settingsOfReader(): Step[] {
  return [setTo(READER, 'jit', 'off'), setTo(READER, 'default_transaction_read_only', 'on')];
}

function nameOf(database: string): string {
  return `"${database.replaceAll('"', '""')}"`;
}

function creation(role: string, options: string): Step {
  const statement = `do $$ begin create role ${role} ${options};
  exception when duplicate_object then null; end $$`;
  return { does: `create the role ${role}`, needs: 'CREATEROLE', statement };
}

function grant(what: string, needs: string): Step {
  return { does: `grant ${what}`, needs, statement: `grant ${what}` };
}

function setTo(role: string, setting: string, value: string): Step {
  return alteration(role, `set ${setting} = '${value}'`);
}

function alteration(role: string, change: string): Step {
  const statement = `alter role ${role} ${change}`;
  return { does: `change the role ${role}`, needs: ADMIN, statement };
}

/**
 * Runs the steps in one transaction; returns the logins that existed before.
 * @throws Failure `bad_setting` that names the missing right
 */
export async function runSteps(url: string, steps: readonly Step[]): Promise<string[]> {
  const db = connect({ url, max: 1, name: 'tallyhook setup' });
  try {
    return await db.begin(async ({ sql }) => {
      const rows = await sql<{ name: string }[]>`
        select rolname as name from pg_roles where rolname = any(${[...LOGINS]}::text[])`;
      for (const { does, needs, statement } of steps) {
        try {
          await sql.unsafe(statement);
        } catch (raw) {
          const error = toDatabaseError(raw);
          if (!(error instanceof DatabaseError && error.code === '42501')) throw error;
          const login = parseConnection(url).user;
          throw new Failure('bad_setting', `login ${login} may not ${does}; it needs ${needs}`);
        }
      }
      return rows.map((row) => row.name);
    });
  } finally {
    await db.end();
  }
}
