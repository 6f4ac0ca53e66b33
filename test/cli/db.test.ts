/**
 * `tallyhook db`, run as a process: the login of finance, and the programs of Postgres, for which
 * scripts stand that print what they are given.
 */
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';
import type { EmbeddedServer } from '../../src/db/embedded/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import {
  endProcesses,
  open,
  query,
  removeFolders,
  temporaryFolder,
} from '../db/embedded-server.ts';
import { runCommand } from '../harness/command.ts';

let folder: string;
let server: EmbeddedServer;
/** Connected like a daemon, so that no command stops the server. */
let daemon: Db;
/** The environment of a command on the embedded database, with stand-ins for psql and pg_dump. */
let env: Record<string, string>;

beforeAll(async () => {
  folder = await temporaryFolder();
  server = await open({ directory: join(folder, 'data') });
  await migrate(server.url);
  daemon = connect({ url: server.url, max: 1 });
  await daemon.sql`select 1 as one`;
  env = { DATA_DIR: join(folder, 'data'), PATH: await programs(18) };
});
afterAll(async () => {
  await daemon.end();
  await endProcesses();
  await removeFolders();
});

/** A folder with a psql and a pg_dump of that version, which tell arguments and password. */
async function programs(version: number): Promise<string> {
  const path = join(folder, `bin-${version}`);
  await mkdir(path);
  const script = `#!/bin/sh
[ "$1" = --version ] && echo "pg_dump (PostgreSQL) ${version}.1" && exit
for last; do :; done
case $0 in *pg_dump) echo "$PGPASSWORD $*" > "$last" ;; *) echo "$PGPASSWORD $*" ;; esac
case $last in fail | *.fail.part) exit 1 ;; esac
`;
  for (const name of ['psql', 'pg_dump'])
    await writeFile(join(path, name), script, { mode: 0o755 });
  return path;
}

async function financeUrl(): Promise<string> {
  const { text } = await runCommand(env, 'db', 'url', '--finance');
  return text.split('\n')[0] ?? '';
}

describe('tallyhook db url --finance', () => {
  it('prints a login that reads finance_v1 and nothing else, and is the same each time', async () => {
    const url = await financeUrl();
    expect(await financeUrl()).toBe(url);
    const finance = connect({ url, max: 1 });
    expect(await finance.sql`select balance from finance_v1.balances`).toEqual([]);
    const read = finance.single(({ sql }) => sql`select 1 from tallyhook.operations`);
    await expect(read).rejects.toMatchObject({ code: '42501' });
    await finance.end();
  });

  it('keeps the password in a file that only its owner reads, and sets it again', async () => {
    const url = await financeUrl();
    const file = join(folder, 'data', 'finance.password');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await readFile(file, 'utf8')).trim()).toBe(new URL(url).password);
    await query(server.url, `alter role tallyhook_reader password 'of another folder'`);
    expect(await financeUrl()).toBe(url);
    expect(await query(url, 'select current_user')).toBe('tallyhook_reader');
  });

  it('prints the parts of the URL as JSON for clients that ask for them', async () => {
    const { password, port } = new URL(await financeUrl());
    const { text } = await runCommand(env, 'db', 'url', '--finance', '--json');
    expect(JSON.parse(text.split('\n')[0] ?? '')).toMatchObject({
      host: '127.0.0.1',
      port: Number(port),
      database: 'tallyhook',
      user: 'tallyhook_reader',
      password,
    });
  });

  it('names the login that setup made in an external one, without password and pool mode', async () => {
    const external = {
      DATABASE_URL:
        'postgres://tallyhook_daemon:hush@db.example/shop?sslmode=require&pool_mode=transaction',
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    };
    const { code, text } = await runCommand(external, 'db', 'url', '--finance');
    const [url, note] = text.split('\n');
    expect([code, url]).toEqual([0, 'postgres://tallyhook_reader@db.example/shop?sslmode=require']);
    expect(note).toContain('npx tallyhook setup printed the password of tallyhook_reader');
  });

  it('makes no database', async () => {
    const { code, text } = await runCommand({ DATA_DIR: join(folder, 'none') }, 'db', 'url');
    expect([code, text]).toEqual([
      1,
      expect.stringMatching(/^there is no database in .*none; set/),
    ]);
    expect(await readdir(folder)).not.toContain('none');
  });
});

describe('tallyhook db psql', () => {
  it('runs psql with the login and further arguments; the password is not among them', async () => {
    const url = await financeUrl();
    const { password } = new URL(url);
    const args = ['db', 'psql', '--finance', '--', '-c', 'select 1'];
    const { code, text } = await runCommand(env, ...args);
    const bare = url.replace(`:${password}`, '');
    expect([code, text]).toEqual([0, `${password} ${bare} -c select 1\n`]);
    expect((await runCommand(env, 'db', 'psql', '--', 'fail')).code).toBe(1);
  });

  it('says where to get a psql that is not installed', async () => {
    const { code, text } = await runCommand({ ...env, PATH: folder }, 'db', 'psql');
    expect([code, text]).toEqual([
      1,
      expect.stringMatching(/^psql is not installed; .* apt install/),
    ]);
  });
});

describe('tallyhook db dump', () => {
  it('writes what pg_dump writes to a file that only its owner reads', async () => {
    const out = join(folder, 'shop.dump');
    const { code, text } = await runCommand(env, 'db', 'dump', '--out', out);
    expect([code, text]).toEqual([0, `Wrote ${out}\n`]);
    const { password, href } = new URL(server.url);
    const bare = href.replace(`:${password}`, '');
    expect(await readFile(out, 'utf8')).toBe(`${password} -Fc -d ${bare} -f ${out}.part\n`);
    expect((await stat(out)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).not.toContain('shop.dump.part');
  });

  it('names the login that it needs when that of the daemon does not suffice', async () => {
    const external = {
      ...env,
      DATABASE_URL: server.url,
      MASTER_KEY: Buffer.alloc(32).toString('base64'),
    };
    const out = join(folder, 'shop.fail');
    const dump = (more = {}) => runCommand({ ...external, ...more }, 'db', 'dump', '--out', out);
    const line = 'Note: the login of the daemon may not read all tables; set DATABASE_OWNER_URL\n';
    expect(await dump()).toEqual({ code: 1, text: line });
    expect(await dump({ DATABASE_OWNER_URL: server.url })).toEqual({ code: 1, text: '' });
  });

  it('refuses a pg_dump that is older than the server and names the package to install', async () => {
    const out = join(folder, 'old.dump');
    const old = { ...env, PATH: await programs(15) };
    const { code, text } = await runCommand(old, 'db', 'dump', '--out', out);
    expect([code, text]).toEqual([
      1,
      expect.stringMatching(/^pg_dump 18 or newer .* is 15; install/),
    ]);
    expect(await readdir(folder)).not.toContain('old.dump');
  });
});
