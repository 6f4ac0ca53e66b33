/** Finds the wallets and tokens of open operations, at a bounded cost. */
import type { Db } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';
import { type OpenOperations, scheduleOpen } from './targets-store.ts';

/**
 * How often changed operations are searched, and how far back before the previous search. Changes
 * are dated before they are committed, normally by less than a second.
 */
const SEARCHES = [
  { everyMs: 10_000, overlapMs: 20_000 },
  { everyMs: 250, overlapMs: 1_000 },
];
/** All open operations are searched a page at a time, for those that a search of changes missed. */
const PAGE = { everyMs: 1_000, operations: 2_000 };

/** Schedules targets of open operations; returns when to call it again if nothing was due. */
export function openOperationSearch(
  db: Db,
  { pendingMinMs: gapMs, readLagMs }: { pendingMinMs: number; readLagMs: number },
): (now: Instant) => Promise<Instant> {
  const times = { gapMs, readLagMs };
  const schedule = (now: Instant, which: OpenOperations) =>
    db.single((q) => scheduleOpen(q, now, which, times));
  const searches = SEARCHES.map((search) => ({ ...search, last: Number.NEGATIVE_INFINITY }));
  let page = { after: 0, at: Number.NEGATIVE_INFINITY };
  return async (now) => {
    if (now < page.at || now >= page.at + PAGE.everyMs) {
      const { after } = page;
      const next = await schedule(now, { after, limit: PAGE.operations });
      page = { after: next ?? 0, at: now };
    }
    const due = searches.findIndex(({ everyMs, last }) => now < last || now >= last + everyMs);
    const search = searches[due];
    if (!search) return Math.min(...searches.map(({ everyMs, last }) => last + everyMs));
    const last = Number.isFinite(search.last) ? search.last : now;
    await schedule(now, { since: Math.min(now, last) - search.overlapMs });
    // A wider search includes the narrower ones.
    for (const narrower of searches.slice(due)) narrower.last = now;
    return Number.POSITIVE_INFINITY;
  };
}
