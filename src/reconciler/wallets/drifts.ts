/**
 * The life of a drift in the database: suspected, opened, returned; each with its event and its
 * history.
 */
import type { Tx } from '../../db/connect.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { expedite, type StoredObservation } from '../../observer/observer.ts';
import type { EventData, EventDraft } from '../../outbox/events.ts';
import type { Context } from '../deps.ts';
import { compareWithDenied, supersede } from '../unknown/supersede.ts';
import { driftStep } from './drift-rule.ts';
import { holdForPoll } from './hold.ts';
import type { Part } from './rule.ts';
import { closeDrift, type Drift, insertDrift, insertDriftAction, type Wallet } from './store.ts';

interface Residual {
  residual: bigint;
  drifts: Drift[];
  observation: StoredObservation;
  now: Instant;
}

/**
 * Each look that decides nothing makes the next one wait longer, up to the steady gap; now and then
 * one for which new writes wait.
 * @param met what the look may or may not show
 */
export async function pollAgain(
  tx: Tx,
  context: Context,
  wallet: Wallet,
  met: { optional: readonly Part[]; observation: StoredObservation; now: Instant },
): Promise<void> {
  const { pendingMinMs, steadyMs } = context.settings;
  const gapMs = Math.min(steadyMs, pendingMinMs * 1.5 ** Math.min(wallet.unquietObservations, 30));
  wallet.unquietObservations += 1;
  const optional = met.optional.map(({ operation }) => operation);
  const heldAt = await holdForPoll(tx, context, wallet, { ...met, optional });
  await expedite(tx, `wallet:${wallet.key}`, heldAt ?? met.now + gapMs);
}

/** Takes one clean residual through the rule and changes the wallet row accordingly. */
export async function stepDrift(
  tx: Tx,
  context: Context,
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
    // A first suspicion is looked into soon; a balance that never stands still is not chased for
    // ever.
    if (!suspicion) wallet.unquietObservations = 0;
    Object.assign(wallet, {
      verdict: 'drifting',
      cause: 'suspected',
      suspectedAmount: amount,
      suspectedAt: at,
    });
    await pollAgain(tx, context, wallet, { optional: [], observation, now });
    return [];
  }
  Object.assign(wallet, { suspectedAmount: null, suspectedAt: null, unquietObservations: 0 });
  if (next.step === 'open') {
    Object.assign(wallet, { verdict: 'drifting', cause: null });
    const { amount: found, suspectedAt } = next;
    return openDrift(tx, context, wallet, { residual: found, observation, now, suspectedAt });
  }
  Object.assign(wallet, { verdict: 'explained', cause: null, quietAt: observation.startedAt });
  const events: EventDraft[] = [];
  for (const returned of next.drifts) {
    const drift = drifts.find((open) => open.id === returned.id);
    if (drift) events.push(...(await close(tx, drift, 'returned', observation, now)));
  }
  return events;
}

/** A confirmed difference becomes a drift, unless it is what a denied write would have done. */
async function openDrift(
  tx: Tx,
  context: Context,
  wallet: Wallet,
  given: { residual: bigint; observation: StoredObservation; now: Instant; suspectedAt: Instant },
): Promise<EventDraft[]> {
  const { observation, now } = given;
  const made = newDrift(context, wallet, given);
  const { proved, like } = await compareWithDenied(tx, context, made, now);
  const drift =
    like.length > 0 ? { ...made, evidence: { ...made.evidence, equals_denied: like } } : made;
  await insertDrift(tx, drift);
  const action = { driftId: drift.id, at: now, by: 'reconciler' };
  await insertDriftAction(tx, { ...action, action: 'opened', detail: drift.evidence });
  const events = [driftEvent(drift, observation.endedAt)];
  if (!proved) return events;
  Object.assign(wallet, { verdict: 'explained', quietAt: observation.startedAt });
  events.push(...(await supersede(tx, context, proved, now)));
  for (const one of proved.drifts)
    events.push(...(await close(tx, one, 'explained', observation, now)));
  return events;
}

function newDrift(
  context: Context,
  wallet: Wallet,
  given: { residual: bigint; observation: StoredObservation; now: Instant; suspectedAt: Instant },
): Omit<Drift, 'evidence'> & { evidence: { [key: string]: Json } } {
  const { observation, now } = given;
  const evidence = {
    observation: observation.id,
    observed_balance: decimalText(wallet.observedBalance),
    ledger_balance: decimalText(wallet.ledgerAtObservation),
    ruled_out: ['posted operations', 'executed and not yet posted operations', 'open operations'],
  };
  return {
    id: context.ids.next('drf'),
    walletKey: wallet.key,
    addr: wallet.addr,
    amount: given.residual,
    state: 'open',
    suspectedAt: given.suspectedAt,
    openedAt: now,
    closedAt: null,
    // The balance was last explained at the newest clean look before; the change lies between the
    // two.
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

/** The event of a drift that opened, or of one that closed when it says how. */
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
