/**
 * An external Postgres: `tallyhook setup` makes its logins, as SQL to read or run at once, and
 * `tallyhook migrate` applies missing migrations before a start, or names their files.
 */
import { type Config, loadConfig } from '../../daemon/daemon.ts';
import { reach } from '../../db/access/reach.ts';
import { DAEMON, LOGINS, OWNER, runSteps, setupSteps } from '../../db/access/setup.ts';
import { parseConnection, urlForPrograms } from '../../db/connection/settings.ts';
import { migrate, missingMigrations } from '../../db/migrate.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { systemRandom } from '../../kernel/random.ts';
import { printLine } from '../../kernel/telemetry/log.ts';

/** Of a login that existed, or whose password is known. */
const UNKNOWN = '…';
/** What a statement of `setup` may contain. */
const PASSWORD = /^[A-Za-z0-9_-]{16,200}$/;

export async function runSetup(text: string, options: { run?: true }): Promise<number> {
  const { database } = parseConnection(text, 'setup');
  if (database === undefined)
    throw new Failure(
      'bad_setting',
      'setup takes a URL such as postgres://admin@db.example/tallyhook',
    );
  const given = givenPasswords(loadConfig());
  const passwords = Object.fromEntries(
    LOGINS.map((login) => [login, given.get(login) ?? newPassword()]),
  ) as Record<(typeof LOGINS)[number], string>;
  const steps = setupSteps(database, passwords);
  let existing: string[] = [];
  if (options.run) {
    await reach({ variable: 'setup', url: text }, 0);
    existing = await runSteps(text, steps);
  } else {
    for (const { statement } of steps) printLine(`${statement};`);
  }
  const start = options.run ? '' : '-- ';
  const [owner, daemon, reader] = LOGINS.map((login) => {
    const isShown = !existing.includes(login) && !given.has(login);
    const password = isShown ? passwords[login] : UNKNOWN;
    const url = urlForPrograms(text, { user: login, password });
    return url.replace(encodeURIComponent(UNKNOWN), UNKNOWN);
  });
  printLine(`${start}DATABASE_URL=${daemon}`);
  printLine(`${start}DATABASE_OWNER_URL=${owner}`);
  printLine(`${start}For finance: ${reader}`);
  for (const login of existing) printLine(`${login} existed; its password was not changed.`);
  return 0;
}

function newPassword(): string {
  return Buffer.from(systemRandom.bytes(24)).toString('base64url');
}

/**
 * Of the logins that the variables of the daemon already name, so that a deployment can decide
 * them. @throws Failure `bad_setting`
 */
function givenPasswords({ databaseUrl, databaseOwnerUrl }: Config): Map<string, string> {
  const given = new Map<string, string>();
  for (const [variable, url, login] of [
    ['DATABASE_URL', databaseUrl, DAEMON],
    ['DATABASE_OWNER_URL', databaseOwnerUrl, OWNER],
  ] as const) {
    const { user, password } = url ? parseConnection(url, variable) : {};
    if (user !== login || password === undefined) continue;
    if (!PASSWORD.test(password))
      throw new Failure(
        'bad_setting',
        `${variable}: setup takes a password of 16 to 200 letters, digits, - and _`,
      );
    given.set(login, password);
  }
  return given;
}

export async function runMigrate(options: { dryRun?: true; json?: true }): Promise<number> {
  const config = loadConfig();
  const url = config.databaseOwnerUrl ?? config.databaseUrl;
  if (!url) {
    throw new Failure(
      'bad_setting',
      'DATABASE_URL is not set; a start migrates the embedded database by itself',
    );
  }
  const variable = config.databaseOwnerUrl ? 'DATABASE_OWNER_URL' : 'DATABASE_URL';
  await reach({ variable, url }, 0);
  // Refuses a newer database before anything is written.
  const missing = await missingMigrations(url);
  // The login of the daemon may read that nothing is missing, and change nothing.
  const isDone = missing.length === 0 && !config.databaseOwnerUrl;
  const tags = options.dryRun || isDone ? missing : await migrate(url);
  const result = options.dryRun ? 'Would apply' : 'Applied';
  if (options.json) printLine(jsonText({ [options.dryRun ? 'missing' : 'applied']: tags }));
  else if (tags.length === 0) printLine('The database is up to date.');
  else for (const tag of tags) printLine(`${result} drizzle/${tag}.sql`);
  return 0;
}
