/**
 * What an approved proposal does. A booking moves the difference to the account `external`. A link
 * makes its operation executed, and reverses an earlier booking. A dismissal changes nothing in the
 * ledger: a difference that is still observed becomes a new drift.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import { requestPosting } from '../../ledger/ledger.ts';
import { expedite } from '../../observer/observer.ts';
import {
  accountOfWallet,
  assertDecidable,
  type Decision,
  decisionEvidence,
  type EffectSettings,
  lockOperation,
  type Operation,
  type Operations,
  type Person,
  resolvedEvent,
  walletEffectsOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { DriftState } from '../../resources/ledger/drift.ts';
import type { ProposalKind } from '../../resources/operations/decision.ts';
import { executedSince } from './assess.ts';
import { closeDrift, type Drift, insertDriftAction, lockOpenDrift } from './drift.ts';
import { driftEvent } from './events.ts';
import { ENDED_BY, refusal } from './states.ts';

/** What people's work on drifts is given. */
export interface DriftDeps {
  db: Db;
  clock: Clock;
  outbox: Outbox;
  operations: Pick<Operations, 'move'>;
  effectSettings: EffectSettings;
  /** Larger amounts need two approvals; undefined: none does. */
  secondApproverAbove?: bigint | undefined;
}

/** What one transaction of it works with. */
export interface Step {
  tx: Tx;
  by: Person;
  now: Instant;
}

/** Ends the drift as its approved decision says, and has its wallet polled soon. */
export async function applyDecision(
  deps: DriftDeps,
  step: Step,
  drift: Drift,
  decision: Decision,
): Promise<EventDraft[]> {
  const { tx, now } = step;
  const kind = decision.decision as ProposalKind;
  const state = ENDED_BY[kind];
  const closedBy: { [key: string]: Json } = {
    ...decisionEvidence(decision),
    ...(decision.operationId === null ? {} : { operation_id: decision.operationId }),
  };
  await end(step, drift, { state, by: decision.approvedBy ?? '', closedBy });
  await expedite(tx, new Map([[`wallet:${drift.walletKey}`, now]]));
  const wasBooked = drift.state === 'booked';
  const events = wasBooked ? [] : [closedEvent(drift, state, closedBy, now)];
  if (kind === 'book') await book(step, drift, decision);
  if (kind !== 'link') return events;
  if (wasBooked) events.push(await reverseBooking(step, drift, decision));
  return [...events, ...(await link(deps, step, drift, decision))];
}

async function end(
  { tx, now }: Step,
  drift: Drift,
  { state, by, closedBy }: { state: DriftState; by: string; closedBy: { [key: string]: Json } },
): Promise<void> {
  await closeDrift(tx, drift.id, { state, closedBy }, now);
  await insertDriftAction(tx, { driftId: drift.id, action: state, at: now, by, detail: closedBy });
}

function closedEvent(
  drift: Drift,
  how: string,
  closedBy: { [key: string]: Json },
  at: Instant,
): EventDraft {
  return driftEvent(drift, { type: 'wallet.drift_closed', data: { how, closed_by: closedBy } }, at);
}

function bookingId({ id }: Drift): string {
  return `booking:${id}`;
}

/** The booking of a drift, or with `-1n` its reversal, at the time of the change. */
function bookingOf(drift: Drift, sign: 1n | -1n, decision: Decision) {
  return {
    account: accountOfWallet(drift.addr),
    counter: 'external',
    amount: sign * must(drift.amount, 'exact amount'),
    effectiveAt: drift.suspectedAt,
    effectiveBasis: 'observed',
    requestedBy: decision.proposedBy,
    reason: decision.reason,
  };
}

function book({ tx, now }: Step, drift: Drift, decision: Decision): Promise<void> {
  const booking = bookingOf(drift, 1n, decision);
  return requestPosting(tx, { id: bookingId(drift), kind: 'booking', ...booking }, now);
}

/** Reverses the booking in the ledger, at the time of the booking. */
async function reverseBooking(
  { tx, now }: Step,
  drift: Drift,
  decision: Decision,
): Promise<EventDraft> {
  const reversal = { ...bookingOf(drift, -1n, decision), reverses: bookingId(drift) };
  await requestPosting(tx, { id: `reversal:${drift.id}`, kind: 'reversal', ...reversal }, now);
  const data = { operation_id: must(decision.operationId, 'operation of a link') };
  return driftEvent(drift, { type: 'wallet.drift_reversed', data }, now);
}

/**
 * The operation becomes executed, unless it is. What it does to further wallets, and what a
 * reversed booking had hidden, explains the drifts of just these amounts.
 */
async function link(
  { operations, effectSettings }: DriftDeps,
  step: Step,
  drift: Drift,
  decision: Decision,
): Promise<EventDraft[]> {
  const { tx, now } = step;
  const operation = must(await lockOperation(tx, must(decision.operationId, 'link')), 'operation');
  const effects = walletEffectsOf(operation, effectSettings);
  assertLinkable(drift, operation, effects, await executedSince(tx, operation.id));
  const events: EventDraft[] = [];
  const { id: operationId } = operation;
  const { walletKey: own, windowFrom, windowTo } = drift;
  const during = { windowFrom, windowTo };
  const explained: Parameters<typeof lockOpenDrift>[1][] = [...effects]
    .filter(([walletKey]) => walletKey !== own)
    .map(([walletKey, amount]) => ({ walletKey, amount, operationId, during }));
  if (drift.state === 'booked') {
    const amount = -must(drift.amount, 'exact amount');
    explained.push({ walletKey: own, amount, operationId, during: undefined });
  }
  if (operation.outcome !== 'executed') {
    const evidence = { basis: 'drift', drift: drift.id, ...decisionEvidence(decision) };
    const facts = { effectiveAt: drift.suspectedAt, effectiveBasis: 'observed', evidence };
    const to = { to: 'executed', at: now, cause: 'decision', decided: true } as const;
    const [moved] = await operations.move(tx, [{ id: operation.id, ...to, ...facts }]);
    events.push(resolvedEvent(must(moved, 'operation that was locked'), operation, now));
  }
  for (const one of explained) {
    const other = await lockOpenDrift(tx, one);
    if (!other || other.counterpart === drift.id) continue;
    const closedBy = { operation_id: operationId, drift: drift.id };
    await end(step, other, { state: 'explained', by: 'reconciler', closedBy });
    events.push(closedEvent(other, 'explained', closedBy, now));
  }
  return events;
}

/**
 * @param knownAt when the operation became executed
 * @throws Failure `conflict` with the reason when the operation does not explain the drift
 */
export function assertLinkable(
  { id, walletKey, amount, openedAt }: Drift,
  operation: Operation,
  effects: ReadonlyMap<string, bigint>,
  knownAt: Instant | undefined,
): void {
  const effect = effects.get(walletKey) ?? 0n;
  if (effect !== amount)
    throw refusal(id, `${operation.id} changes the wallet by ${effect}, the drift is ${amount}`);
  if (operation.outcome !== 'executed') assertDecidable(operation, 'executed');
  else if ((knownAt ?? 0) < openedAt)
    throw refusal(id, `${operation.id} was already counted when the drift was confirmed`);
}
