/**
 * Receivers that are installed, written and started as docs/samples.md says and knows no more, take
 * what a daemon sends across a rotation of its keys, and nothing else. Their libraries come from
 * the registries of their languages; those of Ruby and PHP are not reached where this runs.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeKey, parseKey, signedHeaders } from '../../src/webhooks/endpoints/signing.ts';
import { useFolder } from '../harness/folder.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { useRig } from '../harness/rig.ts';
import { seededRandom } from '../harness/seeded-random.ts';

const PAGE = join(import.meta.dirname, '../../docs/samples.md');
const rig = useRig();
const folder = useFolder();
const random = seededRandom(3);
const now = () => Math.floor(systemClock.now() / 1_000);
const [other, asymmetric] = [makeKey('v1', 0, random).secret, makeKey('v1a', 0, random).secret];
const START = { timeout: 100_000 };
let child: ChildProcess | undefined;

/** Also the programs that Go and Java start. */
async function stop(): Promise<void> {
  const running = child;
  child = undefined;
  if (running?.pid === undefined || running.exitCode !== null) return;
  const closed = new Promise((resolve) => running.on('close', resolve));
  process.kill(-running.pid, 'SIGKILL');
  await closed;
}
afterEach(stop);

/** What the page says of a language: its commands, the name of its file, and the file. */
async function sampleOf(language: string) {
  const page = await readFile(PAGE, 'utf8');
  const part = page.split('\n## ').find((one) => one.startsWith(`${language}\n`)) ?? '';
  const [install = '', , start = ''] = part.split('\n').filter((line) => line.startsWith('    '));
  const [, file = '', code = ''] = /`(\S+)`:\n\n```\w+\n([\s\S]*?)```/.exec(part) ?? [];
  return { install: install.trim(), start: start.trim(), file, code };
}

/** Packages of a sample stay in its folder. */
function environment(cwd: string): NodeJS.ProcessEnv {
  const packages = join(cwd, 'packages');
  return { ...process.env, PIP_TARGET: packages, PYTHONPATH: packages };
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await closeServer(server);
  return port;
}

interface Sent {
  signedBy?: string[];
  at?: number;
  change?: (headers: Record<string, string>) => Record<string, string>;
  changeBody?: (body: string) => string;
}

/** The status that a sample answers; undefined while it does not listen yet. */
async function send(url: string, sent: Sent): Promise<number | undefined> {
  const { signedBy = [other], at = now(), change = (h) => h, changeBody = (b) => b } = sent;
  const id = 'evt_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
  const body = JSON.stringify({ id, type: 'endpoint.test', data: { reason: 'één 한국' } });
  const message = { id, timestamp: at, body: Buffer.from(body) };
  const headers = change(signedHeaders(message, signedBy.map(parseKey)));
  const answer = await fetch(url, { method: 'POST', headers, body: changeBody(body) }).catch(
    () => undefined,
  );
  return answer?.status;
}

/** The library for Go needs 1.21; Debian 12 has 1.19. */
const GO = execFileSync('go', ['version'], { encoding: 'utf8' });
const LANGUAGES = ['JavaScript', 'Python', 'Go', 'Java'].filter(
  (language) => language !== 'Go' || Number(/go1\.(\d+)/.exec(GO)?.[1]) >= 21,
);

it.each(LANGUAGES)(
  'A receiver in %s written from the docs alone verifies a rotation of keys, and refuses all else',
  async (language) => {
    const { install, start, file, code } = await sampleOf(language);
    const cwd = join(folder, language);
    await mkdir(cwd);
    await writeFile(join(cwd, file), code);
    const env = environment(cwd);
    await promisify(execFile)('sh', ['-euc', install], { cwd, env, timeout: 200_000 });
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;

    async function run(secret: string): Promise<() => string> {
      await stop();
      let text = '';
      const own = { WEBHOOK_SECRET: secret, PORT: String(port) };
      child = spawn('sh', ['-euc', start], { cwd, env: { ...env, ...own }, detached: true });
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk) => {
          text += chunk;
        });
      await expect.poll(() => send(url, { signedBy: [secret] }), START).toBe(204);
      return () => text;
    }
    /** Asks for a test event, and waits until the receiver wrote its id after verifying it. */
    async function takes(id: string, written: () => string): Promise<void> {
      const asked = await rig.app.call('POST', `/api/endpoints/${id}/test`);
      expect(asked.status, asked.text).toBeLessThan(300);
      await expect.poll(written).toContain(asked.json.event_id);
    }

    const made = await rig.app.call('POST', '/api/endpoints', {
      url,
      event_types: ['endpoint.test'],
      signing: ['v1', 'v1a'],
    });
    expect(made.status, made.text).toBe(201);
    const { id, secret: old } = made.json;
    const before = await run(old);
    await takes(id, before);
    const rotated = await rig.app.call('POST', `/api/endpoints/${id}/rotate`, {});
    expect(rotated.status, rotated.text).toBeLessThan(300);
    const { secret } = rotated.json;
    expect(secret).not.toBe(old);
    await takes(id, before);
    await takes(id, await run(secret));

    expect(await send(url, { signedBy: [old, asymmetric, secret] })).toBe(204);
    const signedBy = [secret];
    expect(await send(url, { signedBy: [other] })).toBe(400);
    expect(await send(url, { signedBy: [old] })).toBe(400);
    expect(await send(url, { signedBy: [asymmetric] })).toBe(400);
    expect(await send(url, { signedBy, at: now() - 400 })).toBe(400);
    expect(await send(url, { signedBy, at: now() + 400 })).toBe(400);
    const changeBody = (body: string) => body.replace('test', 'tess');
    expect(await send(url, { signedBy, changeBody })).toBe(400);
    expect(await send(url, { signedBy, change: () => ({}) })).toBe(400);
    const malformed = { 'webhook-signature': 'v1', 'webhook-timestamp': 'x' };
    const change = (headers: Record<string, string>) => ({ ...headers, ...malformed });
    expect(await send(url, { signedBy, change })).toBe(400);
  },
  300_000,
);
