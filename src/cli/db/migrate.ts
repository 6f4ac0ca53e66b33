/** `tallyhook migrate`: applies missing migrations before a start, or names their files. */
import { loadConfig } from '../../daemon/daemon.ts';
import { reach } from '../../db/access/reach.ts';
import { migrate, missingMigrations } from '../../db/migrate.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';

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
