/**
 * Creates a data folder. initdb works in a temporary folder beside it, which is renamed when it is
 * complete, so that a kill never leaves an incomplete data folder.
 */
import { chown, mkdtemp, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../kernel/errors.ts';
import { dataFolder, type Home } from './folders.ts';
import { run, type ServerUser } from './process.ts';

export const SUPERUSER = 'postgres';

const INITDB_LIMIT_MS = 120_000;
const DRAFT = 'postgres.init-';

/**
 * Initial postgresql.conf, for two cores shared with the daemon. Statements and values are kept out
 * of the server log, because they may contain secrets.
 */
const SETTINGS = [
  'max_connections=100',
  'shared_buffers=256MB',
  'random_page_cost=1.1',
  'timezone=UTC',
  'log_timezone=UTC',
  'log_checkpoints=off',
  'log_min_messages=log',
  'log_min_error_statement=panic',
  'log_error_verbosity=terse',
];

/**
 * @throws Failure `bad_setting` when the folder holds other files, `database_unavailable` with the
 * output of initdb when it fails
 */
export async function createCluster(
  home: Home,
  bin: string,
  user: ServerUser | undefined,
  password: string,
): Promise<void> {
  const data = dataFolder(home);
  if ((await readdir(data).catch(() => [])).length > 0) {
    throw new Failure(
      'bad_setting',
      `${data} contains files but no Postgres data (no PG_VERSION); move them away and start again`,
    );
  }
  await removeDrafts(home);
  const draft = await mkdtemp(join(home.folder, DRAFT));
  try {
    const passwordFile = join(draft, 'password');
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
    if (user) {
      await chown(passwordFile, user.uid, user.gid);
      await chown(draft, user.uid, user.gid);
    }
    const created = join(draft, 'data');
    const result = await run(
      join(bin, 'initdb'),
      initdbArguments(created, passwordFile),
      user,
      INITDB_LIMIT_MS,
    );
    if (result.code !== 0) {
      throw new Failure(
        'database_unavailable',
        `initdb could not create ${data}: ${result.output}; correct that and start again, or set ` +
          'DATABASE_URL to a Postgres 15 or newer',
      );
    }
    await rename(created, data);
    await syncFolder(home.folder);
  } finally {
    await remove(draft);
  }
}

function initdbArguments(data: string, passwordFile: string): string[] {
  return [
    '-D',
    data,
    '-U',
    SUPERUSER,
    `--pwfile=${passwordFile}`,
    '-A',
    'scram-sha-256',
    '-E',
    'UTF8',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--no-instructions',
    ...SETTINGS.flatMap((setting) => ['-c', setting]),
  ];
}

/** Removes folders of killed attempts; an initdb that outlived its daemon may still write there. */
async function removeDrafts(home: Home): Promise<void> {
  for (const name of await readdir(home.folder)) {
    if (!name.startsWith(DRAFT)) continue;
    await remove(join(home.folder, name));
  }
}

async function remove(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
