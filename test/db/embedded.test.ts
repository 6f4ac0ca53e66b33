/** The life of the embedded Postgres, with real servers and real kills. */
import { readdir, readFile, stat, watch, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  ask,
  endProcesses,
  open,
  openedBy,
  removeFolders,
  serverPid,
  signalGroup,
  startDaemon,
  temporaryFolder,
} from './embedded-trial.ts';

/** One that has a server's data from the start; each test opens it in its own way. */
let directory: string;

beforeAll(async () => {
  directory = await temporaryFolder();
  await open({ directory });
  await endProcesses();
});
afterEach(endProcesses);
afterAll(removeFolders);

test('a server is created, adopted while it lives, and restarted after a stop', async () => {
  const folder = join(await temporaryFolder(), 'data');
  const first = await open({ directory: folder });
  expect(first.how).toBe('created');
  await ask(first.url, 'create table kept as select 7 as n');
  const second = await open({ directory: folder });
  expect(second.how).toBe('adopted');
  expect(second.url).toBe(first.url);
  await first.stop();
  await expect(ask(first.url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  const third = await open({ directory: folder });
  expect(third.how).toBe('restarted');
  expect(third.url, 'other daemons still know the port').toBe(first.url);
  expect(await ask(third.url, 'select n from kept')).toBe(7);
});

test('the server is durable, local, and independent of the locale of the machine', async () => {
  const { url } = await open({ directory });
  const expected: [query: string, answer: string][] = [
    ['show fsync', 'on'],
    ['show full_page_writes', 'on'],
    ['show synchronous_commit', 'on'],
    ['show listen_addresses', '127.0.0.1'],
    ['show unix_socket_directories', ''],
    ['show server_encoding', 'UTF8'],
    ['show timezone', 'UTC'],
    [`select lower('ÄÖÜ')`, 'äöü'],
    ['select current_database()', 'tallyhook'],
    [`select string_agg(distinct auth_method, ',') from pg_hba_file_rules`, 'scram-sha-256'],
  ];
  for (const [query, answer] of expected) expect(await ask(url, query), query).toBe(answer);
});

test('only the password opens the server, and only we can read it', async () => {
  const { url } = await open({ directory });
  const stranger = url.replace(/:[^:@]+@/, ':guess@');
  await expect(ask(stranger, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  expect((await stat(join(directory, 'postgres.password'))).mode & 0o777).toBe(0o600);
  const log = await readFile(join(directory, 'postgres.log'), 'utf8');
  expect(log).not.toContain(new URL(url).password);
});

test('the log of the server holds no statement and no value', async () => {
  const { url } = await open({ directory });
  const insert = `create table t (v text unique); insert into t values ('planted'), ('planted')`;
  await expect(ask(url, insert)).rejects.toMatchObject({ code: '23505' });
  expect(await readFile(join(directory, 'postgres.log'), 'utf8')).not.toContain('planted');
});

test('stopping twice is harmless, and does not stop what was started since', async () => {
  const first = await open({ directory });
  await Promise.all([first.stop(), first.stop()]);
  await first.stop();
  const second = await open({ directory });
  await first.stop();
  expect(await ask(second.url, 'select 1')).toBe(1);
});

test('a server that somebody else uses can be left to them', async () => {
  const server = await open({ directory });
  const other = postgres(server.url, { max: 1 });
  await other`select 1`;
  expect(await server.stopUnlessUsed()).toBe(false);
  await other`select 1`;
  await other.end();
  expect(await server.stopUnlessUsed()).toBe(true);
  expect(await server.stopUnlessUsed()).toBe(true);
});

test('a server killed with -9 is restarted with what was committed', async () => {
  const first = await open({ directory });
  await ask(first.url, 'create table big as select 9007199254740993::text as n');
  process.kill(await serverPid(directory), 'SIGKILL');
  const second = await open({ directory });
  expect(second.how).toBe('restarted');
  expect(second.url).toBe(first.url);
  expect(await ask(second.url, 'select n from big')).toBe('9007199254740993');
});

test('a number in postmaster.pid that is now another process does not hinder a start', async () => {
  const file = join(directory, 'postgres', 'postmaster.pid');
  await open({ directory });
  const text = await readFile(file, 'utf8');
  process.kill(await serverPid(directory), 'SIGKILL');
  await writeFile(file, text.replace(/^\d+/, String(process.pid)));
  expect((await open({ directory })).how).toBe('restarted');
});

test('a former port that is taken gives way to another', async () => {
  const first = await open({ directory });
  await first.stop();
  const port = Number(new URL(first.url).port);
  const squatter = createServer();
  await new Promise<void>((resolve) => squatter.listen(port, '127.0.0.1', resolve));
  const second = await open({ directory });
  squatter.close();
  expect(second.url).not.toBe(first.url);
  expect(await ask(second.url, 'select 1')).toBe(1);
});

test('of several that start at once one creates the server and the others adopt it', async () => {
  const folder = join(await temporaryFolder(), 'data');
  const results = await Promise.all([
    open({ directory: folder }),
    open({ directory: folder }),
    openedBy(startDaemon(folder)),
  ]);
  expect(results.map(({ how }) => how).sort()).toEqual(['adopted', 'adopted', 'created']);
  expect(new Set(results.map(({ url }) => url)).size).toBe(1);
});

test('a creation killed half-way is begun anew and leaves nothing behind', async () => {
  const folder = await temporaryFolder();
  const changes = watch(folder, { signal: AbortSignal.timeout(20_000) });
  const daemon = startDaemon(folder);
  for await (const { filename } of changes) if (filename?.startsWith('postgres.init-')) break;
  await signalGroup(daemon, 'SIGKILL');
  const server = await open({ directory: folder });
  expect(server.how).toBe('created');
  expect(await ask(server.url, 'select 1')).toBe(1);
  const left = await readdir(folder);
  expect(left.sort()).toEqual(['postgres', 'postgres.log', 'postgres.password']);
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const)(
  '%s to the process group of a daemon leaves its server alive',
  async (signal) => {
    const daemon = startDaemon(directory);
    const { url } = await openedBy(daemon);
    await signalGroup(daemon, signal);
    const server = await open({ directory });
    expect(server.how).toBe('adopted');
    expect(server.url).toBe(url);
  },
);
