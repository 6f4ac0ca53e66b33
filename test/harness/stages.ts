/**
 * The stages of one daemon that need no network, from the outbox to the ledger, over a test
 * database. Rigs add the stages that they are about.
 */
import type { Db } from '../../src/db/connect.ts';
import { keepAlive, registerDaemon } from '../../src/db/leases.ts';
import { type Clock, pause as kernelPause } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { type Random, systemRandom } from '../../src/kernel/random.ts';
import { type Log, makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import { makeLedger } from '../../src/ledger/ledger.ts';
import {
  makeOperations,
  type OperationsSettings,
  operationsDefaults,
} from '../../src/operations/operations.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';

export interface StageOptions {
  clock: Clock;
  random?: Random;
  daemonId?: string;
  log?: Log;
  /** How long the daemon counts as alive, in milliseconds; an hour by default. */
  aliveMs?: number;
  settings?: Partial<OperationsSettings>;
  pause?: typeof kernelPause;
  /** Proves the database to the daemon again; by default at once. */
  prove?: () => Promise<unknown>;
  /** Rows of one batch of the ledger at most. */
  batchMax?: number;
}

export async function openStages(db: Db, options: StageOptions) {
  const { clock, random = systemRandom, log = makeLog('silent'), pause = kernelPause } = options;
  const { aliveMs = 3_600_000, batchMax = 500 } = options;
  const metrics = makeMetrics();
  const ids = makeIds(clock, random);
  const { daemonId = ids.next('dmn') } = options;
  const daemon = await registerDaemon(db, daemonId, clock.now(), aliveMs);
  const outbox = makeOutbox({ clock, ids });
  const settings = { ...operationsDefaults, ...options.settings };
  const operations = makeOperations({
    db,
    clock,
    ids,
    daemon,
    outbox,
    metrics,
    settings,
    pause,
    prove: options.prove ?? (() => keepAlive(db, daemon, clock.now(), aliveMs)),
  });
  const effectSettings = settings.effects;
  const ledger = makeLedger({ db, daemon, clock, effectSettings, log, batchMax });
  return { db, clock, random, ids, log, metrics, daemon, outbox, operations, ledger };
}
