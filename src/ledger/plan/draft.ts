/**
 * A plan of transactions and what it is made of: requests, postings and reversals of operations,
 * and the corrections of openings that these need. Pure.
 */
import { type Effect, type Operation, Unpostable } from '../../operations/operations.ts';
import { correctionsOf, type Opening } from '../opening-rule.ts';
import type { PostingRequest } from '../posting.ts';
import { accountKind, effectiveTimeOf } from '../posting.ts';
import type { transactions } from '../tables.ts';
import type { NewMovement } from '../tokens/journal.ts';
import type { TokenRef } from '../tokens/token-work.ts';

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
export function planRequest(
  request: PostingRequest,
  originals: readonly Original[],
  plan: Plan,
): void {
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
