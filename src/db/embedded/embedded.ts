/**
 * The embedded Postgres: a real server from an npm package. `openEmbedded` adopts the running
 * server of a folder, restarts a stopped one, or creates the first one. Several daemons may call it
 * at once, and again whenever the server has died.
 *
 * The server runs until a daemon calls `stop`; Ctrl-C, SIGTERM and kill -9 of the daemon do not
 * reach it. It listens on 127.0.0.1 only, requires a generated password, and never runs as root.
 */
import { chmod, mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { monotonicMs, withDeadline } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { type Random, systemRandom } from '../../kernel/random.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import { financeSteps, READER, runSteps } from '../access/setup.ts';
import { findPackage, type PostgresPackage, usableBinaries } from './binaries.ts';
import { createCluster, SUPERUSER } from './cluster.ts';
import { withFolderLock } from './folder-lock.ts';
import {
  chooseUser,
  dataFolder,
  ensurePassword,
  type Home,
  reachableHome,
  readDataMajor,
  readHome,
  readPassword,
  runningAsRoot,
  SHARED_FOLDER,
  writeHome,
} from './folders.ts';
import {
  findPostmaster,
  isServerProcess,
  settledPostmaster,
  startPostmaster,
  stopPostmaster,
} from './postmaster.ts';
import type { ServerUser } from './process.ts';

/** Recovery after a kill replays up to a gigabyte of WAL. */
const START_LIMIT_MS = 180_000;
/** Another process may be creating and starting the cluster. */
const LOCK_LIMIT_MS = 330_000;

export interface EmbeddedServer {
  /** postgres://user:password@127.0.0.1:port/tallyhook; contains the password. */
  url: string;
  /** `restarted` when there were data but no running server. */
  how: 'created' | 'adopted' | 'restarted';
  dataFolder: string;
  /** Lines for the operator, such as where the data are and why. */
  notes: string[];
  /**
   * URL of the login that reads finance_v1, with its password; made when it is missing.
   * @throws Failure `bad_setting` when the database has no tables yet
   */
  financeUrl(): Promise<string>;
  /** Stops the server even if others use it, within 40 s. Idempotent. */
  stop(): Promise<void>;
  /**
   * Stops the server unless other clients are connected; returns whether it is stopped. Call it
   * after closing your own connections.
   */
  stopUnlessUsed(): Promise<boolean>;
}

export interface EmbeddedOptions {
  /** For password and log, and for the data if the server's user can reach it. */
  directory: string;
  log?: Log;
  /** Where it listens; 0, the default, keeps the former port while that is free. */
  port?: number;
  /** The folder of the package; by default the installed one. */
  binariesFrom?: string;
  /** For data that the server's user cannot reach; by default /var/lib/tallyhook. */
  sharedFolder?: string;
  random?: Random;
}

/**
 * @throws Failure `bad_setting` when an operator must change something, `database_unavailable` when
 * Postgres does not start, stop or answer in time
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const since = monotonicMs();
  try {
    const found = await findPackage(options.binariesFrom);
    const directory = await prepareDirectory(options.directory);
    const server = await withFolderLock(directory, LOCK_LIMIT_MS, () =>
      open(directory, found, options),
    );
    const fields = { how: server.how, notes: server.notes, ms: Math.round(monotonicMs() - since) };
    options.log?.info(fields, 'embedded Postgres is ready');
    return server;
  } catch (error) {
    if (error instanceof Failure) throw error;
    const cause = error instanceof Error ? error.message : String(error);
    const ofFile = error instanceof Error && 'path' in error;
    throw new Failure(
      ofFile ? 'bad_setting' : 'database_unavailable',
      `the embedded Postgres in ${options.directory} cannot be used: ${cause}; correct that, ` +
        'set DATA_DIR to another folder, or set DATABASE_URL to a Postgres 15 or newer',
    );
  }
}

/** Whether there are data of an embedded server. */
export async function hasEmbedded(directory: string): Promise<boolean> {
  return (await readDataMajor(await readHome(directory))) !== undefined;
}

/** Creates the folder if missing. As root, the server's user must be able to traverse it. */
async function prepareDirectory(folder: string): Promise<string> {
  const created = await mkdir(folder, { recursive: true });
  if (created !== undefined) await chmod(folder, runningAsRoot() ? 0o711 : 0o700);
  return await realpath(folder);
}

async function open(
  directory: string,
  found: PostgresPackage,
  options: EmbeddedOptions,
): Promise<EmbeddedServer> {
  const home = await readHome(directory);
  const user = await chooseUser(home);
  const major = await readDataMajor(home);
  refuseOtherMajor(home, major, found);
  const adopted = major === undefined ? undefined : await adopt(directory, home, options);
  if (adopted) return adopted;
  return await start(directory, home, user, found, options);
}

function refuseOtherMajor(home: Home, major: string | undefined, found: PostgresPackage): void {
  if (major === undefined || major === found.major) return;
  throw new Failure(
    'bad_setting',
    `${dataFolder(home)} was created by Postgres ${major}, and this Tallyhook contains ` +
      `${found.version}: move the data with pg_dump ${major} to a new DATA_DIR, ` +
      'or set DATABASE_URL',
  );
}

/** The running server; undefined when there is none or it stops meanwhile. */
async function adopt(
  directory: string,
  home: Home,
  options: EmbeddedOptions,
): Promise<EmbeddedServer | undefined> {
  const data = dataFolder(home);
  const running = await settledPostmaster(data, START_LIMIT_MS);
  if (!running) return undefined;
  const login = { port: running.port, password: await requirePassword(directory) };
  try {
    await ensureDatabase(login);
  } catch (error) {
    if (await findPostmaster(data)) throw error;
    return undefined;
  }
  const notes = locationNotes(directory, home);
  if (options.port && options.port !== running.port)
    notes.push(`Postgres listens on ${running.port} until it is restarted, not on DATABASE_PORT`);
  return describeServer('adopted', running.pid, data, { login, notes, directory, options });
}

/** Starts the server, after creating its cluster if there is none. */
async function start(
  directory: string,
  storedHome: Home,
  user: ServerUser | undefined,
  found: PostgresPackage,
  options: EmbeddedOptions,
): Promise<EmbeddedServer> {
  const shared = options.sharedFolder ?? SHARED_FOLDER;
  const home = await reachableHome(directory, storedHome, user, shared);
  const notes = locationNotes(directory, home);
  if (user) notes.push(`Postgres runs as the user ${user.name}, because it refuses to run as root`);
  const places = user ? [shared, directory] : [directory];
  const bin = await usableBinaries(found, user, places, notes);
  const data = dataFolder(home);
  const isNew = (await readDataMajor(home)) === undefined;
  const password = isNew
    ? await ensurePassword(directory, options.random ?? systemRandom)
    : await requirePassword(directory);
  if (isNew) await createCluster(home, bin, user, password);
  if (home.relocated && !home.created) await writeHome(directory, { ...home, created: true });
  const logFile = join(directory, 'postgres.log');
  const input = { bin, data, logFile, user, port: options.port ?? 0 };
  const running = await startPostmaster(input, START_LIMIT_MS);
  const login = { port: running.port, password };
  await ensureDatabase(login);
  const how = isNew ? 'created' : 'restarted';
  return describeServer(how, running.pid, data, { login, notes, directory, options });
}

async function requirePassword(directory: string): Promise<string> {
  const password = await readPassword(directory);
  if (password) return password;
  const file = join(directory, 'postgres.password');
  throw new Failure('bad_setting', `${file} is missing or damaged; restore it from a backup`);
}

function locationNotes(directory: string, home: Home): string[] {
  if (!home.relocated) return [];
  return [
    `the data are in ${home.folder}, because the user of Postgres cannot reach ${directory}; ` +
      `${join(directory, 'postgres.location')} names that folder`,
  ];
}

function describeServer(
  how: EmbeddedServer['how'],
  pid: number,
  data: string,
  opened: { login: Login; notes: string[]; directory: string; options: EmbeddedOptions },
): EmbeddedServer {
  const { login, notes, directory, options } = opened;
  const stop = () => stopPostmaster(pid, data);
  return {
    url: databaseUrl(login),
    how,
    dataFolder: data,
    notes,
    financeUrl: () =>
      withFolderLock(directory, LOCK_LIMIT_MS, async () => {
        const random = options.random ?? systemRandom;
        const password = await ensurePassword(directory, random, 'finance.password');
        const url = databaseUrl(login);
        await runSteps(url, financeSteps(DATABASE, password));
        return Object.assign(new URL(url), { username: READER, password }).href;
      }),
    stop,
    async stopUnlessUsed() {
      if (await isServerProcess(pid, data)) {
        if ((await countClients(login)) > 0) return false;
        await stop();
      }
      return true;
    },
  };
}

const DATABASE = 'tallyhook';
const CONNECT_LIMIT_S = 10;
const QUERY_LIMIT_MS = 20_000;
/** invalid_password. */
const WRONG_PASSWORD = '28P01';

/** Of the superuser. */
interface Login {
  port: number;
  password: string;
}

/** Contains the password. */
function databaseUrl(login: Login): string {
  return `postgres://${SUPERUSER}:${login.password}@127.0.0.1:${login.port}/${DATABASE}`;
}

/**
 * Checks the login and creates the database if it is missing.
 * @throws Failure `bad_setting` when the password is refused; else the driver's error
 */
async function ensureDatabase(login: Login): Promise<void> {
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
async function countClients(login: Login): Promise<number> {
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
