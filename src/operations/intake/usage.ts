/**
 * What limited keys moved within the last 24 hours, up to a while ago. Adding up a whole day for
 * every commit took 60 ms at 100,000 writes a day, and all intents waited for it; so a commit adds
 * only the last minutes, under its locks, to a sum that is read once a minute.
 *
 * That sum is an upper bound: what leaves the window or turns out not executed meanwhile leaves
 * more room. Only what people find executed after all is counted up to a minute late. What waits in
 * the queue for longer than a day, or left it of late, the commit itself adds.
 */
import type { Db } from '../../db/connect.ts';
import { must } from '../../kernel/assert.ts';
import type { Instant } from '../../kernel/clock.ts';
import { type DaySum, sumsOfKeys } from './store.ts';

const DAY_MS = 86_400_000;
const FRESH_MS = 60_000;
/** No statement runs longer: what is recorded before `upTo` is committed by now. */
const BEHIND_MS = 120_000;
/** Keys remembered, beside those of the commit at hand. */
const KEPT_MAX = 1_000;

/** The sums of one daemon, by key. */
export function makeDaySums(db: Db) {
  const kept = new Map<string, DaySum & { readAt: Instant }>();
  return async (keyIds: readonly string[], now: Instant): Promise<Map<string, DaySum>> => {
    const isFresh = (keyId: string) => {
      const readAt = kept.get(keyId)?.readAt ?? Number.NEGATIVE_INFINITY;
      return now >= readAt && now < readAt + FRESH_MS;
    };
    if (kept.size > KEPT_MAX) kept.clear();
    const stale = keyIds.filter((keyId) => !isFresh(keyId));
    if (stale.length > 0) {
      const [from, upTo] = [now - DAY_MS, now - BEHIND_MS];
      const sums = await db.single((q) => sumsOfKeys(q, stale, from, upTo));
      for (const keyId of stale)
        kept.set(keyId, { from, upTo, moved: sums.get(keyId) ?? 0n, readAt: now });
    }
    return new Map(keyIds.map((keyId) => [keyId, must(kept.get(keyId), 'sum of a key')]));
  };
}
