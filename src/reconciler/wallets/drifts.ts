/** Applies the drift rule to a wallet: stores drifts with their history and emits their events. */
import type { Tx } from '../../db/connect.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { expedite, type StoredObservation } from '../../observer/observer.ts';
import type { EventData, EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { compareWithNotExecuted, supersede } from '../unknown/supersede.ts';
import { driftStep } from './drift-rule.ts';
import { holdForPoll } from './hold.ts';
import type { OperationEffect } from './rule.ts';
import { closeDrift, type Drift, insertDrift, insertDriftAction, type Wallet } from './store.ts';

interface Residual {
  residual: bigint;
  drifts: Drift[];
  observation: StoredObservation;
  now: Instant;
}

/**
 * Schedules the next poll of a wallet whose observation decided nothing, at a gap that grows up to
 * the steady one.
 */
export async function pollAgain(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: { possible: readonly OperationEffect[]; observation: StoredObservation; now: Instant },
): Promise<void> {
  const { pendingMinMs, steadyMs } = deps.settings;
  const gapMs = Math.min(steadyMs, pendingMinMs * 1.5 ** Math.min(wallet.unquietObservations, 30));
  wallet.unquietObservations += 1;
  const possible = input.possible.map(({ operation }) => operation);
  const heldAt = await holdForPoll(tx, deps, wallet, { ...input, possible });
  await expedite(tx, `wallet:${wallet.key}`, heldAt ?? input.now + gapMs);
}

/** Applies the residual of a quiet observation; changes `wallet`, which the caller stores. */
export async function stepDrift(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  { residual, drifts, observation, now }: Residual,
): Promise<EventDraft[]> {
  const suspicion =
    wallet.suspectedAmount !== null && wallet.suspectedAt !== null
      ? { amount: wallet.suspectedAmount, at: wallet.suspectedAt }
      : undefined;
  const next = driftStep(residual, suspicion, drifts, {
    startedAt: observation.startedAt,
    endedAt: observation.endedAt,
  });
  if (next.step === 'none') return [];
  if (next.step === 'suspect') {
    const { amount, at } = next.suspicion;
    // Only a first suspicion resets the gap: a balance that keeps changing is polled ever less.
    if (!suspicion) wallet.unquietObservations = 0;
    Object.assign(wallet, {
      verdict: 'drifting',
      cause: 'suspected',
      suspectedAmount: amount,
      suspectedAt: at,
    });
    await pollAgain(tx, deps, wallet, { possible: [], observation, now });
    return [];
  }
  Object.assign(wallet, { suspectedAmount: null, suspectedAt: null, unquietObservations: 0 });
  if (next.step === 'open') {
    Object.assign(wallet, { verdict: 'drifting', cause: null });
    const { amount: found, suspectedAt } = next;
    return openDrift(tx, deps, wallet, { residual: found, observation, now, suspectedAt });
  }
  Object.assign(wallet, { verdict: 'explained', cause: null, quietAt: observation.startedAt });
  const events: EventDraft[] = [];
  for (const returned of next.drifts) {
    const drift = drifts.find((open) => open.id === returned.id);
    if (drift) events.push(...(await close(tx, drift, 'returned', observation, now)));
  }
  return events;
}

/** Opens a drift, and closes it at once when it proves a write that was called not executed. */
async function openDrift(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: { residual: bigint; observation: StoredObservation; now: Instant; suspectedAt: Instant },
): Promise<EventDraft[]> {
  const { observation, now } = input;
  const made = newDrift(deps, wallet, input);
  const { proved, like } = await compareWithNotExecuted(tx, deps, made, now);
  const drift =
    like.length > 0 ? { ...made, evidence: { ...made.evidence, equals_not_executed: like } } : made;
  await insertDrift(tx, drift);
  const action = { driftId: drift.id, at: now, by: 'reconciler' };
  await insertDriftAction(tx, { ...action, action: 'opened', detail: drift.evidence });
  const events = [driftEvent(drift, observation.endedAt)];
  if (!proved) return events;
  Object.assign(wallet, { verdict: 'explained', quietAt: observation.startedAt });
  events.push(...(await supersede(tx, deps, proved, now)));
  for (const one of proved.drifts)
    events.push(...(await close(tx, one, 'explained', observation, now)));
  return events;
}

function newDrift(
  deps: Deps,
  wallet: Wallet,
  input: { residual: bigint; observation: StoredObservation; now: Instant; suspectedAt: Instant },
): Omit<Drift, 'evidence'> & { evidence: { [key: string]: Json } } {
  const { observation, now } = input;
  const evidence = {
    observation: observation.id,
    observed_balance: decimalText(wallet.observedBalance),
    ledger_balance: decimalText(wallet.ledgerAtObservation),
    ruled_out: ['posted operations', 'executed and not yet posted operations', 'open operations'],
  };
  return {
    id: deps.ids.next('drf'),
    walletKey: wallet.key,
    addr: wallet.addr,
    amount: input.residual,
    state: 'open',
    suspectedAt: input.suspectedAt,
    openedAt: now,
    closedAt: null,
    windowFrom: wallet.quietAt,
    windowTo: observation.endedAt,
    evidence,
    assignee: null,
    proposal: null,
    approvedBy: null,
  };
}

async function close(
  tx: Tx,
  drift: Drift,
  how: string,
  observation: StoredObservation,
  now: Instant,
): Promise<EventDraft[]> {
  if (!(await closeDrift(tx, drift.id, how, now))) return [];
  const detail = { observation: observation.id };
  await insertDriftAction(tx, {
    driftId: drift.id,
    action: how,
    at: now,
    by: 'reconciler',
    detail,
  });
  return [driftEvent(drift, observation.endedAt, how)];
}

/** @param how how the drift closed; undefined when it opened */
function driftEvent(drift: Drift, occurredAt: Instant, how?: string): EventDraft {
  const data: EventData<'wallet.drift_opened'> = {
    addr: drift.addr,
    drift_id: drift.id,
    amount: decimalText(drift.amount),
    window_from: drift.windowFrom === null ? null : isoText(drift.windowFrom),
    window_to: isoText(drift.windowTo),
    evidence: drift.evidence as Record<string, unknown>,
  };
  const common = { subject: `wallet:${drift.walletKey}`, occurredAt };
  return how === undefined
    ? { ...common, type: 'wallet.drift_opened', data }
    : { ...common, type: 'wallet.drift_closed', data: { ...data, how } };
}
