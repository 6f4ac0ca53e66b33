/**
 * Daemons on one database whose clock steps by an hour. They run in the process of the test, which
 * reads the database's clock for them.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { loadConfig, type RunningDaemon, startDaemon } from '../../src/daemon/daemon.ts';
import { acquireLease, registerDaemon } from '../../src/db/leases.ts';
import { type App, makeApp } from '../harness/app.ts';
import { createWorld, environmentOf, QUICK, type World } from '../harness/daemon.ts';
import { operationIdOf } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const HOUR = 3_600_000;
/** Longer than a heartbeat and the lease of a daemon, far shorter than the step. */
const SECONDS = { deadlineMs: 15_000 };
const SETTINGS = {
  ...QUICK,
  // A process of its own would read the clock itself.
  daemon: { ...QUICK.daemon, roles: ['gateway', 'api', 'workers'] },
  log: { level: 'fatal' },
  // The answer to the write in flight comes after the step.
  upstream: { ...QUICK.upstream, write_timeout_ms: 10_000 },
};

let world: World;
let stepMs: number;
const running: RunningDaemon[] = [];

/** Starts a daemon that reads the database's clock with the step. */
async function start(): Promise<App> {
  const config = loadConfig(environmentOf(world.database.url, world.sandbox.url), SETTINGS);
  const daemon = await startDaemon(config, async ({ sql }) => {
    const [row] = await sql<{ now: number }[]>`select clock_timestamp() as now`;
    return (row?.now ?? Number.NaN) + stepMs;
  });
  running.push(daemon);
  return makeApp(() => daemon.url);
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((daemon) => daemon.stop()));
  await world.close();
});

const statusOf = async (app: App) => (await app.call('GET', '/api/status')).json;
const nowOf = async (app: App) => Date.parse((await statusOf(app)).now);

/** Polls of a wallet that the service has answered. */
const polls = () =>
  world.sandbox.control
    .requests(0, 10_000)
    .filter(({ method, query }) => method === 'GET' && query.includes(world.ada)).length;

async function pollsGoOn(): Promise<true | undefined> {
  const before = polls();
  return until(async () => polls() > before + 2 || undefined, SECONDS);
}

describe.each([
  ['back', -HOUR],
  ['forward', HOUR],
])("When the database's clock steps %s by an hour", (_where, step) => {
  it('polls, leases and the write in flight continue within seconds, on all daemons', async () => {
    world = await createWorld();
    stepMs = 0;
    const apps = [await start(), await start()] as [App, App];
    const [app, other] = apps;
    // A daemon that died keeps the lease of the ledger until after the step; each of the others
    // asks for it at its start.
    const { db, owner } = world.database;
    const now = await nowOf(app);
    const dead = await registerDaemon(db, 'dmn_dead', now, 5_000);
    const taken = await until(async () => {
      const rows = await owner.sql`delete from tallyhook.leases where name = 'ledger' returning 1`;
      return rows.length > 0 ? acquireLease(db, 'ledger', dead, now, 10_000) : undefined;
    });
    expect(taken).toBeDefined();
    await app.call('POST', '/api/watches', [{ kind: 'wallet', addr: world.ada }]);
    expect(await pollsGoOn(), 'no polls before the step').toBe(true);

    world.sandbox.control.addFault({ kind: 'delay', contains: '4711', delay_ms: 3_000 });
    const inFlight = app.give(world.ada, 4711);
    const reached = () =>
      world.sandbox.control.effects(0n, 10_000).some(({ amount }) => amount === 4711n);
    expect(await until(async () => reached() || undefined), 'the write did not leave').toBe(true);
    stepMs = step;
    const noticed = async (of: App) => (await statusOf(of)).clock_correction_ms !== 0 || undefined;
    for (const each of apps) expect(await until(() => noticed(each), SECONDS)).toBe(true);
    apps.push(await start());

    expect(await pollsGoOn(), 'no polls after the step').toBe(true);
    const answer = await inFlight;
    expect(answer.status, answer.text).toBe(200);
    const id = operationIdOf(answer);
    const posted = await until(async () => {
      const [row] = await db.sql`
        select id from tallyhook.transactions where operation_id = ${id}`;
      return row && true;
    }, SECONDS);
    expect(posted, 'the lease did not move').toBe(true);
    const states = await db.sql<{ toState: string }[]>`
      select to_state from tallyhook.transitions where operation_id = ${id}`;
    expect(states.map(({ toState }) => toState)).not.toContain('unknown');
    // A write through another daemon is settled by its polls.
    const second = await other.give(world.ada, 4712);
    const settled = await other.until(
      ({ type, data }) =>
        type === 'operation.settled' && data.operation_id === operationIdOf(second),
    );
    // One answer may be late.
    const spread = async () => {
      const times = await Promise.all(apps.map(nowOf));
      return Math.max(...times) - Math.min(...times);
    };
    await expect.poll(spread).toBeLessThan(1_000);
    const age = Math.abs((await nowOf(other)) - Date.parse(settled.timestamp));
    expect(age).toBeLessThan(SECONDS.deadlineMs);
  });
});
