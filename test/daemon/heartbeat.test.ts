/** When a daemon counts itself as alive, on a machine that is suspended or whose clock is set. */
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { makeHeartbeat } from '../../src/daemon/heartbeat.ts';
import { holdProofs, makeIdentityProof } from '../../src/daemon/identity.ts';
import { databaseClock } from '../../src/db/clock/clock.ts';
import { registerDaemon, retireDaemon, setInstallationSetting } from '../../src/db/leases.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import { ROLES } from '../../src/resources/admin/status.ts';
import { useDatabase } from '../harness/database.ts';
import { untilLockWaits } from '../harness/lock-waits.ts';
import { type ManualMachine, manualMachine } from '../harness/manual-machine.ts';
import { textLog } from '../upstream/rig.ts';

const ALIVE_MS = 15_000;
const SERVICE = 'https://service.example, client shop';
const { db, owner } = await useDatabase();
let daemons = 0;

async function openHeartbeat({ log, aliveMs } = { log: makeLog('silent'), aliveMs: ALIVE_MS }) {
  const machine = manualMachine();
  const counts = { monotonicMs: machine.count.ms, uptimeMs: machine.uptimeMs };
  const clock = await databaseClock(db, log, undefined, counts);
  const database = { db, clock, folder: undefined, revive: async () => {} };
  const daemon = await registerDaemon(db, `dmn_${++daemons}`, clock.now(), aliveMs);
  const heartbeat = makeHeartbeat({
    database,
    identity: makeIdentityProof({ database, dataDir: '/dev/null/none', log }),
    daemon,
    roles: () => ROLES,
    upstream: { appPerS: () => 0, share: () => {}, syncQuota: async () => {} },
    operatorMappings: { load: async () => {} },
    log,
    metrics: makeMetrics(),
    aliveMs,
    service: SERVICE,
    machine: machine.count,
  });
  return { machine, heartbeat, clock, daemon };
}

it.each<[string, (machine: ManualMachine) => void, boolean]>([
  ['less than its timeout has passed', (one) => one.pass(ALIVE_MS - 1), true],
  ['its timeout has passed', (one) => one.pass(ALIVE_MS), false],
  ['the machine was suspended for a second', (one) => one.suspend(1_000), false],
  ['the machine was suspended for an hour', (one) => one.suspend(3_600_000), false],
  ['the clock of the machine was set forward', (one) => one.setClock(60_000), false],
  ['the clock of the machine was set back', (one) => one.setClock(-60_000), false],
])(
  'When %s since the last beat, a daemon beats again before it sends',
  async (_, happens, alive) => {
    const { machine, heartbeat } = await openHeartbeat();
    expect(heartbeat.isAlive()).toBe(true);
    happens(machine);
    expect(heartbeat.isAlive()).toBe(alive);
    expect(await heartbeat.beat()).toBe('alive');
    expect(heartbeat.isAlive()).toBe(true);
  },
);

describe('A daemon whose database was moved to another service', () => {
  const belongsTo = (service: string) => setInstallationSetting(db, 'service', service, 0);
  beforeEach(() => belongsTo(SERVICE));
  afterAll(() => belongsTo(SERVICE));

  it('while its heartbeat had expired does not come back to life', async () => {
    const { machine, heartbeat } = await openHeartbeat();
    expect(await heartbeat.beat()).toBe('alive');
    machine.pass(ALIVE_MS);
    await belongsTo('https://new.example, client shop');
    const aliveUntil = () => owner.sql`
      select alive_until from tallyhook.daemons where id = ${`dmn_${daemons}`}`;
    const before = await aliveUntil();
    await expect(heartbeat.beat()).rejects.toMatchObject({ code: 'not_ready' });
    expect(heartbeat.moved.reason).toMatchObject({
      detail: expect.stringContaining('belongs to another service (https://new.example, client'),
    });
    expect(heartbeat.isAlive()).toBe(false);
    expect(await aliveUntil()).toEqual(before);
  });

  it('before its first heartbeat is refused', async () => {
    const { heartbeat } = await openHeartbeat();
    await belongsTo('https://new.example, client shop');
    const refused = { code: 'bad_setting', detail: expect.stringContaining('another service') };
    await expect(heartbeat.prove()).rejects.toMatchObject(refused);
    expect(heartbeat.isAlive()).toBe(false);
  });

  it('while its heartbeat waited for the move does not come back to life', async () => {
    const { machine, heartbeat, clock } = await openHeartbeat();
    await heartbeat.beat();
    machine.pass(ALIVE_MS);
    const { beat } = await owner.begin(async (tx) => {
      await holdProofs(tx, clock.now());
      const beat = heartbeat.beat().catch((error: unknown) => error);
      await untilLockWaits(owner);
      await setInstallationSetting(tx, 'service', 'https://new.example', clock.now());
      return { beat };
    });
    expect(await beat).toMatchObject({ code: 'not_ready' });
    expect(heartbeat.isAlive()).toBe(false);
  });
});

it('A heartbeat that runs while the daemon ends is stored before its registration ends, and none after it', async () => {
  const { heartbeat, clock, daemon } = await openHeartbeat();
  await heartbeat.beat();
  const { beat, retired } = await owner.begin(async (tx) => {
    await holdProofs(tx, clock.now());
    const beat = heartbeat.beat();
    await untilLockWaits(owner);
    const retired = heartbeat.end().then(() => retireDaemon(db, daemon, clock.now()));
    return { beat, retired };
  });
  expect(await beat).toBe('alive');
  await retired;
  await expect(heartbeat.beat()).rejects.toMatchObject({ code: 'shutting_down' });
  expect(await owner.sql`select roles from tallyhook.daemons where id = ${daemon.id}`).toEqual([
    { roles: [] },
  ]);
});

it('After its end no heartbeat of a daemon is late', async () => {
  const open = async () => {
    const { log, logged } = textLog();
    const { heartbeat } = await openHeartbeat({ log, aliveMs: 1_500 });
    await heartbeat.beat();
    return { heartbeat, logged };
  };
  const ended = await open();
  await ended.heartbeat.end();
  const later = await open();
  const late = 'no heartbeat was committed in time';
  await expect.poll(() => later.logged.text, { timeout: 30_000 }).toContain(late);
  expect(ended.logged.text).toBe('');
  await later.heartbeat.end();
});

it('Heartbeats that are not committed in time are logged once, also while one waits, and their return', async () => {
  const { log, logged } = textLog();
  const { heartbeat } = await openHeartbeat({ log, aliveMs: 3_000 });
  const messages = () => logged.text.match(/(?<="msg":")[^"]*heartbeat[^"]*/g) ?? [];
  await heartbeat.beat();
  const waiting = await owner.begin(async ({ sql }) => {
    await sql`lock table tallyhook.daemons in exclusive mode`;
    const beat = heartbeat.beat();
    await expect.poll(messages).toEqual([expect.stringContaining('nothing is sent until one is')]);
    return { beat };
  });
  expect(await waiting.beat).toBe('alive');
  expect(messages()).toEqual([expect.any(String), 'heartbeats are committed again']);
});
