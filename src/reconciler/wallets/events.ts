/** The events of a look at a wallet: first sight, and what changed since the look before. Pure. */
import { decimalText } from '../../kernel/amounts.ts';
import { must } from '../../kernel/assert.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { EventDraft } from '../../outbox/events.ts';
import { needOf, type Sight, type Standing, type WalletVerdict } from './rule.ts';
import type { Wallet } from './store.ts';

/** Which of our writes explain that the balance differs from what was last seen. */
export function explainedBy(
  sight: Sight,
  standing: Standing,
  verdict: WalletVerdict,
  before: Wallet | undefined,
): string[] {
  const shown = verdict.verdict === 'explained' ? verdict.shown.map((p) => p.operation.id) : [];
  const since = before?.observedAt ?? sight.startedAt;
  const mandatory = standing.parts.filter(
    ({ operation, effect }) =>
      effect !== 0n &&
      needOf(operation, sight, 0) === 'must' &&
      (operation.effectiveAt ?? operation.recordedAt) >= since,
  );
  return [...new Set([...mandatory.map((p) => p.operation.id), ...shown])];
}

export function observedEvents(
  before: Wallet | undefined,
  now: Wallet,
  verdict: WalletVerdict,
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
    // Without an opening nothing was expected, so nothing can be unexplained.
    const explanation = before.openedAt === null ? 'undetermined' : wordOf(verdict);
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

function wordOf(verdict: WalletVerdict): 'explained' | 'undetermined' | 'unexplained' {
  if (verdict.verdict === 'off') return 'unexplained';
  return verdict.verdict === 'explained' && verdict.unique ? 'explained' : 'undetermined';
}
