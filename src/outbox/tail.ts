/**
 * Long polls at the end of the feed. However many wait, a wake-up reads the feed once per cursor.
 * It is also read every second, since another daemon's events do not wake this one.
 */
import type { Db } from '../db/connect.ts';
import { monotonicMs, withDeadline } from '../kernel/clock.ts';
import { type FeedPage, type FeedQuery, filterFeed, readFeed } from './feed.ts';

const REREAD_MS = 1_000;
const LIMIT_MAX = 500;
/** Readers that catch up have many cursors; beyond this bound they read for themselves. */
const CURSORS_MAX = 16;

export interface Tail {
  /** The next page; while it is empty, the first one within `waitMs` or until the signal aborts. */
  read(query: FeedQuery, waitMs: number, aborted: AbortSignal): Promise<FeedPage>;
}

/** @param nextEvent resolves when events were numbered, after `ms`, or when the signal aborts */
export function makeTail(deps: {
  db: Db;
  nextEvent: (signal: AbortSignal, ms: number) => Promise<void>;
  stopping: AbortSignal;
}): Tail {
  const { db, nextEvent, stopping } = deps;
  /** Reads since the last wake-up, by cursor: what they do not show comes with the next one. */
  const reads = new Map<string, Promise<FeedPage>>();
  let wakeUp: Promise<void> | undefined;

  function nextWakeUp(): Promise<void> {
    wakeUp ??= nextEvent(stopping, REREAD_MS).finally(() => {
      wakeUp = undefined;
      reads.clear();
    });
    return wakeUp;
  }

  async function sharedRead(query: FeedQuery): Promise<FeedPage> {
    const { cursor } = query;
    let read = reads.get(cursor);
    if (!read) {
      if (reads.size >= CURSORS_MAX) return readFeed(db, query);
      read = readFeed(db, { cursor, types: [], limit: LIMIT_MAX });
      reads.set(cursor, read);
      // A failed read is not shared with later readers.
      read.catch(() => reads.delete(cursor));
    }
    const page = await read;
    return page.complete ? filterFeed(page, query) : readFeed(db, query);
  }

  return {
    async read(query, waitMs, aborted) {
      const until = monotonicMs() + waitMs;
      let { cursor } = query;
      for (;;) {
        const remaining = until - monotonicMs();
        if (remaining <= 0 || stopping.aborted || aborted.aborted)
          return readFeed(db, { ...query, cursor });
        // Taken before the read, so an event that is numbered in between is not missed.
        const next = nextWakeUp();
        const found = await sharedRead({ ...query, cursor });
        if (found.rows.length > 0) return found;
        cursor = found.cursor;
        await withDeadline(next, remaining, () => undefined);
      }
    },
  };
}
