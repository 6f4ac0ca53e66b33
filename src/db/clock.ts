/**
 * The database's time as a Clock, so that instants of several daemons can be compared. It is the
 * machine's monotonic clock plus an offset that the daemon measures again at every heartbeat.
 */
import { type Clock, type Instant, monotonicMs } from '../kernel/clock.ts';
import type { Db } from './connect.ts';

export interface DatabaseClock extends Clock {
  /** Measures the offset again; keeps the old one if that fails. */
  follow(): Promise<void>;
}

/** @throws DatabaseError when the database does not answer */
export async function databaseClock(db: Db): Promise<DatabaseClock> {
  let offset = await measure(db);
  let last: Instant = 0;
  return {
    now() {
      // Never goes backwards when the offset shrinks.
      last = Math.max(last, Math.floor(monotonicMs() + offset));
      return last;
    },
    async follow() {
      offset = await measure(db).catch(() => offset);
    },
  };
}

/** Of three measurements, the one with the shortest round trip has the smallest error. */
async function measure(db: Db): Promise<number> {
  let best = { trip: Number.POSITIVE_INFINITY, offset: 0 };
  for (let i = 0; i < 3; i++) {
    const before = monotonicMs();
    const [row] = await db.sql<{ ms: number }[]>`
      select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
    const trip = monotonicMs() - before;
    if (row && trip < best.trip) best = { trip, offset: row.ms - (before + trip / 2) };
  }
  return best.offset;
}
