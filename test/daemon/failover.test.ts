/** A daemon whose DATABASE_URL names a primary and its standby, through a failover. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/db/connect.ts';
import { monotonicMs, systemClock } from '../../src/kernel/clock.ts';
import { printLine } from '../../src/kernel/telemetry/log.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { type App, makeApp } from '../harness/app.ts';
import {
  CLIENT,
  type DaemonProcess,
  environmentOf,
  QUICK,
  spawnDaemon,
} from '../harness/daemon.ts';
import { DEBIAN_BIN } from '../harness/postgres-programs.ts';
import { openServers, type Servers } from '../harness/replicated-servers.ts';
import { until } from '../harness/until.ts';

/** From the end of the promotion, on a machine that other tests keep busy. */
const AGAIN_WITHIN_MS = 30_000;

describe('A failover with both servers in DATABASE_URL', () => {
  if (!existsSync(DEBIAN_BIN)) {
    it('is not tested without another Postgres: apt-get install postgresql-15', () => {
      expect(existsSync(DEBIAN_BIN)).toBe(false);
    });
    return;
  }
  let servers: Servers;
  let sandbox: Sandbox;
  let daemon: DaemonProcess;
  let app: App;
  let amount = 1_000;
  const addr = `0x${'fa'.repeat(20)}`;
  const give = () => app.give(addr, ++amount).catch(() => undefined);

  beforeAll(async () => {
    servers = await openServers(DEBIAN_BIN, true);
    sandbox = await startSandbox({ ...CLIENT, seed: 3, clock: systemClock });
    sandbox.control.setWallet(addr, {});
    const env = { ...environmentOf(servers.url, sandbox.url), DATABASE_URL: servers.hostsUrl };
    // The defaults: what a heartbeat and a reconnection take in production.
    const { reconciler } = QUICK;
    daemon = await spawnDaemon(env, { http: { port: 0 }, reconciler });
    app = makeApp(() => daemon.url);
  }, 120_000);
  afterAll(async () => {
    await daemon?.kill();
    await sandbox?.close();
    await servers?.close();
  });

  it('lets writes go on, none lost or doubled', async () => {
    for (let n = 0; n < 5; n++) expect((await give())?.status).toBe(200);
    const stoppedMs = monotonicMs();
    let isOver = false;
    const writing = (async () => {
      while (!isOver) await give();
    })();
    try {
      await servers.failOver();
      const promotedMs = monotonicMs();
      const isWritten = async () => (await give())?.status === 200 || undefined;
      const plan = { deadlineMs: AGAIN_WITHIN_MS, everyMs: 50 };
      expect(await until(isWritten, plan)).toBe(true);
      const writtenMs = monotonicMs();
      const seconds = (ms: number) => (ms / 1_000).toFixed(1);
      printLine(
        `failover: writes again ${seconds(writtenMs - promotedMs)} s after the promotion, ` +
          `${seconds(writtenMs - stoppedMs)} s after the primary was stopped`,
      );
    } finally {
      isOver = true;
      await writing;
    }
    expect((await app.call('GET', '/readyz')).status).toBe(200);

    const db = connect({ url: servers.standbyUrl, max: 1 });
    const recorded = async () => {
      const rows = await db.sql<{ amount: bigint; outcome: string }[]>`
        select amount, outcome from tallyhook.operations order by amount`;
      return rows.some(({ outcome }) => outcome === 'open') ? undefined : rows;
    };
    const rows = await until(recorded);
    await db.end();
    const executed = rows?.filter(({ outcome }) => outcome === 'executed');
    const applied = sandbox.control.effects(0n, 100_000).map((effect) => effect.amount);
    const sorted = applied.toSorted((a, b) => Number((a ?? 0n) - (b ?? 0n)));
    expect(executed?.map((row) => row.amount)).toEqual(sorted);
  });
});
