/** An observer over a test database and a client of the service. */
import { afterEach, beforeEach } from 'vitest';
import type { Db } from '../../src/db/connect.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import {
  makeObserver,
  makeQuotaStore,
  type Observer,
  type ObserverSettings,
} from '../../src/observer/observer.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { closeAll, upstreamTo } from '../upstream/rig.ts';

const SETTINGS = {
  settledMs: 86_400_000,
  steadyMs: 60_000,
  minGapMs: 60_000,
  pendingMinMs: 1_000,
  pendingMaxMs: 30_000,
  readLagMs: 0,
  steadyShare: 1,
  probeMs: 30_000,
  probeDownMs: 5_000,
  pollTimeoutMs: 5_000,
};

export function observerOf(
  db: Db,
  clock: Clock,
  upstream: Upstream,
  seed = 1,
  changed: Partial<ObserverSettings> = {},
): Observer {
  const random = seededRandom(seed);
  const ids = makeIds(clock, random);
  const outbox = makeOutbox({ clock, ids });
  const metrics = makeMetrics();
  const settings = { ...SETTINGS, ...changed };
  return makeObserver({ db, clock, random, ids, upstream, outbox, metrics, settings });
}

export interface World {
  database: TestDatabase;
  clock: ManualClock;
  sandbox: Sandbox;
  /** A wallet of the sandbox. */
  wallet: { kind: 'wallet'; addr: string };
  openObserver(seed?: number, changed?: Partial<ObserverSettings>): Promise<Observer>;
}

/** Gives each test of the file a database and a sandbox of its own, filled in before the test. */
export function useWorld(): World {
  const world = {} as World;
  beforeEach(async () => {
    const database = await createDatabase();
    const clock = manualClock();
    const sandbox = await startSandbox({
      seed: 1,
      clock,
      clientId: 'client',
      clientSecret: 'hush-hush',
    });
    const addr = sandbox.control.state().members[0]?.addr ?? '';
    clock.advance(10_000);
    const openObserver: World['openObserver'] = async (seed, changed) => {
      const quota = makeQuotaStore(database.db);
      const { upstream } = await upstreamTo(sandbox.url, clock, { quota });
      return observerOf(database.db, clock, upstream, seed, changed);
    };
    Object.assign(world, {
      database,
      clock,
      sandbox,
      openObserver,
      wallet: { kind: 'wallet', addr },
    } satisfies World);
  });
  afterEach(async () => {
    await closeAll();
    await world.sandbox.close();
    await world.database.drop();
  });
  return world;
}

/** Stands for the reconciler: everything is processed. */
export async function processAll(database: TestDatabase): Promise<void> {
  await database.owner.sql`delete from tallyhook.unprocessed_observations`;
}
