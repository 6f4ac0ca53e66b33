/**
 * The sign of life: as long as it gets through, this daemon may promise and send. It also follows
 * the database's clock, divides the budget among the living, and starts an embedded server that
 * died.
 */
import { type Daemon, keepAlive } from '../db/leases.ts';
import { isAway, toDatabaseError } from '../db/sqlstate.ts';
import { monotonicMs } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Database } from './database.ts';

export interface Heartbeat {
  beat(): Promise<void>;
  /** False once the last sign is older than a daemon's life; then nothing may be sent. */
  isAlive: () => boolean;
  /** How many daemons shared the work at the last sign, this one included. */
  living: () => number;
}

export function makeHeartbeat(given: {
  database: Database;
  daemon: Daemon;
  upstream: Upstream;
  log: Log;
  aliveMs: number;
}): Heartbeat {
  const { database, daemon, upstream, log, aliveMs } = given;
  let last = monotonicMs();
  let living = 1;
  return {
    async beat() {
      const sent = monotonicMs();
      try {
        living = await keepAlive(database.db, daemon, database.clock.now(), aliveMs);
        // From when it was sent: the database may have counted from then.
        last = sent;
        upstream.shareAmong(living);
        await upstream.syncQuota();
        await database.clock.follow();
      } catch (raw) {
        const error = toDatabaseError(raw);
        if (!isAway(error)) throw error;
        log.warn({ err: error }, 'the database is away');
        await database.revive();
      }
    },
    isAlive: () => monotonicMs() - last < aliveMs,
    living: () => living,
  };
}
