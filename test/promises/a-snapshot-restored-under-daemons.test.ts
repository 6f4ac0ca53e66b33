/**
 * Promise 14, while daemons run: the files of Postgres are copied, writes go on, and the copy is
 * put back in their place. Identifier, oid and timeline are those of the original.
 */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type EmbeddedServer, openEmbedded } from '../../src/db/embedded/embedded.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { type Answered, type App, makeApp } from '../harness/app.ts';
import {
  CLIENT,
  type DaemonProcess,
  environmentOf,
  QUICK,
  spawnDaemon,
} from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

/** With heartbeats as rare as in production: nothing else may be what notices the copy. */
const SETTINGS = { ...QUICK, daemon: { ...QUICK.daemon, heartbeat_timeout_ms: 15_000 } };

let folder: string;
let postgres: EmbeddedServer;
let sandbox: Sandbox;
let wallets: string[];
let daemons: DaemonProcess[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tallyhook-snapshot-'));
  await chmod(folder, 0o711);
  postgres = await openEmbedded({ directory: join(folder, 'home') });
  sandbox = await startSandbox({ ...CLIENT, seed: 3, clock: { now: () => Date.now() } });
  const members = sandbox.control.state().members;
  wallets = members.slice(0, 2).map((member) => member.addr ?? '');
  daemons = [];
});
afterEach(async () => {
  await Promise.all(daemons.map((daemon) => daemon.kill()));
  await sandbox.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

async function start(): Promise<App> {
  const daemon = await spawnDaemon(environmentOf(postgres.url, sandbox.url), SETTINGS);
  daemons.push(daemon);
  return makeApp(() => daemon.url);
}

/** Stops Postgres, changes its files, and starts it again on its port. */
async function whileStopped(change: (data: string, copy: string) => Promise<void>) {
  await postgres.stop();
  await change(postgres.dataFolder, join(folder, 'copy'));
  postgres = await openEmbedded({ directory: join(folder, 'home') });
}
/** With their owners: Postgres does not run as root. */
const copyFiles = async (from: string, to: string) => {
  await promisify(execFile)('cp', ['-a', from, to]);
};
const snapshot = () => whileStopped(copyFiles);
const restore = () =>
  whileStopped(async (data, copy) => {
    await rm(data, { recursive: true });
    await copyFiles(copy, data);
  });

const wallet = (n: number) => wallets[n % wallets.length] ?? '';
/** Repeats the give until the daemon has its database again. */
async function give(app: App, amount: number): Promise<Answered> {
  const key = { 'idempotency-key': `order-${amount}` };
  const answered = async () => {
    const answer = await app.give(wallet(amount), amount, key);
    return answer.status === 503 ? undefined : answer;
  };
  const answer = await until(answered);
  if (!answer) throw new Error('the database never came back');
  return answer;
}
const applied = () => sandbox.control.effects(0n, 10_000).map(({ amount }) => Number(amount));
const timesOf = (amounts: readonly number[]) =>
  amounts.map((amount) => applied().filter((one) => one === amount).length);
const once = (amounts: readonly number[]) => amounts.map(() => 1);
const ORDERS = [...Array(10).keys()].map((n) => 7_000 + n);
const freezeOf = async (app: App) => (await app.call('GET', '/api/status')).json.freeze;

/** Gives with keys after the copy was made, which a restart of Postgres does not stop. */
async function giveOrders(app: App) {
  for (const amount of ORDERS) expect((await give(app, amount)).status).toBe(200);
  expect(await freezeOf(app)).toBeNull();
}

/** Repeats the keys, all at once, on the copy. */
async function expectNoneTwice(app: App, spoken: App) {
  const codes = await Promise.all(ORDERS.map(async (n) => (await give(spoken, n)).json.code));
  expect(timesOf(ORDERS)).toEqual(once(ORDERS));
  expect(codes).toEqual(ORDERS.map(() => 'frozen'));
  expect(await freezeOf(app)).toMatchObject({ reason: expect.stringContaining('older') });
  expect(daemons.map((daemon) => daemon.output()).join('\n')).toContain('doctor --restored');
}

describe('A copy of the files of Postgres that is put back under running daemons', () => {
  it('The daemon sends no key a second time and is frozen', async () => {
    const app = await start();
    await give(app, 6_000);
    await snapshot();
    await giveOrders(app);
    await restore();
    await expectNoneTwice(app, app);
  }, 120_000);

  it('Another daemon, which sent nothing itself, sends no key a second time either', async () => {
    const [app, other] = await Promise.all([start(), start()]);
    await give(app, 6_000);
    await give(other, 6_001);
    await snapshot();
    await giveOrders(app);
    await restore();
    await expectNoneTwice(app, other);
  }, 120_000);

  it('Nothing is sent a second time while apps write without a pause', async () => {
    const [app, other] = await Promise.all([start(), start()]);
    let stop = false;
    let amount = 20_000;
    const callers = Array.from({ length: 12 }, async (_, n) => {
      while (!stop) await give(n % 2 ? app : other, ++amount).catch(() => {});
    });
    const grow = async (by: number) => {
      const goal = applied().length + by;
      await until(async () => applied().length >= goal || undefined);
    };
    await grow(50);
    await snapshot();
    await grow(50);
    await giveOrders(app);
    const before = applied();
    await restore();
    const repeats = before.filter((one) => one >= 20_000).slice(-40);
    await Promise.all(repeats.map((one, n) => give(n % 2 ? app : other, one)));
    await expectNoneTwice(app, other);
    stop = true;
    await Promise.all(callers);
    expect(applied().filter((one, i, all) => all.indexOf(one) !== i)).toEqual([]);
  }, 120_000);

  it('A write that waited in the queue when the copy was made is not sent from it', async () => {
    const app = await start();
    await give(app, 6_000);
    sandbox.control.maintenance({ state: 'on' });
    const queued = await app.give(wallet(0), 8_000, {
      'idempotency-key': 'queued',
      prefer: 'respond-async',
    });
    expect(queued.status).toBe(202);
    const id = String(queued.headers['tallyhook-operation']);
    await snapshot();
    sandbox.control.maintenance({ state: 'off' });
    expect(await until(async () => timesOf([8_000])[0] || undefined)).toBe(1);
    await restore();
    const frozen = async () => (await freezeOf(app).catch(() => undefined)) ?? undefined;
    expect(await until(frozen)).toMatchObject({ reason: expect.stringContaining('older') });
    const cancelled = await app.call('DELETE', `/api/operations/${id}`);
    expect(cancelled.json.detail).toMatch(/may have been sent/);
    expect((await app.call('GET', `/api/operations/${id}`)).json.state).toBe('queued');
    expect(timesOf([8_000])).toEqual([1]);
  }, 120_000);
});
