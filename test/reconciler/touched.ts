/** What a write would do to wallets, by the ledger's own legs, as the daemon wires it. */
import type { JournalSettings } from '../../src/journal/journal.ts';
import { addressKey } from '../../src/kernel/addresses.ts';
import { type Books, legsOf } from '../../src/ledger/ledger.ts';
import { walletsOfBooks } from '../../src/reconciler/wallet-books.ts';
import { operation } from '../ledger/fixture.ts';

export function touchedBy(books: Books): JournalSettings['touchedBy'] {
  const ours = new Set(walletsOfBooks(books).map(addressKey));
  return (kind, fields) => {
    const legs = attempt(() => legsOf(operation({ kind, ...fields }), books));
    const moved = legs.flatMap(({ account, amount }) =>
      account.startsWith('wallet:') ? [[addressKey(account.slice(7)), amount] as const] : [],
    );
    return {
      users: new Map(moved.filter(([key]) => !ours.has(key))),
      all: moved.map(([key]) => key),
    };
  };
}

function attempt<T>(work: () => T[]): T[] {
  try {
    return work();
  } catch {
    return [];
  }
}
