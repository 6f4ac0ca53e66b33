/**
 * The recent past of wallets and tokens: what each row was before it changed. It serves answers
 * that lag behind the writes. It is bounded and not kept on disk: after a restart the past is
 * empty.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Token, Wallet } from './records.ts';
import { overlaid, type ReadTable, type Table } from './tables.ts';

const CHANGES_KEPT = 20_000;

type Subject = 'tokens' | 'wallets';

export interface View {
  tokens: ReadTable<Token>;
  wallets: ReadTable<Wallet>;
}

export interface Past {
  note(subject: Subject, key: string, before: Token | Wallet | undefined): void;
  /** Wallets and tokens as they were at the instant, as far back as the past is kept. */
  view(at: Instant, present: { tokens: Table<Token>; wallets: Table<Wallet> }): View;
  clear(): void;
}

/** @param now the instant at which a change happens */
export function makePast(now: () => Instant): Past {
  let changes: { at: Instant; subject: Subject; key: string; before: unknown }[] = [];
  return {
    note(subject, key, before) {
      changes.push({ at: now(), subject, key, before });
      if (changes.length > 2 * CHANGES_KEPT) changes = changes.slice(-CHANGES_KEPT);
    },
    view(at, present) {
      if ((changes.at(-1)?.at ?? at) <= at) return present;
      const former = { tokens: new Map(), wallets: new Map() };
      // From the newest back: the oldest change after the instant is the one that stays.
      for (let i = changes.length - 1; i >= 0; i -= 1) {
        const change = changes[i];
        if (!change || change.at <= at) break;
        former[change.subject].set(change.key, change.before);
      }
      return {
        tokens: overlaid(present.tokens, former.tokens),
        wallets: overlaid(present.wallets, former.wallets),
      };
    },
    clear() {
      changes = [];
    },
  };
}
