/** When a daemon counts itself as alive, on a machine that is suspended or whose clock is set. */
import { expect, it } from 'vitest';
import { makeHeartbeat } from '../../src/daemon/heartbeat.ts';
import { makeIdentityProof } from '../../src/daemon/identity.ts';
import { databaseClock } from '../../src/db/clock/clock.ts';
import { registerDaemon } from '../../src/db/leases.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import { ROLES } from '../../src/resources/admin/status.ts';
import { useDatabase } from '../harness/database.ts';
import { type ManualMachine, manualMachine } from '../harness/manual-machine.ts';
import { textLog } from '../upstream/rig.ts';

const ALIVE_MS = 15_000;
const { db, owner } = await useDatabase();
let daemons = 0;

async function openHeartbeat({ log, aliveMs } = { log: makeLog('silent'), aliveMs: ALIVE_MS }) {
  const machine = manualMachine();
  const counts = { monotonicMs: machine.count.ms, uptimeMs: machine.uptimeMs };
  const clock = await databaseClock(db, log, undefined, counts);
  const database = { db, clock, folder: undefined, revive: async () => {} };
  const heartbeat = makeHeartbeat({
    database,
    identity: makeIdentityProof({ database, dataDir: '/dev/null/none', log }),
    daemon: await registerDaemon(db, `dmn_${++daemons}`, clock.now(), aliveMs),
    roles: () => ROLES,
    upstream: { appPerS: () => 0, share: () => {}, syncQuota: async () => {} },
    log,
    metrics: makeMetrics(),
    aliveMs,
    machine: machine.count,
  });
  return { machine, heartbeat };
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
