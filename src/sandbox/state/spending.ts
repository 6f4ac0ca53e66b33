/** What each wallet sent by transfers within the last 24 hours: the sum behind error 295. */
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Effect } from './records.ts';

export const DAY_MS = 86_400_000;

export interface Spending {
  /** Counts an applied write when it is a transfer. Writes come in order of time. */
  note(effect: Effect): void;
  /** What the wallet sent after `now` − 24 h. */
  within(addr: string, now: Instant): bigint;
  clear(): void;
}

interface Sent {
  entries: { at: Instant; amount: bigint }[];
  sum: bigint;
}

export function makeSpending(): Spending {
  const wallets = new Map<string, Sent>();
  return {
    note({ kind, from_addr, amount, at }) {
      if (kind !== 'transfer' || from_addr === null || amount === null) return;
      const key = addressKey(from_addr);
      const sent = wallets.get(key) ?? { entries: [], sum: 0n };
      sent.entries.push({ at, amount });
      sent.sum += amount;
      wallets.set(key, sent);
    },
    within(addr, now) {
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
