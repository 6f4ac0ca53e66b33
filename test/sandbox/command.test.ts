/** The command `tallyhook sandbox`: help, the ready line, refusals. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { runSandbox, type SandboxCommand } from '../../src/cli/demo/sandbox.ts';
import { platform } from '../../src/db/platform.ts';
import { must } from '../../src/kernel/errors.ts';
import { useFolder } from '../harness/folder.ts';
import { listen } from '../harness/listen.ts';

const CLI = fileURLToPath(new URL('../../src/cli/tallyhook.ts', import.meta.url));
const running = new Set<ChildProcess>();
const folder = useFolder();

afterEach(async () => {
  await Promise.all([...running].map((child) => stopped(child, 'SIGKILL')));
});

function spawned(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [CLI, 'sandbox', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Starts the command and returns its first output. */
async function started(...args: string[]) {
  const child = spawned(...args);
  const [output] = await once(must(child.stdout, 'output'), 'data');
  return { child, output: String(output) };
}

async function stopped(child: ChildProcess, signal: NodeJS.Signals) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill(signal);
  await exit;
}

it('--help shows the options and an example', async () => {
  const output = await text(must(spawned('--help').stdout, 'output'));
  for (const part of ['--port', '--seed', '--client-id', '--data-dir', '--json', 'Example']) {
    expect(output).toContain(part);
  }
});

it('--json prints one line with address and credentials; SIGTERM ends the command with 0', async () => {
  const directory = join(folder, 'data');
  const args = ['--port', '0', '--json', '--data-dir', directory];
  const first = await started(...args, '--seed', '7', '--client-id', 'a');
  const ready = JSON.parse(first.output);
  expect(ready).toEqual({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    control: `${ready.url}/_sandbox`,
    seed: 7,
    client_id: 'a',
    client_secret: 'sandbox-secret',
  });
  expect((await fetch(`${ready.url}/v1/system/maintenance`)).status).toBe(200);
  await stopped(first.child, 'SIGTERM');
  expect(first.child.exitCode).toBe(0);

  // The folder is free again, and its world keeps the seed.
  const second = await started(...args, '--seed', '4');
  expect(JSON.parse(second.output).seed).toBe(7);
});

it('SIGTERM lets requests in flight be answered, and refuses new ones', async () => {
  const { child, output } = await started('--port', '0', '--json');
  const { url } = JSON.parse(output);
  const fault = { kind: 'delay', path: '/v1/system/maintenance', delay_ms: 1_500 };
  const headers = { 'content-type': 'application/json' };
  const added = await fetch(`${url}/_sandbox/faults`, {
    method: 'POST',
    headers,
    body: JSON.stringify(fault),
  });
  expect(added.ok, await added.text()).toBe(true);
  const answer = fetch(`${url}/v1/system/maintenance`);
  const seen = async () => (await fetch(`${url}/_sandbox/requests`)).text();
  await expect.poll(seen).toContain('/v1/system/maintenance');
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const isRefused = () =>
    fetch(`${url}/_sandbox`).then(
      () => false,
      () => true,
    );
  await expect.poll(isRefused).toBe(true);
  expect((await answer).status).toBe(200);
  expect(await exit).toEqual([0, null]);
});

it('A taken port, an unusable folder or a folder in use is refused in one line', async () => {
  const run = (options: Partial<SandboxCommand>) =>
    runSandbox({
      port: 0,
      host: '127.0.0.1',
      seed: 1,
      clientId: 'a',
      clientSecret: 'b',
      ...options,
    });
  const refused = (message: string) => ({
    code: 'bad_setting',
    message: expect.stringMatching(new RegExp(`^[^\\n]*${message}[^\\n]*$`)),
  });

  const server = createServer();
  const port = await listen(server);
  await expect(run({ port })).rejects.toMatchObject(refused('is in use'));
  server.close();

  await expect(run({ host: '203.0.113.1' })).rejects.toMatchObject(refused('EADDRNOTAVAIL'));

  const file = join(folder, 'file');
  writeFileSync(file, '');
  await expect(run({ dataDir: file })).rejects.toMatchObject(refused('cannot be used'));

  const used = mkdtempSync(join(folder, 'used-'));
  const held = join(used, 'sandbox');
  mkdirSync(held);
  const release = must(await platform.tryLock('sandbox', realpathSync(held)), 'lock');
  await expect(run({ dataDir: used })).rejects.toMatchObject(refused('another sandbox runs in'));
  await release();
});
