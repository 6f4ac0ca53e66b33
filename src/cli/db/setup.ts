/**
 * An external Postgres: `tallyhook setup` makes its logins, as SQL to read or run at once, and
 * `tallyhook migrate` applies missing migrations before a start, or names their files.
 */
import { loadConfig } from '../../daemon/daemon.ts';
import { reach } from '../../db/access/reach.ts';
import { LOGINS, runSteps, setupSteps } from '../../db/access/setup.ts';
import { parseConnection, urlForPrograms } from '../../db/connection/settings.ts';
import { migrate, missingMigrations } from '../../db/migrate.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { systemRandom } from '../../kernel/random.ts';
import { printLine } from '../../kernel/telemetry/log.ts';

/** Of a login that existed. */
const UNKNOWN = '…';

export async function runSetup(text: string, options: { run?: true }): Promise<number> {
  const { database } = parseConnection(text, 'setup');
  if (database === undefined)
    throw new Failure(
      'bad_setting',
      'setup takes a URL such as postgres://admin@db.example/tallyhook',
    );
  const passwords = Object.fromEntries(
    LOGINS.map((login) => [login, Buffer.from(systemRandom.bytes(24)).toString('base64url')]),
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
    const password = existing.includes(login) ? UNKNOWN : passwords[login];
    const url = urlForPrograms(text, { user: login, password });
    return url.replace(encodeURIComponent(UNKNOWN), UNKNOWN);
  });
  printLine(`${start}DATABASE_URL=${daemon}`);
  printLine(`${start}DATABASE_OWNER_URL=${owner}`);
  printLine(`${start}For finance: ${reader}`);
  for (const login of existing) printLine(`${login} existed; its password was not changed.`);
  return 0;
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
  const tags = options.dryRun ? missing : await migrate(url);
  const result = options.dryRun ? 'Would apply' : 'Applied';
  if (options.json) printLine(jsonText({ [options.dryRun ? 'missing' : 'applied']: tags }));
  else if (tags.length === 0) printLine('The database is up to date.');
  else for (const tag of tags) printLine(`${result} drizzle/${tag}.sql`);
  return 0;
}
