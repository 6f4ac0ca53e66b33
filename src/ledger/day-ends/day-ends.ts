/**
 * Balances kept at the ends of days, so that a report reads its period and not the history. A day
 * end has a place in time and in the order of recording: it keeps what took effect before it, as
 * far as it was recorded when it was made. What is recorded later and took effect before is read
 * beside it. Kept rows never change; `verify` proves them from the entries.
 */
import type { Db } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { findDayEnd, findDueDayEnd, insertDayEnd, lockDayEnds } from './store.ts';

export { type DayEnd, findDayEnd } from './store.ts';

/** A day of a large installation has some ten million entries. */
const DEADLINE_MS = 600_000;

/**
 * Makes the next day end that is due, if any; does nothing while another daemon makes one.
 * @param timeZone in which days begin
 * @returns whether one was made, so that the next may be due as well
 */
export function keepDayEnd(db: Db, now: Instant, timeZone: string): Promise<boolean> {
  return db.begin(
    async (tx) => {
      if (!(await lockDayEnds(tx))) return false;
      const last = await findDayEnd(tx);
      const next = await findDueDayEnd(tx, last, timeZone);
      if (next) await insertDayEnd(tx, last, next, now);
      return next !== undefined;
    },
    { snapshot: true, deadlineMs: DEADLINE_MS },
  );
}
