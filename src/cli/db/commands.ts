/** `tallyhook db`: its sub-commands. */
import type { Command } from 'commander';
import { exit, withExamples } from '../options.ts';

export function addDatabase(program: Command): void {
  const group = program
    .command('db')
    .description('the login of the database, psql on it, and a dump of it');
  const url = 'npx tallyhook db url --finance';
  withExamples(group, url, 'npx tallyhook db psql --finance', 'npx tallyhook db dump --out a.dump');
  withExamples(
    group
      .command('url')
      .description('print the URL of the database, for psql, DBeaver or a spreadsheet')
      .option('--finance', 'of the login that only reads finance_v1')
      .option('--json', 'print URL, host, port, database, user and password as JSON'),
    `DATABASE_PORT=5433 ${url}`,
    `psql "$(${url})"`,
  ).action(async (options) => exit((await import('./access.ts')).printUrl(options)));
  withExamples(
    group
      .command('psql')
      .description('run psql, which must be installed; what follows -- is passed to it')
      .argument('[args...]', 'arguments of psql')
      .option('--finance', 'with the login that only reads finance_v1'),
    'npx tallyhook db psql --finance',
    "npx tallyhook db psql --finance -- --csv -c 'table finance_v1.balances' > balances.csv",
  ).action(async (args, options) => exit((await import('./access.ts')).runPsql(args, options)));
  withExamples(
    group
      .command('dump')
      .description('write a backup with pg_dump, which must be installed and as new as the server')
      .requiredOption('--out <file>', 'file in the format of pg_restore; replaced when complete')
      .option('--json', 'print JSON'),
    'npx tallyhook db dump --out shop.dump',
  ).action(async (options) => exit((await import('./access.ts')).runDump(options)));
}
