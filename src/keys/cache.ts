/**
 * What is known of secrets for a moment, so that not every call asks the database: a second, in
 * bounded memory. Calls that come together ask once; nothing read before a revocation is believed
 * after it.
 */
import type { Clock, Instant } from '../kernel/clock.ts';

/** How long an answer is believed without asking again, in milliseconds. */
const BELIEVED_MS = 1_000;
const BELIEVED_MAX = 1_000;

export interface Belief<T> {
  /** What stands behind that hash. @throws what asking throws */
  of(hash: string): Promise<T | undefined>;
  /** Forgets all, also what is being asked. */
  clear(): void;
}

export function makeBelief<T>(
  ask: (hash: string) => Promise<T | undefined>,
  clock: Clock,
): Belief<T> {
  let believed = new Map<string, { known: T; until: Instant }>();
  let asking = new Map<string, Promise<T | undefined>>();

  async function askOnce(hash: string): Promise<T | undefined> {
    const [into, among] = [believed, asking];
    const until = clock.now() + BELIEVED_MS;
    try {
      const known = await ask(hash);
      into.delete(hash);
      if (into.size >= BELIEVED_MAX) into.clear();
      // After a clear these are maps that nobody reads any more.
      if (known !== undefined) into.set(hash, { known, until });
      return known;
    } finally {
      among.delete(hash);
    }
  }
  return {
    async of(hash) {
      const before = believed.get(hash);
      if (before && before.until > clock.now()) return before.known;
      const under = asking.get(hash);
      if (under) return under;
      const asked = askOnce(hash);
      asking.set(hash, asked);
      return asked;
    },
    clear() {
      believed = new Map();
      asking = new Map();
    },
  };
}
