/**
 * Earlier versions of wallets and tokens, for reads that lag behind writes. History is bounded and
 * kept in memory only.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Token, Wallet } from './records.ts';
import { overlaid, type ReadTable, type Table } from './tables.ts';

const CHANGES_KEPT = 20_000;

type Subject = 'tokens' | 'wallets';
type Tables<T, W> = { tokens: T; wallets: W };
type View = Tables<ReadTable<Token>, ReadTable<Wallet>>;

export type History = ReturnType<typeof makeHistory>;

/** @param now the instant of the change that is being recorded */
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
