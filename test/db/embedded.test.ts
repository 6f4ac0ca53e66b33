/**
 * Creating, adopting, restarting and stopping the embedded Postgres, with real servers and kills.
 */

import { readdir, readFile, rm, stat, watch, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedServer, openEmbedded } from '../../src/db/embedded/embedded.ts';
import { listen } from '../harness/listen.ts';
import {
  endProcesses,
  killGroup,
  open,
  openedBy,
  query,
  refusalOf,
  removeFolders,
  serverPid,
  signalGroup,
  startDaemon,
  temporaryFolder,
} from './embedded-server.ts';

/** Contains a stopped server's data when a test begins. */
let directory: string;
let created: EmbeddedServer;

beforeAll(async () => {
  directory = await temporaryFolder();
  created = await open({ directory });
  await query(created.url, 'create table kept as select 7 as n');
  await endProcesses();
});
afterEach(endProcesses);
afterAll(removeFolders);

describe('The embedded server', () => {
  it('is created once, then restarted on its port, and adopted while it runs', async () => {
    expect(created.how).toBe('created');
    const restarted = await open({ directory });
    expect(restarted).toMatchObject({ how: 'restarted', url: created.url });
    const adopted = await open({ directory });
    expect(adopted).toMatchObject({ how: 'adopted', url: created.url });
    expect(await query(adopted.url, 'select n from kept')).toBe(7);
    await restarted.stop();
    await expect(query(adopted.url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('listens on the port that is set, and is refused while another program has it', async () => {
    const other = createServer();
    const port = await listen(other);
    const refused = await refusalOf(openEmbedded({ directory, port }));
    expect(refused.message).toContain(`DATABASE_PORT: port ${port} is in use`);
    await new Promise((resolve) => other.close(resolve));
    const fixed = await open({ directory, port });
    expect(new URL(fixed.url).port).toBe(String(port));
    const adopted = await open({ directory, port: port === 1 ? 2 : port - 1 });
    expect(adopted.url).toBe(fixed.url);
    expect(adopted.notes.join()).toContain(`listens on ${port} until it is restarted`);
    await fixed.stop();
    // For the other tests.
    await open({ directory, port: Number(new URL(created.url).port) });
  });

  it('is durable, local, and independent of the locale of the machine', async () => {
    const { url } = await open({ directory });
    const expected: [query: string, value: string][] = [
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
    for (const [text, value] of expected) expect(await query(url, text), text).toBe(value);
  });

  it('requires its password, keeps it in a private file, and logs neither it nor values', async () => {
    const { url } = await open({ directory });
    const guessed = url.replace(/:[^:@]+@/, ':guess@');
    await expect(query(guessed, 'select 1')).rejects.toMatchObject({ code: '28P01' });
    expect((await stat(join(directory, 'postgres.password'))).mode & 0o777).toBe(0o600);
    const insert = `create table t (v text unique); insert into t values ('planted'), ('planted')`;
    await expect(query(url, insert)).rejects.toMatchObject({ code: '23505' });
    const log = await readFile(join(directory, 'postgres.log'), 'utf8');
    expect(log).not.toContain(new URL(url).password);
    expect(log).not.toContain('planted');
  });

  it('is left running for other clients, and is stopped once, not when started again', async () => {
    const first = await open({ directory });
    const other = postgres(first.url, { max: 1 });
    await other`select 1`;
    expect(await first.stopUnlessUsed()).toBe(false);
    await other`select 1`;
    await other.end();
    expect(await first.stopUnlessUsed()).toBe(true);
    expect(await first.stopUnlessUsed()).toBe(true);
    await Promise.all([first.stop(), first.stop()]);
    const second = await open({ directory });
    await first.stop();
    expect(await query(second.url, 'select 1')).toBe(1);
  });

  it('is restarted after kill -9 with its commits, though its process id is in use', async () => {
    const first = await open({ directory });
    await query(first.url, 'create table big as select 9007199254740993::text as n');
    const file = join(directory, 'postgres', 'postmaster.pid');
    const text = await readFile(file, 'utf8');
    process.kill(await serverPid(directory), 'SIGKILL');
    await writeFile(file, text.replace(/^\d+/, String(process.pid)));
    const second = await open({ directory });
    // Its processes may still hold the port for a moment; then it takes another one.
    expect(second.how).toBe('restarted');
    expect(await query(second.url, 'select n from big')).toBe('9007199254740993');
  });

  it('takes another port when its former one is in use', async () => {
    const port = Number(new URL(created.url).port);
    const other = createServer();
    await listen(other, port);
    const server = await open({ directory });
    other.close();
    expect(server.url).not.toBe(created.url);
    expect(await query(server.url, 'select 1')).toBe(1);
  });

  it('is created by one of several daemons, also after a creation that was killed', async () => {
    const folder = await temporaryFolder();
    const changes = watch(folder, { signal: AbortSignal.timeout(20_000) });
    const killed = startDaemon(folder);
    for await (const { filename } of changes) if (filename?.startsWith('postgres.init-')) break;
    await killGroup(killed);
    const results = await Promise.all([
      open({ directory: folder }),
      open({ directory: folder }),
      openedBy(startDaemon(folder)),
    ]);
    expect(results.map(({ how }) => how).sort()).toEqual(['adopted', 'adopted', 'created']);
    expect(new Set(results.map(({ url }) => url)).size).toBe(1);
    expect(await query(results[0].url, 'select 1')).toBe(1);
    const files = await readdir(folder);
    expect(files.sort()).toEqual(['postgres', 'postgres.log', 'postgres.password']);
  });

  it('survives SIGINT, SIGTERM, SIGHUP and SIGKILL to the process group of its daemon', async () => {
    const daemon = startDaemon(directory);
    const { url } = await openedBy(daemon);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      signalGroup(daemon, signal);
      expect(await query(url, 'select 1'), signal).toBe(1);
    }
    await killGroup(daemon);
    expect(await open({ directory })).toMatchObject({ how: 'adopted', url });
  });

  it('reports in one line a wrong or lost password and an invalid postgresql.conf', async () => {
    const server = await open({ directory });
    const password = join(directory, 'postgres.password');
    const settings = join(directory, 'postgres', 'postgresql.conf');
    const original = { password: await readFile(password), settings: await readFile(settings) };

    await writeFile(password, `${'x'.repeat(32)}\n`);
    const wrong = await refusalOf(openEmbedded({ directory }));
    expect(wrong).toMatchObject({ code: 'bad_setting' });
    await rm(password);
    const lost = await refusalOf(openEmbedded({ directory }));
    expect(lost).toMatchObject({ code: 'bad_setting' });
    await writeFile(password, original.password);

    await server.stop();
    await writeFile(settings, `${original.settings}\nno_such_setting = 1\n`);
    const invalid = await refusalOf(openEmbedded({ directory }));
    expect(invalid).toMatchObject({ code: 'database_unavailable' });
    expect(invalid.message).toContain('no_such_setting');
    await writeFile(settings, original.settings);

    for (const { message } of [wrong, lost, invalid]) expect(message).not.toContain('\n');
    expect((await open({ directory })).how).toBe('restarted');
  });
});
