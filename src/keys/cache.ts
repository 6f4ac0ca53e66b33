/**
 * One-second cache of key lookups, bounded in size. Concurrent lookups of one hash share a query.
 */
import type { Clock, Instant } from '../kernel/clock.ts';

const TTL_MS = 1_000;
const ENTRIES_MAX = 1_000;

export interface Cache<T> {
  /** @throws what the lookup throws */
  get(hash: string): Promise<T | undefined>;
  /** Drops all entries; the results of running lookups are not cached. */
  clear(): void;
}

export function makeCache<T>(
  lookUp: (hash: string) => Promise<T | undefined>,
  clock: Clock,
): Cache<T> {
  let entries = new Map<string, { value: T; until: Instant }>();
  let pending = new Map<string, Promise<T | undefined>>();

  async function load(hash: string): Promise<T | undefined> {
    // After a clear these maps are no longer in use.
    const [ownEntries, ownPending] = [entries, pending];
    const until = clock.now() + TTL_MS;
    try {
      const value = await lookUp(hash);
      ownEntries.delete(hash);
      if (ownEntries.size >= ENTRIES_MAX) ownEntries.clear();
      if (value !== undefined) ownEntries.set(hash, { value, until });
      return value;
    } finally {
      ownPending.delete(hash);
    }
  }
  return {
    async get(hash) {
      const entry = entries.get(hash);
      if (entry && entry.until > clock.now()) return entry.value;
      const running = pending.get(hash);
      if (running) return running;
      const lookup = load(hash);
      pending.set(hash, lookup);
      return lookup;
    },
    clear() {
      entries = new Map();
      pending = new Map();
    },
  };
}
