/** The events of an observation of a wallet: first observation, changed balance or status. Pure. */
import { decimalText } from '../../kernel/amounts.ts';
import { must } from '../../kernel/assert.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { EventDraft } from '../../outbox/events.ts';
import { type BalanceResult, type Baseline, inclusionOf, type ObservedBalance } from './rule.ts';
import type { Wallet } from './store.ts';

/** The operations that explain why the balance differs from the one observed before. */
export function explainedBy(
  observed: ObservedBalance,
  baseline: Baseline,
  result: BalanceResult,
  before: Wallet | undefined,
): string[] {
  const shown = result.result === 'explained' ? result.shown.map((p) => p.operation.id) : [];
  const since = before?.observedAt ?? observed.startedAt;
  const required = baseline.effects.filter(
    ({ operation, effect }) =>
      effect !== 0n &&
      inclusionOf(operation, observed, 0) === 'required' &&
      (operation.effectiveAt ?? operation.recordedAt) >= since,
  );
  return [...new Set([...required.map((p) => p.operation.id), ...shown])];
}

export function observedEvents(
  before: Wallet | undefined,
  now: Wallet,
  result: BalanceResult,
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
    const explanation = before.openedAt === null ? 'undetermined' : explanationOf(result);
    const data = { addr: now.addr, previous, current, explanation, operations } as const;
    events.push({ ...common, type: 'wallet.balance_changed', data });
  }
  if (previous.status !== current.status) {
    const data = { addr: now.addr, previous, current };
    events.push({ ...common, type: 'wallet.status_changed', data });
  }
  return events;
}

function stateOf(wallet: Wallet): { balance: string; status: number } {
  const balance = must(wallet.observedBalance, 'observed balance');
  return { balance: decimalText(balance), status: wallet.status ?? 0 };
}

function explanationOf(result: BalanceResult): 'explained' | 'undetermined' | 'unexplained' {
  if (result.result === 'unexplained') return 'unexplained';
  return result.result === 'explained' && result.unique ? 'explained' : 'undetermined';
}
