/**
 * From due work to postings: what each operation and each wanted posting becomes, what a reversal
 * takes back, and what cannot be posted, with the reason. Pure; one bad row never touches its
 * neighbours.
 */

import type { Instant } from '../kernel/clock.ts';
import {
  type Effect,
  type EffectSettings,
  effectsOf,
  type Operation,
  Unpostable,
} from '../operations/operations.ts';
import {
  correctionOf,
  correctionsOf,
  isPosted,
  type Opening,
  type Overlooked,
} from './opening-rule.ts';
import { accountKind, type TokenMove, tokenMoveOf } from './posting.ts';
import type { PostingRequest } from './posting-request.ts';

/** A transaction that stands in the books and may be taken back. */
export interface Standing {
  transactionId: bigint;
  operationId: string | null;
  postingRequestId: string | null;
  effectiveAt: Instant;
  effectiveBasis: string;
  effects: Effect[];
}

/** An operation whose posting or reversal is due. */
export interface DueOperation {
  operation: Operation;
  effects: readonly Effect[];
  /** How often it was posted or reversed so far. */
  timesPosted: number;
}

/** What is due, and what is needed to post it. */
export interface Work {
  wanted: readonly PostingRequest[];
  operations: readonly DueOperation[];
  /** What the reversals among it take back. */
  standing: readonly Standing[];
  /** The openings of the accounts that the operations touch, by account key. */
  openings: ReadonlyMap<string, Opening>;
  /** What the openings among `wanted` do not know of. */
  overlooked: readonly Overlooked[];
}

/** A transaction without its number. */
export interface Draft {
  kind: string;
  operationId: string | null;
  posting: number | null;
  postingRequestId: string | null;
  reverses: bigint | null;
  reasonType: string | null;
  reference: string | null;
  txAppNo: bigint | null;
  txLogNo: bigint | null;
  requestedBy: string;
  effectiveAt: Instant;
  effectiveBasis: string;
  effects: readonly Effect[];
}

/** An NFT movement to be recorded. */
export interface Movement extends TokenMove {
  operationId: string;
  posting: number;
  txHash: string | null;
  effectiveAt: Instant;
}

export interface Problem {
  of: 'operation' | 'wanted';
  id: string;
  problem: string;
}

export interface Plan {
  drafts: Draft[];
  movements: Movement[];
  /** Accounts that are opened without an entry. */
  opened: string[];
  operationIds: string[];
  /** Due, but posted or reversed already. */
  unchangedIds: string[];
  postingRequestIds: string[];
  /** Wanted by the ledger itself, and posted in the same batch. */
  corrections: PostingRequest[];
  problems: Problem[];
}

/** Plans everything that is due; what cannot be posted ends in `problems`. */
export function planWork(work: Work, settings: EffectSettings): Plan {
  const plan: Plan = {
    drafts: [],
    movements: [],
    opened: [],
    operationIds: [],
    unchangedIds: [],
    postingRequestIds: [],
    corrections: [],
    problems: [],
  };
  const aside = (of: Problem['of'], id: string, act: () => void) => {
    try {
      act();
    } catch (error) {
      if (!(error instanceof Unpostable)) throw error;
      plan.problems.push({ of, id, problem: error.message });
    }
  };
  for (const wanted of work.wanted) {
    aside('wanted', wanted.id, () => {
      planRequest(wanted, work.standing, plan);
      plan.postingRequestIds.push(wanted.id);
      correctOverlooked(wanted, work.overlooked, plan);
    });
  }
  for (const due of work.operations) {
    const { id, inLedger } = due.operation;
    if (inLedger === isPosted(due.timesPosted)) {
      plan.unchangedIds.push(id);
      continue;
    }
    aside('operation', id, () => {
      planOperation(due, work, settings, plan);
      plan.operationIds.push(id);
    });
  }
  return plan;
}

function planRequest(wanted: PostingRequest, standing: readonly Standing[], plan: Plan): void {
  const { kind, account, counter, amount } = wanted;
  for (const name of [account, counter]) accountKind(name);
  if (amount === 0n) {
    if (kind !== 'opening') throw new Unpostable('the amount is zero');
    plan.opened.push(account);
    return;
  }
  const original = wanted.reverses
    ? standing.find((posted) => posted.postingRequestId === wanted.reverses)
    : undefined;
  if (wanted.reverses && !original) throw new Unpostable('what it reverses is not in the ledger');
  plan.drafts.push({
    kind,
    operationId: null,
    posting: null,
    postingRequestId: wanted.id,
    reverses: original?.transactionId ?? null,
    reasonType: null,
    reference: null,
    txAppNo: null,
    txLogNo: null,
    requestedBy: wanted.requestedBy,
    effectiveAt: wanted.effectiveAt,
    effectiveBasis: wanted.effectiveBasis,
    effects: [
      { account, amount },
      { account: counter, amount: -amount },
    ],
  });
}

/** What was posted behind the back of an opening is taken out of it again. */
function correctOverlooked(
  { id, account, effectiveAt, seen }: PostingRequest,
  overlooked: readonly Overlooked[],
  plan: Plan,
): void {
  if (!seen) return;
  const opening = { account, effectiveAt, seenAt: seen.at };
  const entries = overlooked.filter(({ postingRequestId }) => postingRequestId === id);
  for (const entry of entries) correct(correctionOf(opening, entry), plan);
}

function correct(correction: PostingRequest, plan: Plan): void {
  planRequest(correction, [], plan);
  plan.corrections.push(correction);
  plan.postingRequestIds.push(correction.id);
}

function planOperation(
  { operation, effects, timesPosted }: DueOperation,
  { standing, openings }: Work,
  settings: EffectSettings,
  plan: Plan,
): void {
  const { id, txHash, inLedger } = operation;
  const posting = timesPosted + 1;
  const token = tokenMoveOf(operation);
  if (token) {
    const { effectiveAt } = effectOf(operation);
    const move = inLedger ? token : undone(token);
    plan.movements.push({ ...move, operationId: id, posting, txHash, effectiveAt });
  } else if (inLedger) {
    if (effects.length === 0) throw unpostable(operation, settings);
    const { kind } = operation;
    plan.drafts.push({ ...draftOf(operation), kind, posting, effects, ...effectOf(operation) });
    correctOpenings(operation, timesPosted, effects, openings, plan);
  } else {
    const original = standing.find((posted) => posted.operationId === id);
    if (!original) throw new Unpostable('what it reverses is not in the ledger');
    const { transactionId, effectiveAt, effectiveBasis } = original;
    const reversed = original.effects.map(({ account, amount }) => ({ account, amount: -amount }));
    plan.drafts.push({
      ...draftOf(operation),
      kind: 'reversal',
      posting,
      reverses: transactionId,
      // It never happened, so it is taken back as of when it was thought to have happened.
      effectiveAt,
      effectiveBasis,
      effects: reversed,
    });
    correctOpenings(operation, timesPosted, reversed, openings, plan);
  }
}

function correctOpenings(
  operation: Operation,
  timesPosted: number,
  effects: readonly Effect[],
  openings: ReadonlyMap<string, Opening>,
  plan: Plan,
): void {
  for (const correction of correctionsOf(operation, timesPosted, effects, openings))
    correct(correction, plan);
}

/** Why an operation without effects has none. */
function unpostable(operation: Operation, settings: EffectSettings): Unpostable {
  try {
    effectsOf(operation, settings);
  } catch (error) {
    if (error instanceof Unpostable) return error;
    throw error;
  }
  return new Unpostable('this kind of write is not posted');
}

function draftOf(operation: Operation) {
  return {
    operationId: operation.id,
    postingRequestId: null,
    reverses: null,
    reasonType: operation.reasonType,
    reference: operation.reference,
    txAppNo: operation.txAppNo,
    txLogNo: operation.txLogNo,
    requestedBy: operation.owner,
  };
}

/** When the write took effect, as far as known. */
function effectOf(operation: Operation): { effectiveAt: Instant; effectiveBasis: string } {
  const { effectiveAt, effectiveBasis, answeredAt, recordedAt } = operation;
  if (effectiveAt !== null) return { effectiveAt, effectiveBasis: effectiveBasis ?? 'operation' };
  return answeredAt !== null
    ? { effectiveAt: answeredAt, effectiveBasis: 'answer' }
    : { effectiveAt: recordedAt, effectiveBasis: 'recorded' };
}

function undone(move: TokenMove): TokenMove {
  return { ...move, kind: 'reversal', fromAddr: move.toAddr, toAddr: move.fromAddr };
}
