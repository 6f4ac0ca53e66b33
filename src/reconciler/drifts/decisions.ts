/**
 * Drifts ended by people: assigned, proposed with a reason, and approved by another owner. Each
 * drift is one transaction together with its counterpart.
 *
 * An approved booking moves the difference to the account `external`. A link makes its operation
 * executed, and reverses an earlier booking. Either is a posting request in that transaction, so
 * the ledger posts it even if the daemon ends right after it. A dismissal changes nothing in the
 * ledger: a difference that is still observed becomes a new drift.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import { requestPosting } from '../../ledger/ledger.ts';
import { expedite } from '../../observer/observer.ts';
import {
  accountOfWallet,
  approve,
  assertDecidable,
  type Decision,
  decisionEvidence,
  type EffectSettings,
  lockOperation,
  newestDecisions,
  type Operation,
  type Operations,
  type Person,
  propose,
  resolvedEvent,
  walletEffectsOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { DriftState } from '../../resources/ledger/drift.ts';
import { operatorTexts } from '../../resources/ledger/drift-words.ts';
import type { ProposalKind } from '../../resources/operations/decision.ts';
import { executedSince } from './assess.ts';
import {
  assignDrift,
  closeDrift,
  type Drift,
  driftEvent,
  findDrift,
  insertDriftAction,
  lockJointDrifts,
  lockOpenDrift,
  markProposed,
} from './drift.ts';
import { assertProposable, ENDED_BY, refusal } from './states.ts';

/** What became of one drift of a list: the drift, or why it stays as it was. */
export type DriftResult = { id: string } & ({ drift: Drift } | { failure: Failure });

export interface Drifts {
  /** @param assignee null removes the present one; refused for a closed drift */
  assign(ids: readonly string[], assignee: string | null, by: Person): Promise<DriftResult[]>;
  /**
   * Proposes how drifts end; it replaces earlier proposals that are not approved. Without a
   * proposal the prepared one is made.
   */
  propose(ids: readonly string[], input: ProposalInput, by: Person): Promise<DriftResult[]>;
  /**
   * Approves the newest proposals; with the last approval that it needs a drift ends.
   * @param expected the proposal that the approver read; a different one is refused
   */
  approve(
    ids: readonly string[],
    expected: { n?: number | undefined; proposal?: ProposalKind | undefined },
    by: Person,
  ): Promise<DriftResult[]>;
}

export interface ProposalInput {
  proposal?: ProposalKind | undefined;
  operationId?: string | undefined;
  reason: string;
}

/** What people's work on drifts is given. */
interface DriftDeps {
  db: Db;
  clock: Clock;
  outbox: Outbox;
  operations: Pick<Operations, 'move'>;
  effectSettings: EffectSettings;
  /** Larger amounts need two approvals; undefined: none does. */
  secondApproverAbove?: bigint | undefined;
}

/** What one transaction of it works with. */
interface Step {
  tx: Tx;
  by: Person;
  now: Instant;
}

/** Acts on the drift of that id; returns the drifts that it was about, and the events. */
type Act = (step: Step, id: string) => Promise<{ drifts: Drift[]; events: EventDraft[] }>;

export function makeDrifts(deps: DriftDeps): Drifts {
  const { db, clock, outbox } = deps;
  /** One transaction per drift and its counterpart; a refused one stops no other. */
  async function forEach(ids: readonly string[], by: Person, act: Act): Promise<DriftResult[]> {
    const done = new Map<string, DriftResult>();
    for (const id of new Set(ids)) {
      if (done.has(id)) continue;
      try {
        const changed = await db.begin(async (tx) => {
          const { drifts, events } = await act({ tx, by, now: clock.now() }, id);
          await outbox.emit(tx, events);
          const ids = new Set([id, ...drifts.map((drift) => drift.id)]);
          return Promise.all([...ids].map((one) => get(tx, one)));
        });
        for (const drift of changed) done.set(drift.id, { id: drift.id, drift });
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        done.set(id, { id, failure: error });
      }
    }
    return [...done.values()];
  }
  return {
    assign: (ids, assignee, by) => forEach(ids, by, (step, id) => assign(step, id, assignee)),
    propose: (ids, input, by) =>
      forEach(ids, by, (step, id) => proposeJointly(deps, step, id, input)),
    approve: (ids, expected, by) =>
      forEach(ids, by, (step, id) => approveJointly(deps, step, id, expected)),
  };
}

async function get(tx: Tx, id: string): Promise<Drift> {
  const drift = await findDrift(tx, id);
  if (!drift) throw new Failure('not_found', `there is no ${id}`);
  return drift;
}

async function lockJoint(tx: Tx, id: string): Promise<[Drift, ...Drift[]]> {
  const drifts = await lockJointDrifts(tx, id);
  const own = drifts.find((drift) => drift.id === id);
  if (!own) throw new Failure('not_found', `there is no ${id}`);
  return [own, ...drifts.filter((drift) => drift !== own)];
}

function record({ tx, by, now }: Step, drift: Drift, action: string, detail: Json): Promise<void> {
  return insertDriftAction(tx, { driftId: drift.id, action, at: now, by: by.owner, detail });
}

async function assign(step: Step, id: string, assignee: string | null) {
  const drifts = await lockJoint(step.tx, id);
  if (drifts[0].closedAt !== null) throw refusal(id, `it is ${drifts[0].state}`);
  const events: EventDraft[] = [];
  for (const drift of drifts) {
    await assignDrift(step.tx, drift.id, assignee);
    await record(step, drift, 'assigned', { assignee });
    const data = { assignee, assigned_by: step.by.owner };
    events.push(driftEvent(drift, { type: 'wallet.drift_assigned', data }, step.now));
  }
  return { drifts, events };
}

async function proposeJointly(
  deps: DriftDeps,
  step: Step,
  id: string,
  { proposal, operationId, reason }: ProposalInput,
) {
  const prepared = proposal ? undefined : preparedOf(await get(step.tx, id));
  const decision = proposal ?? prepared?.proposal ?? 'book';
  const linked = operationId ?? prepared?.operation_id ?? null;
  const drifts = await lockJoint(step.tx, prepared?.drift_id ?? id);
  const chosen = decision === 'link' ? await linkedBy(deps, step.tx, drifts, linked) : [...drifts];
  const events: EventDraft[] = [];
  for (const drift of chosen) {
    assertProposable(drift, decision);
    const made = await propose(
      step.tx,
      { subject: drift.id, decision, operationId: linked, reason },
      { amount: largestOf(drift), secondApproverAbove: deps.secondApproverAbove },
      step.by,
      step.now,
    );
    await markProposed(step.tx, drift.id);
    events.push(await proposed(step, drift, 'proposed', made));
  }
  return { drifts: chosen, events };
}

/** The largest amount that the drift may have, in either direction. */
function largestOf({ min, max }: Drift): bigint {
  return -min > max ? min : max;
}

function preparedOf({ id, addr, prepared, operator }: Drift) {
  if (prepared) return prepared;
  if (operator) throw refusal(id, operatorTexts({ addr, operator }).join(' '));
  throw refusal(id, 'no proposal is prepared; name one: book, link or dismiss');
}

/** The drifts that the operation explains; the first one must be among them. */
async function linkedBy(
  { effectSettings }: DriftDeps,
  tx: Tx,
  [first, ...others]: readonly [Drift, ...Drift[]],
  operationId: string | null,
): Promise<Drift[]> {
  assertProposable(first, 'link');
  const operation = operationId === null ? undefined : await lockOperation(tx, operationId);
  if (!operation) throw refusal(first.id, `there is no operation ${operationId ?? 'named'}`);
  const effects = walletEffectsOf(operation, effectSettings);
  assertLinkable(first, operation, effects, await executedSince(tx, operation.id));
  return [first, ...others.filter(({ walletKey, amount }) => effects.get(walletKey) === amount)];
}

/**
 * @param knownAt when the operation became executed
 * @throws Failure `conflict` with the reason when the operation does not explain the drift
 */
function assertLinkable(
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

async function proposed(step: Step, drift: Drift, action: string, decision: Decision) {
  const proposal = proposalFields(decision);
  await record(step, drift, action, proposal);
  return driftEvent(drift, { type: 'wallet.drift_proposed', data: { proposal } }, step.now);
}

/** A proposal in events and in the history. */
function proposalFields(decision: Decision): { [key: string]: Json } {
  return {
    n: decision.n,
    kind: decision.decision,
    operation_id: decision.operationId,
    reason: decision.reason,
    proposed_by: decision.proposedBy,
    approvals_needed: decision.approvalsNeeded,
    approved_by: decision.approvals.map(({ owner }) => owner),
  };
}

async function approveJointly(
  deps: DriftDeps,
  step: Step,
  id: string,
  { n, proposal }: { n?: number | undefined; proposal?: ProposalKind | undefined },
) {
  const joint = await lockJoint(step.tx, id);
  const newest = await newestDecisions(
    step.tx,
    joint.map((drift) => drift.id),
  );
  const own = newest.get(id);
  // What was proposed together is approved together.
  const drifts = joint.filter((drift) => {
    const other = newest.get(drift.id);
    return drift.id === id || (other && own && isSameProposal(other, own));
  });
  const events: EventDraft[] = [];
  for (const drift of drifts) {
    const expected = { n: drift.id === id ? n : undefined, decision: proposal };
    const decision = await approve(step.tx, drift.id, expected, step.by, step.now);
    assertProposable(drift, decision.decision as ProposalKind);
    if (decision.approvedAt === null)
      events.push(await proposed(step, drift, 'approved', decision));
    else events.push(...(await applyDecision(deps, step, drift, decision)));
  }
  return { drifts, events };
}

function isSameProposal(a: Decision, b: Decision): boolean {
  return (
    a.decision === b.decision && a.proposedAt === b.proposedAt && a.proposedBy === b.proposedBy
  );
}

/** Ends the drift as its approved decision says, and has its wallet polled soon. */
async function applyDecision(
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
