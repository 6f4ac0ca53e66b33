/**
 * The files of the embedded server:
 *
 *   directory/postgres.password    of the superuser, 0600
 *   directory/finance.password     of the login of finance, 0600; made when first asked for
 *   directory/postgres.log         the server log; postgres.log.1 is the previous one
 *   directory/postgres.location    names the home, if it is not `directory`
 *   home/postgres                  the data folder
 *
 * Postgres refuses to run as root, so root starts the server as another user. If that user cannot
 * reach `directory` (below a 0700 folder), the home is in the shared folder. Permissions are never
 * loosened, and a missing home is reported rather than replaced by an empty database.
 */
import { chmod, mkdir, mkdtemp, open, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../kernel/errors.ts';
import type { Random } from '../../kernel/random.ts';
import { type Platform, platform } from '../platform.ts';
import { findUser, obstacleToEnter, type ServerUser } from './process.ts';

/** Default folder for homes that the server's user cannot reach in `directory`. */
export const SHARED_FOLDER = '/var/lib/tallyhook';

export function runningAsRoot(): boolean {
  return process.geteuid?.() === 0;
}

export interface Home {
  folder: string;
  /** True when it is not `directory`. */
  relocated: boolean;
  /** True when postgres.location says that a cluster was created there. */
  created: boolean;
}

export function dataFolder(home: Home): string {
  return join(home.folder, 'postgres');
}

/** @throws Failure `bad_setting` when the data of a relocated home are missing */
export async function readHome(directory: string): Promise<Home> {
  const file = join(directory, 'postgres.location');
  const text = await readOrUndefined(file);
  if (text === undefined) return { folder: directory, relocated: false, created: false };
  const [folder, state] = text.split('\n');
  if (!folder || !state) {
    throw new Failure('bad_setting', `${file} is damaged; restore it from a backup`);
  }
  const home = { folder, relocated: true, created: state === 'created' };
  if (home.created && (await readDataMajor(home)) === undefined) {
    throw new Failure(
      'bad_setting',
      `the data of ${directory} are missing in ${dataFolder(home)}; ` +
        `restore them, or remove ${file} to start with an empty database`,
    );
  }
  return home;
}

/** Stores that the home of `directory` is another folder. */
export async function writeHome(directory: string, home: Home): Promise<void> {
  const text = `${home.folder}\n${home.created ? 'created' : 'planned'}\n`;
  await writeDurably(join(directory, 'postgres.location'), text);
}

/** The major version of the data; undefined when there is no cluster. */
export async function readDataMajor(home: Home): Promise<string | undefined> {
  const text = await readOrUndefined(join(dataFolder(home), 'PG_VERSION'));
  return text?.trim();
}

/**
 * The user to run the server as; undefined for the user of this process. Root uses the owner of the
 * data, else `postgres`, else `nobody`, where the platform lets it.
 * @throws Failure `bad_setting` when the data belong to another user, or no such user exists
 */
export async function chooseUser(
  home: Home,
  on: Platform = platform,
): Promise<ServerUser | undefined> {
  const data = dataFolder(home);
  const owner = await stat(data).catch(() => undefined);
  if (!runningAsRoot()) {
    if (owner && owner.uid !== process.geteuid?.()) {
      const name = (await findUser(owner.uid))?.name ?? String(owner.uid);
      throw new Failure('bad_setting', `${data} belongs to ${name}; start Tallyhook as that user`);
    }
    return undefined;
  }
  if (!on.switchesUser) {
    throw new Failure(
      'bad_setting',
      'Postgres refuses to run as root; start Tallyhook as an ordinary user, or set DATABASE_URL',
    );
  }
  if (owner && owner.uid === 0) {
    throw new Failure(
      'bad_setting',
      `${data} belongs to root, and Postgres refuses to run as root; run: ` +
        `chown -R postgres ${data} (or another ordinary user)`,
    );
  }
  if (owner) {
    const { uid, gid } = owner;
    return (await findUser(uid)) ?? { name: String(uid), uid, gid };
  }
  const user = (await findUser('postgres')) ?? (await findUser('nobody'));
  if (user) return user;
  throw new Failure(
    'bad_setting',
    'Postgres refuses to run as root, and there is no user postgres or nobody; start Tallyhook ' +
      'as an ordinary user, or set DATABASE_URL',
  );
}

/**
 * A home that the server's user can reach. An existing cluster is not moved; a new one goes to the
 * shared folder if necessary. @throws Failure `bad_setting`
 */
export async function reachableHome(
  directory: string,
  home: Home,
  user: ServerUser | undefined,
  sharedFolder: string,
): Promise<Home> {
  const obstacle = await obstacleToEnter(user, home.folder);
  if (obstacle === undefined) return home;
  const who = user?.name ?? 'this user';
  if ((await readDataMajor(home)) !== undefined) {
    throw new Failure(
      'bad_setting',
      `the user ${who} cannot reach ${dataFolder(home)} (${obstacle}); let that user enter the ` +
        'folders above it, or move DATA_DIR to where it can',
    );
  }
  const otherObstacle = await preparePlace(sharedFolder, user);
  if (otherObstacle) {
    throw new Failure(
      'bad_setting',
      `Postgres refuses to run as root, and the user ${who} cannot reach ${directory} ` +
        `(${obstacle}), nor ${sharedFolder} (${otherObstacle}); set DATA_DIR to a folder ` +
        'that it can ' +
        'reach, or start Tallyhook as an ordinary user',
    );
  }
  const folder = await mkdtemp(join(sharedFolder, 'data-'));
  await chmod(folder, 0o755);
  await writeFile(join(folder, 'belongs-to'), `${directory}\n`);
  const moved = { folder, relocated: true, created: false };
  await writeHome(directory, moved);
  return moved;
}

/** Creates a folder for programs or data if missing; returns why it cannot be used, if so. */
export async function preparePlace(
  folder: string,
  user: ServerUser | undefined,
): Promise<string | undefined> {
  try {
    if ((await mkdir(folder, { recursive: true })) !== undefined) await chmod(folder, 0o755);
    const { uid, mode } = await stat(folder);
    // Programs are run from here, so no other user may be able to replace them.
    if (uid !== 0 && uid !== process.geteuid?.()) return 'it belongs to another user';
    if ((mode & 0o002) !== 0) return 'every user may write there';
    return await obstacleToEnter(user, folder);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const PASSWORD = /^[A-Za-z0-9_-]{32}$/;

export async function readPassword(
  directory: string,
  file = 'postgres.password',
): Promise<string | undefined> {
  const text = (await readOrUndefined(join(directory, file)))?.trim();
  return text !== undefined && PASSWORD.test(text) ? text : undefined;
}

/** The stored password, or a new one of 192 bits, which is stored. */
export async function ensurePassword(
  directory: string,
  random: Random,
  file = 'postgres.password',
): Promise<string> {
  const stored = await readPassword(directory, file);
  if (stored) return stored;
  const password = Buffer.from(random.bytes(24)).toString('base64url');
  await writeDurably(join(directory, file), `${password}\n`);
  return password;
}

/** Replaces a file (mode 0600) atomically, also across a power failure. */
async function writeDurably(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  const file = await open(draft, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
}

export async function readOrUndefined(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}
