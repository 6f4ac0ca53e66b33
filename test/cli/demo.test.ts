/**
 * The walk-through, pointed at a service by environment and options alone: here the sandbox in a
 * process of its own, as any other implementation would be.
 */
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const CLI = ['src/cli/tallyhook.ts'];
let sandbox: ReturnType<typeof spawn>;
let url: string;

beforeAll(async () => {
  sandbox = spawn(process.execPath, [...CLI, 'sandbox', '--port', '0', '--seed', '9'], {
    cwd: ROOT,
  });
  url = await new Promise((resolve) => {
    createInterface({ input: sandbox.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const ready = /ready at (\S+)/.exec(line);
      if (ready?.[1]) resolve(ready[1]);
    });
  });
});
afterAll(() => {
  sandbox?.kill('SIGTERM');
});

const run = (wallets: string[]) =>
  new Promise<{ code: number; out: string }>((resolve) => {
    const args = [...CLI, 'demo', '--contract', '1', '--operator', '1', '--wallet', ...wallets];
    const env = {
      PATH: process.env.PATH,
      UPSTREAM_BASE_URL: url,
      UPSTREAM_AUTH_URL: url,
      UPSTREAM_TX_URL: url,
      UPSTREAM_CLIENT_ID: 'sandbox-client',
      UPSTREAM_CLIENT_SECRET: 'sandbox-secret',
    };
    execFile(process.execPath, args, { cwd: ROOT, env }, (error, out) =>
      resolve({ code: error ? 1 : 0, out }),
    );
  });

async function members(): Promise<string[]> {
  const state = await (await fetch(`${url}/_sandbox/state`)).json();
  return (state as { members: { addr: string }[] }).members.map((member) => member.addr);
}

// First, while no token names a second wallet that the demo could find by itself.
it('every step holds with one wallet, whose polls around the lost answer resolve it', async () => {
  const [, , chloe] = await members();
  const { code, out } = await run([chloe as string]);
  expect(out).toContain('resolved as executed by evidence');
  expect(out).toContain('Every step succeeded.');
  expect(code).toBe(0);
}, 120_000);

it('every step holds with two wallets, and the lost answer is resolved by evidence', async () => {
  const [ada, ben] = await members();
  const { code, out } = await run([ada as string, ben as string]);
  expect(out).toContain('resolved as executed by evidence');
  expect(out).toContain('Every step succeeded.');
  expect(code).toBe(0);
}, 120_000);
