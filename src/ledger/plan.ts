/**
 * Plans the transactions for due operations and posting requests, with the corrections of openings
 * that they need. What cannot be posted becomes a problem with the reason and affects no other row.
 * Pure.
 */
import {
  accountKey,
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
  type MissedEntry,
  type Opening,
  type OpeningMove,
  requestsOf,
} from './openings.ts';
import { accountKind, effectiveTimeOf, type PostingRequest } from './posting.ts';
import type { transactions } from './tables.ts';
import {
  type DueHolder,
  type Journals,
  type NewMovement,
  type TokenRef,
  TokenWork,
} from './tokens/journal.ts';

/** An operation whose posting or reversal is due. */
export interface DueOperation {
  operation: Operation;
  effects: readonly Effect[];
  /** How often it was posted or reversed so far. */
  timesPosted: number;
}

/** What is due, with what planning needs. */
export interface Work {
  requests: readonly PostingRequest[];
  operations: readonly DueOperation[];
  /** The transactions that the due reversals reverse. */
  originals: readonly Original[];
  /** The openings of the accounts that the operations and requests touch, by account key. */
  openings: ReadonlyMap<string, Opening>;
  /** Those that have to stand earlier, with their amounts. */
  moves: readonly (OpeningMove & { amount: bigint })[];
  holders: readonly DueHolder[];
  /** Of the tokens that the operations and holders touch. */
  journals: Journals;
  /** Entries that the openings among `requests` do not include. */
  missedEntries: readonly MissedEntry[];
}

export function planWork(given: Work, settings: EffectSettings): Plan {
  const work = { ...given, openings: movedOpenings(given) };
  const tokens = new TokenWork(work.journals);
  const plan = emptyPlan();
  const quarantineIfUnpostable = (of: Problem['of'], id: string, act: () => void) => {
    try {
      act();
    } catch (error) {
      if (!(error instanceof Unpostable)) throw error;
      plan.problems.push({ of, id, problem: error.message });
    }
  };
  for (const request of work.requests) {
    quarantineIfUnpostable('posting_request', request.id, () => {
      planRequest(request, work.originals, plan);
      plan.postingRequestIds.push(request.id);
      correctMissedEntries(request, work, plan);
    });
  }
  for (const move of work.moves)
    for (const request of requestsOf(move, move.amount)) postOwn(request, plan);
  for (const due of work.operations) {
    const { id, inLedger } = due.operation;
    if (inLedger === isPosted(due.timesPosted) && !isRedated(due, work)) {
      plan.unchangedIds.push(id);
      continue;
    }
    quarantineIfUnpostable('operation', id, () => {
      if (!tokens.addWrite(due.operation, due.timesPosted + 1))
        planOperation(due, work, settings, plan);
      plan.operationIds.push(id);
    });
  }
  for (const holder of work.holders) {
    tokens.addHolder(holder);
    plan.holderIds.push(holder.id);
  }
  plan.movements.push(...tokens.movements());
  return plan;
}

/** The openings where they stand once they are moved. */
export function movedOpenings({
  openings,
  moves,
}: Pick<Work, 'openings' | 'moves'>): ReadonlyMap<string, Opening> {
  const moved = new Map(openings);
  for (const { account, seenAt, to } of moves)
    moved.set(accountKey(account), { account, seenAt, effectiveAt: to });
  return moved;
}

function correctMissedEntries(
  { id, account, effectiveAt, seen }: PostingRequest,
  { missedEntries, openings }: Work,
  plan: Plan,
): void {
  if (!seen) return;
  const opening = openings.get(accountKey(account)) ?? { account, effectiveAt, seenAt: seen.at };
  const missed = missedEntries.filter(({ postingRequestId }) => postingRequestId === id);
  for (const entry of missed) postOwn(correctionOf(opening, entry), plan);
}

/** Posts the operation, or reverses its posting; with another effective time both. */
function planOperation(due: DueOperation, work: Work, settings: EffectSettings, plan: Plan): void {
  const { operation, effects } = due;
  const { openings } = work;
  let { timesPosted } = due;
  if (isPosted(timesPosted)) {
    const original = originalOf(due, work);
    if (!original) throw new Unpostable('what it reverses is not in the ledger');
    planReversal(operation, original, { timesPosted, openings }, plan);
    timesPosted += 1;
  }
  if (!operation.inLedger) return;
  if (effects.length === 0) throw unpostable(operation, settings);
  planPosting(operation, effects, { timesPosted, openings }, plan);
}

function originalOf({ operation: { id } }: DueOperation, { originals }: Work) {
  return originals.find(({ operationId }) => operationId === id);
}

/** True when the operation takes effect at another time than what the ledger posted of it. */
function isRedated(due: DueOperation, work: Work): boolean {
  const original = due.operation.inLedger ? originalOf(due, work) : undefined;
  return (
    original !== undefined && original.effectiveAt !== effectiveTimeOf(due.operation).effectiveAt
  );
}

/** The reason why an operation has no effects. */
function unpostable(operation: Operation, settings: EffectSettings): Unpostable {
  try {
    effectsOf(operation, settings);
  } catch (error) {
    if (error instanceof Unpostable) return error;
    throw error;
  }
  return new Unpostable('this kind of write is not posted');
}

/** A posted transaction that a due reversal reverses. */
export interface Original
  extends Pick<Draft, 'operationId' | 'postingRequestId' | 'effectiveAt' | 'effectiveBasis'> {
  transactionId: bigint;
  effects: Effect[];
}

type Transaction = typeof transactions.$inferSelect;

/** A transaction without its number. */
export interface Draft extends Omit<Transaction, 'id' | 'batchId' | 'recordedAt' | 'entryCount'> {
  effects: readonly Effect[];
}

export interface Problem {
  of: 'operation' | 'posting_request' | 'observed_holder';
  id: string;
  problem: string;
}

export interface Plan {
  drafts: Draft[];
  movements: (NewMovement & TokenRef)[];
  /** Accounts that are opened without an entry. */
  opened: string[];
  operationIds: string[];
  /** Due operations that are posted or reversed already. */
  unchangedIds: string[];
  postingRequestIds: string[];
  /** Observed holders that are in the journal then. */
  holderIds: bigint[];
  /** Requests of the ledger itself, posted in the same batch. */
  ownRequests: PostingRequest[];
  problems: Problem[];
}

export function emptyPlan(): Plan {
  return {
    drafts: [],
    movements: [],
    opened: [],
    operationIds: [],
    unchangedIds: [],
    postingRequestIds: [],
    holderIds: [],
    ownRequests: [],
    problems: [],
  };
}

/** Plans what a request asks for. @throws Unpostable */
function planRequest(request: PostingRequest, originals: readonly Original[], plan: Plan): void {
  const { kind, account, counter, amount } = request;
  for (const name of [account, counter]) accountKind(name);
  if (amount === 0n) {
    if (kind !== 'opening') throw new Unpostable('the amount is zero');
    plan.opened.push(account);
    return;
  }
  const original = request.reverses
    ? originals.find(({ postingRequestId }) => postingRequestId === request.reverses)
    : undefined;
  if (request.reverses && !original) throw new Unpostable('what it reverses is not in the ledger');
  plan.drafts.push({
    kind,
    operationId: null,
    posting: null,
    postingRequestId: request.id,
    reverses: original?.transactionId ?? null,
    reasonType: null,
    reference: null,
    txAppNo: null,
    txLogNo: null,
    requestedBy: request.requestedBy,
    effectiveAt: request.effectiveAt,
    effectiveBasis: request.effectiveBasis,
    effects: [
      { account, amount },
      { account: counter, amount: -amount },
    ],
  });
}

/** Posts a request of the ledger itself. */
export function postOwn(request: PostingRequest, plan: Plan): void {
  planRequest(request, [], plan);
  plan.ownRequests.push(request);
  plan.postingRequestIds.push(request.id);
}

interface Before {
  /** How often the operation was posted or reversed. */
  timesPosted: number;
  /** The openings of its accounts by key. */
  openings: ReadonlyMap<string, Opening>;
}

/** Plans the posting of these effects, and the corrections of openings that it needs. */
export function planPosting(
  operation: Operation,
  effects: readonly Effect[],
  { timesPosted, openings }: Before,
  plan: Plan,
  time = effectiveTimeOf(operation),
): void {
  // No other write has effects.
  const kind = operation.kind as Draft['kind'];
  const posting = timesPosted + 1;
  plan.drafts.push({ ...draftOf(operation), kind, posting, effects, ...time });
  correctOpenings(operation, timesPosted, effects, openings, plan);
}

/** Plans the reversal of a posted transaction; it takes effect at the same time as that. */
export function planReversal(
  operation: Operation,
  { transactionId, effectiveAt, effectiveBasis, effects: posted }: Original,
  { timesPosted, openings }: Before,
  plan: Plan,
): void {
  const effects = posted.map(({ account, amount }) => ({ account, amount: -amount }));
  plan.drafts.push({
    ...draftOf(operation),
    kind: 'reversal',
    posting: timesPosted + 1,
    reverses: transactionId,
    effectiveAt,
    effectiveBasis,
    effects,
  });
  correctOpenings(operation, timesPosted, effects, openings, plan);
}

function correctOpenings(
  operation: Operation,
  timesPosted: number,
  effects: readonly Effect[],
  openings: ReadonlyMap<string, Opening>,
  plan: Plan,
): void {
  for (const correction of correctionsOf(operation, timesPosted, effects, openings))
    postOwn(correction, plan);
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
