/**
 * The database is killed and started again while writes go on: the daemon lives, and afterwards
 * every write that the service applied is in the ledger, once.
 */
import { chmod } from 'node:fs/promises';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect } from '../../../src/db/connect.ts';
import { type EmbeddedServer, openEmbedded } from '../../../src/db/embedded/embedded.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import { makeApp } from '../../harness/app.ts';
import { CLIENT, environmentOf, QUICK, spawnDaemon } from '../../harness/daemon.ts';
import { useFolder } from '../../harness/folder.ts';
import { listen } from '../../harness/listen.ts';

const folder = useFolder();
let postgres: EmbeddedServer;
let sandbox: Sandbox;

beforeAll(async () => {
  await chmod(folder, 0o711);
  postgres = await openEmbedded({ directory: folder });
  const clock = { now: () => Date.now() };
  sandbox = await startSandbox({ ...CLIENT, seed: 3, clock });
});
afterAll(async () => {
  await sandbox?.close();
  await postgres?.stop();
});

it('the daemon outlives three restarts of Postgres, and no applied write is missing or doubled', async () => {
  const daemon = await spawnDaemon(environmentOf(postgres.url, sandbox.url), QUICK);
  const app = makeApp(() => daemon.url);
  const [ada] = sandbox.control.state().members.map((member) => member.addr ?? '');
  let amount = 1_000;
  let stop = false;
  const callers = Array.from({ length: 8 }, async () => {
    while (!stop) await app.give(ada as string, ++amount);
  });
  const port = Number(new URL(postgres.url).port);
  for (let restart = 0; restart < 3; restart++) {
    const goal = sandbox.control.effects(0n, 10_000).length + 40;
    while (sandbox.control.effects(0n, 10_000).length < goal) await app.call('GET', '/healthz');
    await postgres.stop();
    postgres = await openEmbedded({ directory: folder });
    expect(Number(new URL(postgres.url).port)).toBe(port);
  }
  const goal = sandbox.control.effects(0n, 10_000).length + 40;
  while (sandbox.control.effects(0n, 10_000).length < goal) await app.call('GET', '/healthz');
  stop = true;
  await Promise.all(callers);
  expect(daemon.child.exitCode).toBeNull();

  const db = connect({ url: postgres.url, max: 2 });
  const rows = await db.sql<{ amount: bigint; state: string }[]>`
    select amount, state from tallyhook.operations where kind = 'give'`;
  await db.end();
  const recorded = new Map(rows.map((row) => [row.amount, row.state]));
  const effects = sandbox.control.effects(0n, 10_000).filter((effect) => effect.kind === 'give');
  expect(new Set(effects.map((effect) => effect.amount)).size).toBe(effects.length);
  for (const effect of effects) {
    const state = recorded.get(effect.amount as bigint);
    expect(['accepted', 'settled', 'sending', 'unknown', 'executed', 'undecided']).toContain(state);
  }
  expect(await daemon.stop()).toBe(0);
}, 240_000);

it('The daemon outlives connections that end at their first statement', async () => {
  const sockets = new Set<Socket>();
  let connections = 0;
  let isCutting = false;
  const relay = createServer((near) => {
    const far = connectTcp(Number(new URL(postgres.url).port), '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        near.destroy();
        far.destroy();
      });
    }
    const cuts = isCutting && ++connections % 2 === 1;
    near.once('data', (startup) => {
      far.write(startup);
      if (cuts) near.once('data', () => near.resetAndDestroy());
      else near.pipe(far);
    });
    far.pipe(near);
  });
  const through = Object.assign(new URL(postgres.url), { port: String(await listen(relay)) });
  const daemon = await spawnDaemon(environmentOf(through.href, sandbox.url), QUICK);
  const app = makeApp(() => daemon.url);
  isCutting = true;
  const reads = () => Promise.all(Array.from({ length: 20 }, () => app.call('GET', '/api/keys')));
  for (let round = 0; round < 3; round++) {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    const before = connections;
    await expect
      .poll(async () => {
        await reads();
        return connections - before;
      })
      .toBeGreaterThan(4);
  }
  isCutting = false;
  await expect.poll(async () => (await reads()).every(({ status }) => status === 200)).toBe(true);
  expect(await daemon.stop()).toBe(0);
  for (const socket of sockets) socket.destroy();
  relay.close();
});
