/** An observer over a test database and a client of the service. */
import type { Db } from '../../src/db/connect.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { makeMetrics } from '../../src/kernel/metrics.ts';
import { makeObserver, type Observer, type ObserverSettings } from '../../src/observer/observer.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';
import type { TestDatabase } from '../harness/database.ts';
import { seededRandom } from '../harness/seeded-random.ts';

const SETTINGS = {
  ...{ steadyMs: 60_000, minGapMs: 60_000, pendingMinMs: 1_000, pendingMaxMs: 30_000 },
  ...{ readLagMs: 0, steadyShare: 1, probeMs: 30_000, probeDownMs: 5_000, pollTimeoutMs: 5_000 },
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
  const outbox = makeOutbox({ clock, ids, fanOut: async () => {} });
  const metrics = makeMetrics();
  const settings = { ...SETTINGS, ...changed };
  return makeObserver({ db, clock, random, ids, upstream, outbox, metrics, settings });
}

/** Stands for the reconciler: everything is processed. */
export async function processAll(database: TestDatabase): Promise<void> {
  await database.owner.sql`delete from tallyhook.unprocessed_observations`;
}
