/**
 * `tallyhook db`: logins for clients of people. The embedded server has the password of finance in
 * DATA_DIR; `npx tallyhook setup` prints that of an external one, and nothing keeps it.
 */
import { spawn } from 'node:child_process';
import { rename, rm, writeFile } from 'node:fs/promises';
import { type Config, loadConfig } from '../../daemon/daemon.ts';
import { PUBLICATION, publishEvents } from '../../db/access/publication.ts';
import { serverMajor } from '../../db/access/reach.ts';
import { READER } from '../../db/access/setup.ts';
import { parseConnection, urlForPrograms } from '../../db/connection/settings.ts';
import { type EmbeddedServer, openEmbedded } from '../../db/embedded/embedded.ts';
import { missingMigrations, refuseUnmigrated } from '../../db/migrate.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import { requireDatabase } from '../installation.ts';

interface Login {
  finance?: true;
}

export async function printUrl(options: Login & { json?: true }): Promise<number> {
  return await withLogin(options, (url, { config, server }) => {
    if (options.json) printLine(jsonText(partsOf(url)));
    else printLine(url);
    if (server && config.database.embedded_port === 0)
      note('the port changes when another program has taken it; DATABASE_PORT fixes it');
    if (server && server.how !== 'adopted')
      note('the embedded Postgres runs while a daemon runs: npx tallyhook start');
    if (!server && options.finance)
      note(`npx tallyhook setup printed the password of ${READER} once; put it into the URL`);
    return Promise.resolve(0);
  });
}

export async function runPsql(args: string[], options: Login): Promise<number> {
  return await withLogin(options, (url) =>
    runProgram('psql', [withoutPassword(url), ...args], url),
  );
}

export async function runDump(options: { out: string; json?: true }): Promise<number> {
  return await withLogin({}, async (url, { config }) => {
    await requireVersion(url);
    const part = `${options.out}.part`;
    try {
      await writeFile(part, '', { mode: 0o600, flag: 'wx' });
    } catch (error) {
      const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
      const why = exists ? 'exists; another dump is running, or remove it' : 'cannot be written';
      throw new Failure('bad_setting', `${part} ${why}`);
    }
    try {
      const code = await runProgram(
        'pg_dump',
        ['-Fc', '-d', withoutPassword(url), '-f', part],
        url,
      );
      if (code !== 0 && config.databaseUrl && !config.databaseOwnerUrl)
        note('the login of the daemon may not read all tables; set DATABASE_OWNER_URL');
      if (code !== 0) return code;
      await rename(part, options.out);
    } finally {
      await rm(part, { force: true });
    }
    printLine(options.json ? jsonText({ file: options.out }) : `Wrote ${options.out}`);
    return 0;
  });
}

export async function runPublish(options: { json?: true }): Promise<number> {
  return await withLogin({}, async (url) => {
    refuseUnmigrated(await missingMigrations(url));
    const walLevel = await publishEvents(url);
    const publication = PUBLICATION;
    printLine(
      options.json
        ? jsonText({ publication, wal_level: walLevel })
        : `The publication ${publication} has every new event; see docs/apps.md`,
    );
    if (walLevel !== 'logical')
      note(
        `wal_level is ${walLevel}, so no reader can begin; as a superuser run ` +
          'alter system set wal_level = logical, and restart Postgres',
      );
    return 0;
  });
}

/** An older pg_dump refuses a newer server, with no advice. */
async function requireVersion(url: string): Promise<void> {
  const [server, found] = [await serverMajor(url), await majorOf('pg_dump')];
  if (found >= server) return;
  throw new Failure(
    'bad_setting',
    `pg_dump ${server} or newer is needed, this is ${found}; install ` +
      `postgresql-client-${server} from apt.postgresql.org, or stop the daemon and copy DATA_DIR`,
  );
}

interface Opened {
  config: Config;
  /** Undefined for an external one. */
  server: EmbeddedServer | undefined;
}

/** Runs the work with a URL; starts the embedded server if necessary. @throws Failure */
async function withLogin(
  { finance }: Login,
  work: (url: string, opened: Opened) => Promise<number>,
): Promise<number> {
  const config = loadConfig();
  if (config.databaseUrl) {
    const configured = (!finance && config.databaseOwnerUrl) || config.databaseUrl;
    const url = urlForPrograms(configured, finance ? { user: READER } : undefined);
    return await work(url, { config, server: undefined });
  }
  await requireDatabase(config);
  const port = config.database.embedded_port;
  const server = await openEmbedded({ directory: config.dataDir, port });
  try {
    if (finance) refuseUnmigrated(await missingMigrations(server.url));
    const url = finance ? await server.financeUrl() : server.url;
    return await work(url, { config, server });
  } finally {
    await server.stopUnlessUsed();
  }
}

function partsOf(url: string) {
  const { hosts, database, user, password } = parseConnection(url);
  return {
    url,
    host: hosts.map(({ host }) => host).join(','),
    port: hosts[0]?.port ?? null,
    database: database ?? null,
    user: user ?? null,
    password: password ?? null,
  };
}

/** For arguments, which every user of the machine can read. */
function withoutPassword(url: string): string {
  return urlForPrograms(url, { user: parseConnection(url).user });
}

/** For people; standard output holds the URL alone. */
function note(line: string): void {
  process.stderr.write(`Note: ${line}\n`);
}

/**
 * Runs psql or pg_dump on the standard streams and returns its exit code. The password is in the
 * environment, because all users can read arguments.
 * @throws Failure `bad_setting` when it is not installed
 */
async function runProgram(file: string, args: string[], url: string): Promise<number> {
  const { password } = parseConnection(url);
  const env = { ...process.env, ...(password ? { PGPASSWORD: password } : {}) };
  const child = spawn(file, args, { env, stdio: 'inherit' });
  // Ctrl-C ends a query of psql, not psql.
  const ignore = () => {};
  process.on('SIGINT', ignore);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ENOENT' ? notInstalled(file) : error),
      );
      child.once('close', (code) => resolve(code ?? 1));
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}

/** The major version of an installed program. @throws Failure `bad_setting` */
async function majorOf(file: string): Promise<number> {
  const child = spawn(file, ['--version'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', () => reject(notInstalled(file)));
    child.once('close', () => resolve());
  });
  return Number(/(\d+)/.exec(text)?.[1] ?? 0);
}

function notInstalled(file: string): Failure {
  return new Failure(
    'bad_setting',
    `${file} is not installed; on Debian or Ubuntu run: apt install postgresql-client, or use ` +
      'another client with the URL that npx tallyhook db url prints',
  );
}
