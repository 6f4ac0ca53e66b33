/** The events of an observation of a wallet: first observation, changed balance or status. Pure. */
import { decimalText } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Comparison } from './rule.ts';
import type { Wallet } from './wallet.ts';

/** @param operations ids of those that explain the change */
export function observedEvents(
  before: Wallet | undefined,
  now: Wallet,
  comparison: Comparison,
  { operations, at }: { operations: string[]; at: Instant },
): EventDraft[] {
  const common = { subject: `wallet:${now.key}`, occurredAt: at };
  const current = stateOf(now);
  if (!before || before.observedBalance === null) {
    return [{ ...common, type: 'wallet.observed', data: { addr: now.addr, current } }];
  }
  const previous = stateOf(before);
  const events: EventDraft[] = [];
  if (previous.balance !== current.balance) {
    // Without an opening there is no expected balance.
    const explanation = before.openedAt === null ? 'undetermined' : explanationOf(comparison);
    const data = { addr: now.addr, previous, current, explanation, operations } as const;
    events.push({ ...common, type: 'wallet.balance_changed', data });
  }
  if (previous.status !== current.status) {
    const data = { addr: now.addr, previous, current };
    events.push({ ...common, type: 'wallet.status_changed', data });
  }
  return events;
}

export function stateOf(wallet: Wallet): { balance: string; status: number } {
  const balance = must(wallet.observedBalance, 'observed balance');
  return { balance: decimalText(balance), status: wallet.status ?? 0 };
}

function explanationOf(comparison: Comparison): 'explained' | 'undetermined' | 'unexplained' {
  if (comparison.result === 'unexplained') return 'unexplained';
  return comparison.unique ? 'explained' : 'undetermined';
}
