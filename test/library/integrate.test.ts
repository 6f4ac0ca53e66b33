/**
 * What docs/integrate.md says, in a fresh folder and with nothing but its words: the package is
 * made and installed, and each of its files is run against a daemon. CI has the registry of npm.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useFolder } from '../harness/folder.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { useRig } from '../harness/rig.ts';
import { clientSchema, SCHEMA } from './make-client.ts';

const ROOT = join(import.meta.dirname, '../..');
const rig = useRig();
const app = join(useFolder(), 'app');
const running: ChildProcess[] = [];
/** Without what the tests set for programs of this folder. */
const environment: NodeJS.ProcessEnv = { ...process.env, NODE_COMPILE_CACHE: undefined };

const runIn = async (cwd: string, program: string, ...args: string[]) =>
  (await promisify(execFile)(program, args, { cwd, env: environment, timeout: 200_000 })).stdout;
const node = (...args: string[]) => runIn(app, process.execPath, ...args);

beforeAll(async () => {
  await mkdir(app);
  const packed = await runIn(ROOT, 'npm', 'pack', './library', '--json', '--pack-destination', app);
  const [{ filename = '' } = {}]: { filename?: string }[] = JSON.parse(
    packed.slice(packed.indexOf('[\n')),
  );
  await runIn(app, 'npm', 'init', '-y');
  await runIn(app, 'npm', 'install', `./${filename}`, 'express@5.2.1');
  const page = await readFile(join(ROOT, 'docs/integrate.md'), 'utf8');
  for (const [, name = '', code = ''] of page.matchAll(/`(\S+\.mjs)`:\n\n```\w+\n([\s\S]*?)```/g))
    await writeFile(join(app, name), code);
  const { owner, scopes } = { owner: 'shop', scopes: ['gateway', 'read', 'manage'] };
  const key = await rig.app.call('POST', '/api/keys', { name: owner, owner, scopes });
  expect(key.status, key.text).toBe(201);
  environment.TALLYHOOK_URL = rig.daemon.url;
  environment.TALLYHOOK_KEY = key.json.key;
}, 300_000);
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a file of the app; answers what it has printed. */
function start(file: string, env: NodeJS.ProcessEnv): () => string {
  const child = spawn(process.execPath, [file], { cwd: app, env: { ...environment, ...env } });
  running.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      text += chunk;
    });
  return () => text;
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await closeServer(server);
  return port;
}

/** The operation of a line that `first.mjs` printed. */
const operationOf = (text: string) => /^op_\S+/.exec(text)?.[0] ?? `no operation: ${text}`;

it('The files of the page record a write once, and verify the webhook of its end', async () => {
  const { ada } = rig.world;
  const first = await node('first.mjs', ada, 'order-1');
  expect(first).toContain('tx_log_no');
  expect(await node('first.mjs', ada, 'order-1')).toBe(first);
  const port = await freePort();
  const secret = (await node('subscribe.mjs', `http://127.0.0.1:${port}/`)).trim();
  const printed = start('receiver.mjs', { PORT: String(port), WEBHOOK_SECRET: secret });
  const second = operationOf(await node('first.mjs', ada, 'order-2'));
  expect(second).not.toBe(operationOf(first));
  await expect.poll(printed).toContain(`settled ${second} 5`);
});

it('The receiver of the page takes the example that its command sends without a daemon', async () => {
  const port = await freePort();
  const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const printed = start('receiver.mjs', { PORT: String(port), WEBHOOK_SECRET });
  const url = `http://127.0.0.1:${port}/`;
  const status = async () => (await fetch(url).catch(() => undefined))?.status;
  await expect.poll(status).toBe(405);
  const page = await readFile(join(ROOT, 'docs/integrate.md'), 'utf8');
  const [command = ''] = /npx tallyhook trigger [\s\S]*?(?=\n\n)/.exec(page) ?? [];
  const sent = command.replace('http://127.0.0.1:3000/', url);
  const env = { ...environment, WEBHOOK_SECRET };
  const { stdout } = await promisify(execFile)('sh', ['-euc', sent], { cwd: ROOT, env });
  expect(stdout).toContain('  204 in ');
  await expect.poll(printed).toMatch(/^settled op_/m);
});

it('A receiver in Express takes what is signed, before what parses bodies', async () => {
  const port = await freePort();
  const secret = (await node('subscribe.mjs', `http://127.0.0.1:${port}/webhooks`)).trim();
  await writeFile(
    join(app, 'express.mjs'),
    `import createApp, { json } from 'express';
import { makeReceiver } from 'tallyhook/receive';
const { express } = makeReceiver({ keys: process.env.WEBHOOK_SECRET });
const app = createApp();
app.post('/webhooks', express(({ type, data }) => console.log(type, data.operation_id)));
app.post('/late', json(), express(() => {}));
app.listen(process.env.PORT, '127.0.0.1');
`,
  );
  const printed = start('express.mjs', { PORT: String(port), WEBHOOK_SECRET: secret });
  const operation = operationOf(await node('first.mjs', rig.world.ada, 'order-3'));
  await expect.poll(printed).toContain(`operation.settled ${operation}`);
  const late = await fetch(`http://127.0.0.1:${port}/late`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  expect([late.status, await late.json()]).toMatchObject([500, { code: 'body_consumed' }]);
});

it('The package has its types, checked strictly, and its vectors', async () => {
  const code = `import { makeClient, type components } from 'tallyhook/client';
import { type EventOf, makeReceiver } from 'tallyhook/receive';
const client = makeClient({ url: 'http://127.0.0.1:8080', key: 'thk_1' });
export const { node } = makeReceiver({ keys: 'whsec_1', onlyNewer: true });
type Changed = EventOf<'wallet.balance_changed'>;
export const balance = ({ data }: Changed): string => data.current.balance;
export async function open(): Promise<components['schemas']['Drift'][]> {
  const { data } = await client.GET('/api/drifts', { params: { query: { state: 'open' } } });
  return data?.data ?? [];
}
// @ts-expect-error a path that the daemon does not have
export const wrong = () => client.GET('/api/nothing');
`;
  await writeFile(join(app, 'check.ts'), code);
  const options = { module: 'nodenext', target: 'es2022', strict: true, noEmit: true };
  const roots = [join(ROOT, 'node_modules/@types')];
  const compilerOptions = { ...options, types: ['node'], typeRoots: roots };
  const project = { compilerOptions, files: ['check.ts'] };
  await writeFile(join(app, 'tsconfig.json'), JSON.stringify(project));
  await runIn(app, join(ROOT, 'node_modules/.bin/tsc'), '-p', '.');
  const read = `import vectors from 'tallyhook/receive/vectors.json' with { type: 'json' };
    console.log(vectors.vectors.length > 20);`;
  expect(await node('--input-type=module', '-e', read)).toBe('true\n');
});

it('The types of the client are what its generator makes of the document', async () => {
  expect(await readFile(SCHEMA, 'utf8')).toBe(await clientSchema());
});
