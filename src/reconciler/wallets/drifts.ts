/** Applies the drift rule to a wallet: stores drifts with their history and makes their events. */
import type { Tx } from '../../db/connect.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { EventData, EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { compareWithNotExecuted, type Superseded, supersede } from '../unknown/supersede.ts';
import { driftStep, type Suspicion } from './drift-rule.ts';
import { type Comparison, isExact, type Range } from './rule.ts';
import {
  closeDrift,
  type Drift,
  insertDrift,
  insertDriftAction,
  reviseDrift,
  type Wallet,
} from './store.ts';

interface Input {
  comparison: Comparison;
  /** The open drifts of the wallet. */
  drifts: readonly Drift[];
  observation: { id: string; startedAt: Instant; endedAt: Instant };
  now: Instant;
}

/** Applies the comparison to the drifts of a wallet; changes `wallet`, which the caller stores. */
export async function stepDrifts(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: Input,
): Promise<EventDraft[]> {
  const { comparison, drifts, observation, now } = input;
  const next = driftStep(comparison, suspicionOf(wallet), drifts, observation);
  const { min = null, max = null, at = null } = next.suspicion ?? {};
  Object.assign(wallet, { suspectedMin: min, suspectedMax: max, suspectedAt: at });
  if (next.suspicion) {
    Object.assign(wallet, { verdict: 'drifting', cause: 'suspected' });
    return [];
  }
  // With these drifts, or without them, the observation is explained.
  if (comparison.result === 'unexplained') {
    Object.assign(wallet, { verdict: 'explained', cause: null });
    if (!next.opened) wallet.quietAt = observation.startedAt;
  }
  const events = await closeAll(tx, next.returned ?? [], 'returned', input);
  if (next.opened)
    events.push(...(await openDrift(tx, deps, wallet, { ...input, ...next.opened })));
  for (const { drift, range } of next.revised ?? []) {
    const amount = isExact(range) ? range.min : null;
    await reviseDrift(tx, { id: drift.id, amount, ...range });
    await addAction(tx, drift, 'revised', now, { observation: observation.id, ...texts(range) });
    if (amount === null) continue;
    const revised = { ...drift, amount, ...range };
    const { proved } = await compareWithNotExecuted(tx, deps, revised, now);
    if (proved) events.push(...(await explain(tx, deps, proved, input)));
  }
  wallet.consistentAt = observation.startedAt;
  return events;
}

function suspicionOf({ suspectedMin, suspectedMax, suspectedAt }: Wallet): Suspicion | undefined {
  return suspectedMin === null || suspectedMax === null || suspectedAt === null
    ? undefined
    : { min: suspectedMin, max: suspectedMax, at: suspectedAt };
}

/** Opens a drift, and closes it at once when it proves a write that was called not executed. */
async function openDrift(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: Input & { range: Range; suspectedAt: Instant },
): Promise<EventDraft[]> {
  const { observation, now } = input;
  Object.assign(wallet, { verdict: 'drifting', cause: null });
  const made = newDrift(deps, wallet, input);
  const { proved, like } = await compareWithNotExecuted(tx, deps, made, now);
  const drift: Drift =
    like.length > 0 ? { ...made, evidence: { ...made.evidence, equals_not_executed: like } } : made;
  await insertDrift(tx, drift);
  await addAction(tx, drift, 'opened', now, drift.evidence);
  const events = [driftEvent(drift, observation.endedAt)];
  if (!proved) return events;
  Object.assign(wallet, { verdict: 'explained', quietAt: observation.startedAt });
  events.push(...(await explain(tx, deps, proved, input)));
  return events;
}

/** The operation is executed after all, and its drifts are explained by it. */
async function explain(
  tx: Tx,
  deps: Deps,
  proved: NonNullable<Superseded['proved']>,
  input: Input,
): Promise<EventDraft[]> {
  const events = await supersede(tx, deps, proved, input.now);
  return [...events, ...(await closeAll(tx, proved.drifts, 'explained', input))];
}

function newDrift(
  deps: Deps,
  wallet: Wallet,
  { observation, now, range, suspectedAt }: Input & { range: Range; suspectedAt: Instant },
): Omit<Drift, 'evidence'> & { evidence: { [key: string]: Json } } {
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
    amount: isExact(range) ? range.min : null,
    ...range,
    state: 'open',
    suspectedAt,
    openedAt: now,
    closedAt: null,
    windowFrom: wallet.consistentAt,
    windowTo: observation.endedAt,
    evidence,
    assignee: null,
    proposal: null,
    approvedBy: null,
  };
}

async function closeAll(
  tx: Tx,
  drifts: readonly Drift[],
  how: string,
  { observation, now }: Input,
): Promise<EventDraft[]> {
  const events: EventDraft[] = [];
  for (const drift of drifts) {
    if (!(await closeDrift(tx, drift.id, how, now))) continue;
    await addAction(tx, drift, how, now, { observation: observation.id });
    events.push(driftEvent(drift, observation.endedAt, how));
  }
  return events;
}

function addAction(
  tx: Tx,
  { id }: Drift,
  action: string,
  at: Instant,
  detail: Json,
): Promise<void> {
  return insertDriftAction(tx, { driftId: id, action, at, by: 'reconciler', detail });
}

function texts({ min, max }: Range) {
  return { amount_min: decimalText(min), amount_max: decimalText(max) };
}

/** @param how how the drift closed; undefined when it opened */
function driftEvent(drift: Drift, occurredAt: Instant, how?: string): EventDraft {
  const data: EventData<'wallet.drift_opened'> = {
    addr: drift.addr,
    drift_id: drift.id,
    amount: drift.amount === null ? null : decimalText(drift.amount),
    ...texts(drift),
    window_from: drift.windowFrom === null ? null : isoText(drift.windowFrom),
    window_to: isoText(drift.windowTo),
    evidence: drift.evidence as Record<string, unknown>,
  };
  const common = { subject: `wallet:${drift.walletKey}`, occurredAt };
  return how === undefined
    ? { ...common, type: 'wallet.drift_opened', data }
    : { ...common, type: 'wallet.drift_closed', data: { ...data, how } };
}
