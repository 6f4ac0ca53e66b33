/** What each wallet sent by transfers within the last 24 hours: the sum behind error 295. */
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Effect } from './records.ts';

const DAY_MS = 86_400_000;

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
