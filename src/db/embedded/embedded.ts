/**
 * The embedded Postgres: a real server from an npm package, for running without any setup. This
 * door finds the living server of a folder, or restarts a dead one, or makes the first one, and
 * says which. It may be called again at any time, by several daemons at once; so a daemon that
 * loses its server calls it again.
 *
 * The server outlives its daemon on purpose: Ctrl-C, SIGTERM and kill -9 do not reach it, the
 * daemon drains first and then calls `stop`. It listens on 127.0.0.1 only, behind a generated
 * password. It never runs with fsync off and never as root.
 */
import { chmod, mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { monotonicMs } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import { type Random, systemRandom } from '../../kernel/random.ts';
import { findPackage, type PostgresPackage, usableBinaries } from './binaries.ts';
import { createCluster } from './cluster.ts';
import { withFolderLock } from './folder-lock.ts';
import {
  chooseUser,
  dataFolder,
  type Home,
  keepPassword,
  reachableHome,
  readDataMajor,
  readPassword,
  recallHome,
  rememberHome,
  runningAsRoot,
  SHARED_FOLDER,
} from './folders.ts';
import { countClients, databaseUrl, ensureDatabase, type Login } from './login.ts';
import {
  findPostmaster,
  isServerProcess,
  settledPostmaster,
  stopPostmaster,
} from './postmaster.ts';
import type { ServerUser } from './process.ts';
import { startPostmaster } from './start.ts';

/** Recovery after a kill replays up to a gigabyte of log. */
const START_LIMIT_MS = 180_000;
/** Another opener may be making a cluster and starting it. */
const LOCK_LIMIT_MS = 330_000;

export interface EmbeddedServer {
  /** postgres://user:password@127.0.0.1:port/tallyhook; holds the password. */
  url: string;
  /** `restarted` also after an ordinary stop: there were data, and no living server. */
  how: 'created' | 'adopted' | 'restarted';
  /** What a person should know, such as where the data were put and why. */
  notes: string[];
  /** Stops this server, whoever started it or uses it. Harmless twice. Bounded: 40 s. */
  stop(): Promise<void>;
  /**
   * Stops this server unless other clients are connected to it, such as a second daemon; true when
   * it is stopped. To be called after one's own connections are closed.
   */
  stopUnlessUsed(): Promise<boolean>;
}

export interface EmbeddedOptions {
  /** Where password, log and, if the server's user can reach it, the data are kept. */
  directory: string;
  log?: Log;
  /** The package's folder; by default the one installed for this machine. */
  binariesFrom?: string;
  /** Where root puts what the server's user cannot reach. */
  sharedFolder?: string;
  random?: Random;
}

/**
 * Opens the embedded server of a folder: adopts, restarts or creates it.
 * Fails with `bad_setting` when a person must change something, and with `database_unavailable`
 * when Postgres did not start, stop or answer in time; one line each, saying what to do.
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
      `the embedded Postgres in ${options.directory} cannot be used: ${cause}; put that right, ` +
        'set DATA_DIR to another folder, or set DATABASE_URL to a Postgres 15 or newer',
    );
  }
}

/** Makes the folder if it is missing; what root makes, the server's user may pass through. */
async function prepareDirectory(folder: string): Promise<string> {
  const made = await mkdir(folder, { recursive: true });
  if (made !== undefined) await chmod(folder, runningAsRoot() ? 0o711 : 0o700);
  return await realpath(folder);
}

async function open(
  directory: string,
  found: PostgresPackage,
  options: EmbeddedOptions,
): Promise<EmbeddedServer> {
  const home = await recallHome(directory);
  const user = await chooseUser(home);
  const major = await readDataMajor(home);
  refuseOtherMajor(home, major, found);
  const adopted = major === undefined ? undefined : await adopt(directory, home);
  if (adopted) return adopted;
  return await start(directory, home, user, found, options);
}

function refuseOtherMajor(home: Home, major: string | undefined, found: PostgresPackage): void {
  if (major === undefined || major === found.major) return;
  throw new Failure(
    'bad_setting',
    `${dataFolder(home)} was made by Postgres ${major}, and this Tallyhook brings ` +
      `${found.version}: carry the data over with that version's pg_dump into a new DATA_DIR, ` +
      'or set DATABASE_URL',
  );
}

/** The living server, if there is one and it does not end while we look. */
async function adopt(directory: string, home: Home): Promise<EmbeddedServer | undefined> {
  const data = dataFolder(home);
  const running = await settledPostmaster(data, START_LIMIT_MS);
  if (!running) return undefined;
  const login = { port: running.port, password: await knownPassword(directory) };
  try {
    await ensureDatabase(login);
  } catch (error) {
    if (await findPostmaster(data)) throw error;
    return undefined;
  }
  return makeHttpServer('adopted', running.pid, data, login, elsewhereNotes(directory, home));
}

/** Starts the server of the home, after making its cluster if there is none. */
async function start(
  directory: string,
  remembered: Home,
  user: ServerUser | undefined,
  found: PostgresPackage,
  options: EmbeddedOptions,
): Promise<EmbeddedServer> {
  const shared = options.sharedFolder ?? SHARED_FOLDER;
  const home = await reachableHome(directory, remembered, user, shared);
  const notes = elsewhereNotes(directory, home);
  if (user) notes.push(`Postgres runs as the user ${user.name}, because it refuses to run as root`);
  const places = user ? [shared, directory] : [directory];
  const bin = await usableBinaries(found, user, places, notes);
  const data = dataFolder(home);
  const isNew = (await readDataMajor(home)) === undefined;
  const password = isNew
    ? await keepPassword(directory, options.random ?? systemRandom)
    : await knownPassword(directory);
  if (isNew) await createCluster(home, bin, user, password);
  if (home.elsewhere && !home.created) await rememberHome(directory, { ...home, created: true });
  const logFile = join(directory, 'postgres.log');
  const running = await startPostmaster({ bin, data, logFile, user }, START_LIMIT_MS);
  const login = { port: running.port, password };
  await ensureDatabase(login);
  return makeHttpServer(isNew ? 'created' : 'restarted', running.pid, data, login, notes);
}

/** The password of a cluster that exists. */
async function knownPassword(directory: string): Promise<string> {
  const password = await readPassword(directory);
  if (password) return password;
  const file = join(directory, 'postgres.password');
  throw new Failure('bad_setting', `${file} is missing or damaged; restore it from a backup`);
}

function elsewhereNotes(directory: string, home: Home): string[] {
  if (!home.elsewhere) return [];
  return [
    `the data are in ${home.folder}, because the user of Postgres cannot reach ${directory}; ` +
      `${join(directory, 'postgres.elsewhere')} remembers it`,
  ];
}

function makeHttpServer(
  how: EmbeddedServer['how'],
  pid: number,
  data: string,
  login: Login,
  notes: string[],
): EmbeddedServer {
  const stop = () => stopPostmaster(pid, data);
  return {
    url: databaseUrl(login),
    how,
    notes,
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
