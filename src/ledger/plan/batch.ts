/**
 * Makes the rows of one batch from a plan. Pure. An entry carries the sum and number of the entries
 * that follow it on its account within the batch. The database subtracts them from the account's
 * new balance and version, so no balance is read before it is written.
 */

import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import { accountKey } from '../../operations/operations.ts';
import { accountKind } from '../posting.ts';
import type { Draft, Plan } from './draft.ts';

interface TransactionRow extends Omit<Draft, 'effects'> {
  id: bigint;
  entryCount: number;
}

interface EntryRow {
  transactionId: bigint;
  line: number;
  /** The key of the account. */
  account: string;
  amount: bigint;
  effectiveAt: Instant;
  /** The sum and the number of the entries that follow on this account within the batch. */
  laterAmount: bigint;
  laterCount: number;
}

/** An account that the batch changes or opens, in the spelling that came first. */
export interface AccountRow {
  name: string;
  kind: string;
  /** The sum and the number of its entries in the batch. */
  amount: bigint;
  count: number;
}

export interface Batch {
  transactions: TransactionRow[];
  entries: EntryRow[];
  accounts: AccountRow[];
  movements: Plan['movements'];
}

/** Numbers the transactions from `lastTransactionId + 1` in the order of the plan. */
export function makeBatch(plan: Plan, lastTransactionId: bigint): Batch {
  const transactions = plan.drafts.map(({ effects, ...draft }, index): TransactionRow => {
    return { ...draft, id: lastTransactionId + BigInt(index) + 1n, entryCount: effects.length };
  });
  const accounts = new Map<string, AccountRow>();
  const names = plan.drafts.flatMap(({ effects }) => effects.map((effect) => effect.account));
  for (const name of [...names, ...plan.opened]) {
    const key = accountKey(name);
    if (!accounts.has(key)) {
      accounts.set(key, { name, kind: accountKind(name), amount: 0n, count: 0 });
    }
  }
  return {
    transactions,
    entries: entriesOf(plan.drafts, lastTransactionId, accounts),
    accounts: [...accounts.values()],
    movements: plan.movements,
  };
}

/** Goes backwards, so that each account's row holds the sum of the entries that follow. */
function entriesOf(
  drafts: readonly Draft[],
  lastTransactionId: bigint,
  accounts: ReadonlyMap<string, AccountRow>,
): EntryRow[] {
  const entries: EntryRow[] = [];
  for (const [index, { effects, effectiveAt }] of [...drafts.entries()].reverse()) {
    const transactionId = lastTransactionId + BigInt(index) + 1n;
    for (const [position, effect] of [...effects.entries()].reverse()) {
      const account = accountKey(effect.account);
      const row = must(accounts.get(account), 'account of an effect');
      const { amount: laterAmount, count: laterCount } = row;
      const { amount } = effect;
      const line = position + 1;
      entries.push({ transactionId, line, account, amount, effectiveAt, laterAmount, laterCount });
      row.amount += amount;
      row.count += 1;
    }
  }
  return entries.reverse();
}
