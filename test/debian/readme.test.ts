/**
 * A newcomer with a Postgres of Debian, which wants passwords, and no superuser follows the README
 * and docs/: from nothing to a verified webhook, then a backup under traffic, restored on another
 * server. The commands are those of these documents.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { useFolder } from '../harness/folder.ts';
import { type PasswordServer, startPasswordServer } from '../harness/postgres-programs.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { execute } from '../harness/temporary-server.ts';
import { command, type Environment, type Started, shell, start } from './shell.ts';

const PASSWORD = 'of-the-test';
const folder = useFolder();
let servers: PasswordServer[];
let receiver: Receiver;
let daemon: Started | undefined;
/** What the newcomer has exported. */
let env: Environment;
let app: App;

beforeAll(async () => {
  servers = [await startPasswordServer(PASSWORD), await startPasswordServer(PASSWORD)];
  receiver = await startReceiver();
});
afterAll(async () => {
  await daemon?.stop();
  await receiver?.close();
  for (const server of servers ?? []) await server.close();
});

/** An empty database owned by a login that may create roles, as a managed Postgres gives it. */
async function emptyDatabase({ url }: PasswordServer): Promise<string> {
  await execute(url, `create role admin login createrole password '${PASSWORD}'`);
  await execute(url, 'create database tallyhook owner admin');
  return `postgres://admin@${new URL(url).host}/tallyhook`;
}

/** The URLs that setup prints, as variables. */
async function setUp(line: string): Promise<Environment> {
  const { code, text } = await shell(line, {});
  expect(code, text).toBe(0);
  const found = [...text.matchAll(/^(DATABASE_\w*URL)=(.*)$/gm)];
  return Object.fromEntries(found.map(([, name = '', url = '']) => [name, url]));
}

async function startDaemon(): Promise<void> {
  daemon = await start(command('npm start'), env);
  const url = /ready at (\S+)/.exec(daemon.text())?.[1] ?? '';
  const key = /admin key (\S+)/.exec(daemon.text())?.[1] ?? env.TALLYHOOK_KEY ?? '';
  env = { ...env, TALLYHOOK_URL: url, TALLYHOOK_KEY: key };
  app = makeApp(() => url, key);
}

/** The first wallet on the page of the sandbox. */
async function walletOnPage(): Promise<string> {
  const page = /sandbox at (\S+),/.exec(daemon?.text() ?? '')?.[1] ?? '';
  const html = await (await fetch(page, { headers: { accept: 'text/html' } })).text();
  return /0x[0-9a-fA-F]{40}/.exec(html)?.[0] ?? '';
}

it('From an empty database without a superuser to a verified webhook', async () => {
  const [server] = servers as [PasswordServer];
  const admin = await emptyDatabase(server);
  const setup = command('PGPASSWORD=… npx tallyhook setup --run postgres://admin@db', {
    '…': PASSWORD,
    'postgres://admin@db.example/tallyhook': admin,
  });
  const { text: masterKey } = await shell('openssl rand -base64 32', {});
  env = {
    ...(await setUp(setup)),
    MASTER_KEY: masterKey.trim(),
    // Beside the database, what a machine of its own has.
    DATA_DIR: join(folder, 'data'),
    PORT: '0',
  };
  expect(Object.keys(env)).toEqual(expect.arrayContaining(['DATABASE_URL', 'DATABASE_OWNER_URL']));
  await startDaemon();

  const made = await shell('npx tallyhook keys create --owner shop --scope gateway read', env);
  const key = /thk_\S+/.exec(made.text)?.[0] ?? '';
  expect(key, made.text).not.toBe('');
  const endpoint = { url: `${receiver.url}/hook`, event_types: ['operation.*', 'wallet.*'] };
  const { status, json } = await app.call('POST', '/api/endpoints', endpoint);
  expect(status).toBe(201);

  const write = command('curl -X POST http://127.0.0.1:8080/v1/app/token', {
    'http://127.0.0.1:8080': env.TALLYHOOK_URL ?? '',
    'thk_…': key,
    '0x…': await walletOnPage(),
  });
  const written = await shell(`${write} --silent --show-error --fail-with-body`, env);
  expect(written.code, written.text).toBe(0);
  const webhook = new Webhook(json.secret);
  const kinds: string[] = [];
  while (!kinds.includes('operation.accepted')) {
    const { body, headers } = await receiver.next();
    kinds.push((webhook.verify(body, headers as Environment) as { type: string }).type);
  }
});

/** Gives without a pause until `stop`, which answers how many. */
function startGives(addr: string): { stop(): Promise<number> } {
  let goesOn = true;
  const work = (async () => {
    for (let n = 0; ; n++) {
      if (!goesOn) return n;
      const { status, text } = await app.give(addr, 10 + n);
      if (status !== 200) throw new Error(text);
    }
  })();
  return {
    stop() {
      goesOn = false;
      return work;
    },
  };
}

it('A dump made under traffic and restored on another server starts frozen until its release', async () => {
  const addr = await walletOnPage();
  const keyed = (key: string) => app.give(addr, 5, { 'idempotency-key': key });
  expect((await keyed('before')).status).toBe(200);
  const gives = startGives(addr);
  const dump = join(folder, 'shop.dump');
  const dumped = await shell(command('pg_dump -Fc', { 'shop.dump': dump }), env);
  expect(await gives.stop()).toBeGreaterThan(1);
  expect(dumped).toEqual({ code: 0, text: '' });
  expect((await keyed('after')).status).toBe(200);
  await daemon?.stop();

  const [, server] = servers as [PasswordServer, PasswordServer];
  const setup = command('PGPASSWORD=… npx tallyhook setup --run postgres://admin@new', {
    '…': PASSWORD,
    'postgres://admin@new.example/tallyhook': await emptyDatabase(server),
  });
  env = { ...env, ...(await setUp(setup)) };
  const restored = await shell(command('pg_restore', { 'shop.dump': dump }), env);
  expect(restored).toEqual({ code: 0, text: '' });
  await startDaemon();
  expect((await keyed('new')).json.code).toBe('frozen');
  const doctor = 'npx tallyhook doctor --restored';
  const found = await shell(command(doctor), env);
  expect(found).toMatchObject({ code: 1, text: expect.stringMatching(/Held since .*restored/) });
  const used = join(folder, 'used.txt');
  await writeFile(used, 'after\n');
  const taken = await shell(command(`${doctor} --keys-used`, { 'used.txt': used }), env);
  expect(taken).toMatchObject({ code: 1 });
  const released = await shell(command(`${doctor} --release`), env);
  expect(released.code, released.text).toBe(0);
  expect((await keyed('before')).headers['idempotency-replayed']).toBe('true');
  expect((await keyed('after')).json.code).toBe('key_used_since_backup');
  expect((await keyed('new')).status).toBe(200);
});
