/** `tallyhook sandbox` as a person meets it: help, the ready line, refusals of one line. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/kernel/assert.ts';

const CLI = fileURLToPath(new URL('../../src/cli/tallyhook.ts', import.meta.url));
const running = new Set<ChildProcess>();
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandbox-command-'));
});
afterEach(async () => {
  await Promise.all([...running].map((child) => ended(child, 'SIGKILL')));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function begun(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [CLI, 'sandbox', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function ready(...args: string[]) {
  const child = begun('--port', '0', '--json', ...args);
  const [line] = await once(must(child.stdout, 'output'), 'data');
  return { child, ready: JSON.parse(String(line)) };
}

async function ended(child: ChildProcess, signal: NodeJS.Signals) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  await gone;
}

/** What a command that ends by itself said, and its exit code. */
async function said(...args: string[]) {
  const child = begun(...args);
  const all = Promise.all([must(child.stdout, 'output'), must(child.stderr, 'errors')].map(text));
  const [code] = await once(child, 'exit');
  const [output = '', errors = ''] = await all;
  return { code, lines: (output + errors).trim().split('\n') };
}

test('--help shows every option and examples', async () => {
  const { code, lines } = await said('--help');
  expect(code).toBe(0);
  const help = lines.join('\n');
  for (const word of ['--port', '--seed', '--client-id', '--data-dir', '--json', 'curl -u']) {
    expect(help).toContain(word);
  }
});

test('--json prints one line with all that a caller needs, and SIGTERM ends it well', async () => {
  const { child, ready: line } = await ready('--seed', '7', '--client-id', 'a');
  expect(line).toEqual({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    control: `${line.url}/_sandbox`,
    seed: 7,
    client_id: 'a',
    client_secret: 'sandbox-secret',
  });
  expect((await fetch(`${line.url}/v1/system/maintenance`)).status).toBe(200);
  await ended(child, 'SIGTERM');
  expect(child.exitCode).toBe(0);
});

test('A taken port and an unusable folder are told in one line', async () => {
  const { ready: line } = await ready();
  const taken = await said('--port', new URL(line.url).port);
  expect(taken).toEqual({ code: 1, lines: [expect.stringContaining('is taken')] });
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const unusable = await said('--port', '0', '--data-dir', file);
  expect(unusable).toEqual({ code: 1, lines: [expect.stringContaining('cannot be used')] });
  const nowhere = await said('--port', '0', '--host', '203.0.113.1');
  expect(nowhere).toEqual({ code: 1, lines: [expect.stringContaining('EADDRNOTAVAIL')] });
});

test('A folder has one sandbox at a time, and the next one goes on with its world', async () => {
  const directory = join(folder, 'data');
  const { child } = await ready('--seed', '3', '--data-dir', directory);
  const second = await said('--port', '0', '--data-dir', directory);
  expect(second).toEqual({ code: 1, lines: [expect.stringContaining('another sandbox runs in')] });
  await ended(child, 'SIGKILL');
  const { ready: line } = await ready('--seed', '4', '--data-dir', directory);
  expect(line.seed).toBe(3);
});
