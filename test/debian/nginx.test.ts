/** A daemon behind Debian's nginx: with its defaults, and with the block that docs/ shows. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { monotonicMs } from '../../src/kernel/clock.ts';
import { makeApp } from '../harness/app.ts';
import { runCommand } from '../harness/command.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useFolder } from '../harness/folder.ts';
import { type Nginx, startNginx } from '../harness/nginx.ts';
import { useRig } from '../harness/rig.ts';

const folder = useFolder();
const rig = useRig();
const authorization = `Bearer ${ADMIN_KEY}`;
const OPERATORS = readFileSync(join(import.meta.dirname, '../../docs/operators.md'), 'utf8');
const [, BLOCK = ''] = /^ {4}location \S+ \{\n *proxy_pass .*\n([^}]*)\}/m.exec(OPERATORS) ?? [];
let nginx: Nginx;
let impatient: Nginx;
let documented: Nginx;

beforeAll(async () => {
  nginx = await startNginx(folder, locationOf(rig.daemon.url));
  // A third of the time that nginx waits by default.
  impatient = await startNginx(folder, locationOf(rig.daemon.url, 'proxy_read_timeout 20s;'));
  documented = await startNginx(folder, locationOf(rig.daemon.url, BLOCK));
});
afterAll(async () => {
  await nginx?.close();
  await impatient?.close();
  await documented?.close();
});

const app = makeApp(() => nginx.url);

/** @param directives beside `proxy_pass` */
function locationOf(target: string, directives = ''): string {
  return `location / { proxy_pass ${target}; ${directives} }`;
}

/** The frames of an event stream as they arrive. */
async function* framesOf(url: string, types = '*') {
  const headers = { authorization, accept: 'text/event-stream' };
  const path = `/api/events?cursor=latest&types=${types}`;
  const { body, statusCode } = await request(`${url}${path}`, { headers });
  expect(statusCode).toBe(200);
  let text = '';
  for await (const part of body.setEncoding('utf8')) {
    text += part;
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    yield* frames;
  }
}

it('An event arrives while the stream goes on', async () => {
  const frames = framesOf(nginx.url);
  expect((await frames.next()).value).toMatch(/^id: \d+$/);
  const given = await app.give(rig.world.ada, 5);
  const id = String(given.headers['tallyhook-operation']);
  for await (const frame of frames) if (frame.includes(id)) break;
});

it('A stream without events outlasts the time that nginx waits for a byte', async () => {
  const startedAt = monotonicMs();
  let passedMs = 0;
  for await (const frame of framesOf(impatient.url, 'delivery.exhausted')) {
    expect(frame).toMatch(/^id: \d+$/);
    passedMs = monotonicMs() - startedAt;
    if (passedMs > 25_000) break;
  }
  expect(passedMs).toBeGreaterThan(25_000);
});

it('The lines of an answer arrive while its request is still being sent', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const line = (n: number) => `{"kind":"wallet","addr":"0x${n}"}\n`;
  async function* lines() {
    for (let n = 0; n < 1_000; n++) yield line(n);
    await promise;
  }
  const { body } = await request(`${documented.url}/api/watches?dry_run=true`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/x-ndjson' },
    body: Readable.from(lines()),
  });
  let text = '';
  for await (const part of body.setEncoding('utf8')) {
    text += part;
    resolve();
  }
  expect(text.trim().split('\n')).toHaveLength(1_001);
  expect(text).toMatch(/^\{"line":1,/);
});

it('A write passes nginx, and its answer is that of the service', async () => {
  const key = '"order \\"17\\""';
  const path = '/v1/app/token/operations/1/give?note=%c3%a9%2f';
  const write = { toAddr: rig.world.ada, amount: 3, reasonType: 'gift' };
  const first = await app.call('POST', path, write, { 'idempotency-key': key });
  expect(first.status, first.text).toBe(200);
  const other = path.replace('%c3%a9%2f', '%C3%A9%2F');
  const repeat = await rig.app.call('POST', other, write, { 'idempotency-key': 'order "17"' });
  expect(repeat.headers['idempotency-replayed']).toBe('true');
  expect(repeat.text).toBe(first.text);
});

it('The console and the page of the API are shown through nginx', async () => {
  for (const path of ['/', '/operations', '/docs', '/console/style.css', '/api/openapi.json'])
    expect((await app.call('GET', path)).status, path).toBe(200);
});

it('An upload that nginx refuses is explained by the command, which works with the block of docs/', async () => {
  const file = join(folder, 'wallets.csv');
  const rows = Array.from({ length: 60_000 }, (_, n) => `0x${String(n).padStart(40, '0')}`);
  await writeFile(file, `addr\n${rows.join('\n')}\n`);
  const upload = (url: string) =>
    runCommand(
      { TALLYHOOK_URL: url, TALLYHOOK_KEY: ADMIN_KEY },
      'watches',
      'import',
      file,
      '--dry-run',
    );
  const refused = await upload(nginx.url);
  expect(refused.code).toBe(1);
  expect(refused.text).toMatch(/^a proxy at .* answered 413: .*client_max_body_size/);
  const taken = await upload(documented.url);
  expect(taken.text).toContain('60000 lines: 60000 added');
  expect(taken.code).toBe(0);
});

it('A proxy that does not reach the daemon is named by the command', async () => {
  const lost = await startNginx(folder, locationOf('http://127.0.0.1:9'));
  try {
    const env = { TALLYHOOK_URL: lost.url, TALLYHOOK_KEY: ADMIN_KEY };
    const { code, text } = await runCommand(env, 'watches', 'list');
    expect({ code, text }).toEqual({
      code: 1,
      text: expect.stringMatching(/^a proxy at http.* answered 502: /),
    });
  } finally {
    await lost.close();
  }
});
