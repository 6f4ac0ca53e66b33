/**
 * Drifts ended by people: assigned, proposed with a reason, and approved by another owner. Each
 * drift is one transaction together with its counterpart. An approved booking or link is a posting
 * request in that transaction, so the ledger posts it even if the daemon ends right after it.
 */
import type { Tx } from '../../db/connect.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import {
  approve,
  type Decision,
  lockOperation,
  newestDecisions,
  type Person,
  propose,
  walletEffectsOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { ProposalKind } from '../../resources/operations/decision.ts';
import { executedSince } from './assess.ts';
import {
  assignDrift,
  type Drift,
  findDrift,
  insertDriftAction,
  lockJointDrifts,
  markProposed,
} from './drift.ts';
import { driftEvent } from './events.ts';
import { applyDecision, assertLinkable, type DriftDeps, type Step } from './resolve.ts';
import { assertProposable, refusal } from './states.ts';

/** What became of one drift of a list: the drift, or why it stays as it was. */
export type DriftResult = { id: string } & ({ drift: Drift } | { failure: Failure });

export interface Drifts {
  /** @param assignee null for nobody; refused for a closed drift */
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

function preparedOf({ id, prepared }: Drift) {
  if (prepared) return prepared;
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
