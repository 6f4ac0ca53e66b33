/**
 * What the world keeps in memory only: timers, earlier versions of wallets and tokens, sums of
 * transfers, and the rate limit.
 */
import { addressKey } from '../../kernel/addresses.ts';
import { DAY_MS, type Instant } from '../../kernel/clock.ts';
import type { Effect, Token, Wallet } from './records.ts';
import type { ReadTable, Table } from './tables.ts';

interface Timer {
  at: Instant;
  run: () => void;
}

/** Callbacks due later by the world's clock, in order of time and then of arrival. */
export function makeTimers() {
  let timers: Timer[] = [];
  return {
    add(at: Instant, run: () => void): void {
      timers.splice(indexAfter(timers, at), 0, { at, run });
    },
    /** Removes and returns the first timer due at `now`. */
    take(now: Instant): Timer | undefined {
      const first = timers[0];
      return first && first.at <= now ? timers.shift() : undefined;
    },
    clear(): void {
      timers = [];
    },
  };
}

/** The index behind all timers that are due at the instant or before it. */
function indexAfter(timers: readonly Timer[], at: Instant): number {
  let low = 0;
  let high = timers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((timers[middle]?.at ?? at) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

const CHANGES_KEPT = 20_000;

type Subject = 'tokens' | 'wallets';
type Tables<T, W> = { tokens: T; wallets: W };
type View = Tables<ReadTable<Token>, ReadTable<Wallet>>;

export type History = ReturnType<typeof makeHistory>;

/**
 * Earlier versions of wallets and tokens, for reads that lag behind writes; bounded.
 * @param now the instant of the change that is being recorded
 */
export function makeHistory(now: () => Instant) {
  let changes: { at: Instant; subject: Subject; key: string; before: unknown }[] = [];
  return {
    add(subject: Subject, key: string, before: Token | Wallet | undefined): void {
      changes.push({ at: now(), subject, key, before });
      if (changes.length > 2 * CHANGES_KEPT) changes = changes.slice(-CHANGES_KEPT);
    },
    /** Wallets and tokens as they were at the instant, as far as the history reaches back. */
    at(instant: Instant, current: Tables<Table<Token>, Table<Wallet>>): View {
      if ((changes.at(-1)?.at ?? instant) <= instant) return current;
      const former = { tokens: new Map(), wallets: new Map() };
      // Walked from the newest back, so that the oldest change after the instant remains.
      for (let i = changes.length - 1; i >= 0; i -= 1) {
        const change = changes[i];
        if (!change || change.at <= instant) break;
        former[change.subject].set(change.key, change.before);
      }
      return {
        tokens: overlaid(current.tokens, former.tokens),
        wallets: overlaid(current.wallets, former.wallets),
      };
    },
    clear(): void {
      changes = [];
    },
  };
}

/** A table as it was before the changes since then, given the former rows by key. */
function overlaid<T>(table: Table<T>, former: ReadonlyMap<string, T | undefined>): ReadTable<T> {
  return {
    get: (key) => (former.has(key) ? former.get(key) : table.get(key)),
    *values() {
      for (const key of table.keys()) {
        const row = former.has(key) ? former.get(key) : table.get(key);
        if (row !== undefined) yield row;
      }
      for (const [key, row] of former) {
        if (row !== undefined && table.get(key) === undefined) yield row;
      }
    },
  };
}

/** What each wallet sent by transfers within the last 24 hours: the sum behind error 295. */
export function makeTransferTotals() {
  const wallets = new Map<string, { entries: { at: Instant; amount: bigint }[]; sum: bigint }>();
  return {
    /** Counts the write if it is a transfer. Writes must come in order of time. */
    add({ kind, from_addr, amount, at }: Effect): void {
      if (kind !== 'transfer' || from_addr === null || amount === null) return;
      const key = addressKey(from_addr);
      const sent = wallets.get(key) ?? { entries: [], sum: 0n };
      sent.entries.push({ at, amount });
      sent.sum += amount;
      wallets.set(key, sent);
    },
    /** The sum that the wallet sent after `now` − 24 h. */
    within(addr: string, now: Instant): bigint {
      const sent = wallets.get(addressKey(addr));
      if (!sent) return 0n;
      const kept = sent.entries.findIndex((entry) => entry.at > now - DAY_MS);
      for (const old of sent.entries.splice(0, kept < 0 ? sent.entries.length : kept)) {
        sent.sum -= old.amount;
      }
      return sent.sum;
    },
    clear: () => wallets.clear(),
  };
}

/** The service's own rate limit: a token bucket by the world's clock. */
export function makeRateLimit() {
  let used = 0;
  let last: Instant = Number.NEGATIVE_INFINITY;
  return {
    /** Takes one request: 0 when it may pass, else the milliseconds to wait. */
    take(now: Instant, perSecond: number, burst: number): number {
      used = now < last ? 0 : Math.max(0, used - ((now - last) / 1000) * perSecond);
      last = now;
      if (used + 1 > burst) return Math.ceil(((used + 1 - burst) / perSecond) * 1000);
      used += 1;
      return 0;
    },
    clear(): void {
      used = 0;
    },
  };
}
