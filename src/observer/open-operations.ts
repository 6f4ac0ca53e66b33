/** Finds the wallets and tokens of open operations, and counts targets, at a bounded cost. */
import type { Db } from '../db/connect.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { countTargets, scheduleOpen } from './targets-store.ts';

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

/** Counting all targets may take at most this share of the time. */
const COUNT_SHARE = 0.01;
const COUNT_MIN_MS = 5_000;

/** The number of targets, counted again at intervals that grow with the time it takes. */
export function cachedTargetCount(db: Db, clock: Clock): () => Promise<number> {
  let count = { targets: 0, from: 0, until: Number.NEGATIVE_INFINITY };
  return async () => {
    const from = clock.now();
    if (from < count.from || from >= count.until) {
      const targets = await countTargets(db);
      const tookMs = clock.now() - from;
      count = { targets, from, until: from + Math.max(COUNT_MIN_MS, tookMs / COUNT_SHARE) };
    }
    return count.targets;
  };
}

/** Schedules targets of open operations; returns when to call it again if nothing was due. */
export function openOperationSearch(db: Db, gapMs: number): (now: Instant) => Promise<Instant> {
  const searches = SEARCHES.map((search) => ({ ...search, last: Number.NEGATIVE_INFINITY }));
  let page = { after: 0, at: Number.NEGATIVE_INFINITY };
  return async (now) => {
    if (now < page.at || now >= page.at + PAGE.everyMs) {
      const { after } = page;
      const next = await scheduleOpen(db, now, { after, limit: PAGE.operations }, gapMs);
      page = { after: next ?? 0, at: now };
    }
    const due = searches.findIndex(({ everyMs, last }) => now < last || now >= last + everyMs);
    const search = searches[due];
    if (!search) return Math.min(...searches.map(({ everyMs, last }) => last + everyMs));
    const last = Number.isFinite(search.last) ? search.last : now;
    await scheduleOpen(db, now, { since: Math.min(now, last) - search.overlapMs }, gapMs);
    // A wider search includes the narrower ones.
    for (const narrower of searches.slice(due)) narrower.last = now;
    return Number.POSITIVE_INFINITY;
  };
}
