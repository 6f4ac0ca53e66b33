/**
 * One-second cache of key lookups, bounded in size. Concurrent lookups of one hash share a query.
 */
import type { Clock, Instant } from '../kernel/clock.ts';

const TTL_MS = 1_000;
const ENTRIES_MAX = 1_000;

interface Cache<T> {
  /**
   * @param onUnknown awaited before the lookup of a hash without an entry, not even an expired one
   * @throws what the lookup and `onUnknown` throw
   */
  get(hash: string, onUnknown?: () => Promise<void>): Promise<T | undefined>;
  /** Drops all entries; the results of running lookups are not cached. */
  clear(): void;
}

export function makeCache<T>(
  lookUp: (hash: string) => Promise<T | undefined>,
  clock: Clock,
): Cache<T> {
  let entries = new Map<string, { value: T; until: Instant }>();
  let pending = new Map<string, Promise<T | undefined>>();

  async function load(hash: string, before?: () => Promise<void>): Promise<T | undefined> {
    // After a clear these maps are no longer in use.
    const [ownEntries, ownPending] = [entries, pending];
    try {
      await before?.();
      const until = clock.now() + TTL_MS;
      const value = await lookUp(hash);
      ownEntries.delete(hash);
      if (value === undefined) return undefined;
      if (ownEntries.size >= ENTRIES_MAX) ownEntries.clear();
      ownEntries.set(hash, { value, until });
      return value;
    } finally {
      ownPending.delete(hash);
    }
  }
  return {
    async get(hash, onUnknown = async () => {}) {
      const entry = entries.get(hash);
      if (entry && entry.until > clock.now()) return entry.value;
      const running = pending.get(hash);
      if (running) return running;
      const lookup = load(hash, entry ? undefined : onUnknown);
      pending.set(hash, lookup);
      return lookup;
    },
    clear() {
      entries = new Map();
      pending = new Map();
    },
  };
}
