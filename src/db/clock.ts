/**
 * Postgres time as a Clock: instants that several daemons compare come from one clock. The offset
 * to the machine's steady counter is measured with a query and renewed by the daemon from time to
 * time.
 */
import { type Clock, type Instant, monotonicMs } from '../kernel/clock.ts';
import type { Db } from './connect.ts';

export interface DatabaseClock extends Clock {
  /** Measures the offset again; a failed measurement leaves the old one. */
  follow(): Promise<void>;
}

/** Asks the database for its time and follows it. @throws DatabaseError when it does not answer. */
export async function databaseClock(db: Db): Promise<DatabaseClock> {
  let offset = await measure(db);
  let last: Instant = 0;
  return {
    now() {
      // Never backwards: a correction slows us down instead of repeating an instant.
      last = Math.max(last, Math.floor(monotonicMs() + offset));
      return last;
    },
    async follow() {
      offset = await measure(db).catch(() => offset);
    },
  };
}

/** Best of three: the answer with the shortest round trip is the least wrong. */
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
