/**
 * The machine of a daemon, which can be suspended: nothing runs on it then, and its monotonic count
 * stands still, while the time of the world and its count since the start go on.
 */
import { type DatabaseClock, databaseClock } from '../../../src/db/clock/clock.ts';
import type { Db } from '../../../src/db/connect.ts';
import { countMachine, type Instant } from '../../../src/kernel/clock.ts';
import { makeLog } from '../../../src/kernel/telemetry/log.ts';
import type { ManualClock } from '../../harness/manual-clock.ts';

export interface Machine {
  /** As a daemon makes it from what the database and its machine say. */
  clock: DatabaseClock;
  isSuspended(): boolean;
  suspend(): void;
  wake(): void;
}

export async function openMachine(db: Db, world: ManualClock): Promise<Machine> {
  let suspendedAt: Instant | undefined;
  let lostMs = 0;
  const { ms } = countMachine({
    wallMs: world.now,
    awakeMs: () => (suspendedAt ?? world.now()) - lostMs,
    uptimeMs: world.now,
  });
  const counts = { monotonicMs: ms, uptimeMs: world.now };
  const readTime = async () => world.now();
  return {
    clock: await databaseClock(db, makeLog('silent'), readTime, counts),
    isSuspended: () => suspendedAt !== undefined,
    suspend() {
      suspendedAt ??= world.now();
    },
    wake() {
      lostMs += world.now() - (suspendedAt ?? world.now());
      suspendedAt = undefined;
    },
  };
}
