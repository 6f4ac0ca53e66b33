/**
 * Where everything of the embedded server lies:
 *
 *   directory/postgres.password    of the superuser, 0600
 *   directory/postgres.log         what the server says; postgres.log.1 is the one before
 *   directory/postgres.elsewhere   only if the data are not here: where they are
 *   home/postgres                  the data folder; home is `directory`, or the folder named there
 *
 * Postgres refuses to run as root. Started by root, the server runs as another user, who must be
 * able to reach its data. Where that user cannot (below somebody's 0700 home), the data get a home
 * in the shared folder. Nobody's permissions are ever loosened, and data that were once elsewhere
 * are never silently begun anew.
 */
import { chmod, mkdir, mkdtemp, open, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../kernel/errors.ts';
import type { Random } from '../../kernel/random.ts';
import { findUser, type ServerUser, troubleEntering } from './process.ts';

/** Where root puts what the server's user cannot reach where it is. */
export const SHARED_FOLDER = '/var/lib/tallyhook';

export function runningAsRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** The folder with the cluster in it, and whether a cluster is known to have been made there. */
export interface Home {
  folder: string;
  elsewhere: boolean;
  created: boolean;
}

export function dataFolder(home: Home): string {
  return join(home.folder, 'postgres');
}

/**
 * Where the cluster is or would be, as remembered.
 * Fails with `bad_setting` when data were made elsewhere and are gone.
 */
export async function recallHome(directory: string): Promise<Home> {
  const file = join(directory, 'postgres.elsewhere');
  const text = await readOrUndefined(file);
  if (text === undefined) return { folder: directory, elsewhere: false, created: false };
  const [folder, state] = text.split('\n');
  if (!folder || !state) {
    throw new Failure('bad_setting', `${file} is damaged; restore it from a backup`);
  }
  const home = { folder, elsewhere: true, created: state === 'created' };
  if (home.created && (await readDataMajor(home)) === undefined) {
    throw new Failure(
      'bad_setting',
      `the data of ${directory} should be in ${dataFolder(home)} and are not; ` +
        `restore them, or remove ${file} to begin with an empty database`,
    );
  }
  return home;
}

/** Remembers that the cluster of `directory` is, or is about to be, in another folder. */
export async function rememberHome(directory: string, home: Home): Promise<void> {
  const text = `${home.folder}\n${home.created ? 'created' : 'begun'}\n`;
  await writeDurably(join(directory, 'postgres.elsewhere'), text);
}

/** The major version that made the data folder; undefined when there is no cluster. */
export async function readDataMajor(home: Home): Promise<string | undefined> {
  const text = await readOrUndefined(join(dataFolder(home), 'PG_VERSION'));
  return text?.trim();
}

/**
 * The account for the server: undefined for our own. As root: the owner of existing data, else
 * `postgres`, else `nobody`.
 * Fails with `bad_setting` when the data are another user's, or no account is there.
 */
export async function chooseUser(home: Home): Promise<ServerUser | undefined> {
  const data = dataFolder(home);
  const owner = await stat(data).catch(() => undefined);
  if (!runningAsRoot()) {
    if (owner && owner.uid !== process.geteuid?.()) {
      const name = (await findUser(owner.uid))?.name ?? String(owner.uid);
      throw new Failure('bad_setting', `${data} belongs to ${name}; start Tallyhook as before`);
    }
    return undefined;
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
 * The home as the server's user can reach it. A cluster that exists is not moved; a new one goes to
 * the shared folder if need be, which is remembered and noted.
 */
export async function reachableHome(
  directory: string,
  home: Home,
  user: ServerUser | undefined,
  sharedFolder: string,
): Promise<Home> {
  const obstacle = await troubleEntering(user, home.folder);
  if (obstacle === undefined) return home;
  const who = user?.name ?? 'this user';
  if ((await readDataMajor(home)) !== undefined) {
    throw new Failure(
      'bad_setting',
      `the user ${who} cannot reach ${dataFolder(home)} (${obstacle}); let that user enter the ` +
        'folders above it, or move DATA_DIR to where it can',
    );
  }
  const trouble = await preparePlace(sharedFolder, user);
  if (trouble) {
    throw new Failure(
      'bad_setting',
      `Postgres refuses to run as root, and the user ${who} cannot reach ${directory} ` +
        `(${obstacle}), nor ${sharedFolder} (${trouble}); set DATA_DIR to a folder which it can ` +
        'reach, or start Tallyhook as an ordinary user',
    );
  }
  const folder = await mkdtemp(join(sharedFolder, 'data-'));
  await chmod(folder, 0o755);
  await writeFile(join(folder, 'belongs-to'), `${directory}\n`);
  const moved = { folder, elsewhere: true, created: false };
  await rememberHome(directory, moved);
  return moved;
}

/**
 * Makes a place for programs or data if it is missing; answers why it cannot be used, or undefined.
 */
export async function preparePlace(
  folder: string,
  user: ServerUser | undefined,
): Promise<string | undefined> {
  try {
    if ((await mkdir(folder, { recursive: true })) !== undefined) await chmod(folder, 0o755);
    const { uid, mode } = await stat(folder);
    // Programs are run from here: a stranger must not be able to put one.
    if (uid !== 0 && uid !== process.geteuid?.()) return 'it belongs to another user';
    if ((mode & 0o002) !== 0) return 'everybody may write there';
    return await troubleEntering(user, folder);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const PASSWORD = /^[A-Za-z0-9_-]{32}$/;

/** The superuser's password, as kept; undefined when there is none. */
export async function readPassword(directory: string): Promise<string | undefined> {
  const text = (await readOrUndefined(join(directory, 'postgres.password')))?.trim();
  return text !== undefined && PASSWORD.test(text) ? text : undefined;
}

/** The password kept in `directory`, or a new one of 192 bits, kept from now on. */
export async function keepPassword(directory: string, random: Random): Promise<string> {
  const kept = await readPassword(directory);
  if (kept) return kept;
  const password = Buffer.from(random.bytes(24)).toString('base64url');
  await writeDurably(join(directory, 'postgres.password'), `${password}\n`);
  return password;
}

/** Writes a file of ours, 0600, so that after a power cut it is whole or as it was before. */
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

/** The text of a file; undefined when it is not there. */
export async function readOrUndefined(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}
