/**
 * Plans the transactions for due operations and posting requests. What cannot be posted becomes a
 * problem with the reason and affects no other row. Pure.
 */
import type { Instant } from '../kernel/clock.ts';
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
} from './opening-rule.ts';
import {
  accountKind,
  effectiveTimeOf,
  reverseOf,
  type TokenMove,
  tokenMoveOf,
  tokenOpeningOf,
} from './posting.ts';
import type { PostingRequest } from './posting-request.ts';

/** A posted transaction that a due reversal reverses. */
export interface Original {
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
  /** How many of each token exist in the ledger or were minted by us, by `tokenKey`. */
  tokens: ReadonlyMap<string, number>;
  /** Entries that the openings among `requests` do not include. */
  missedEntries: readonly MissedEntry[];
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

/** An NFT movement to be recorded; an opening is not of an operation. */
export interface Movement extends TokenMove {
  operationId: string | null;
  posting: number | null;
  txHash: string | null;
  effectiveAt: Instant;
}

export interface Problem {
  of: 'operation' | 'posting_request';
  id: string;
  problem: string;
}

export interface Plan {
  drafts: Draft[];
  movements: Movement[];
  /** Accounts that are opened without an entry. */
  opened: string[];
  operationIds: string[];
  /** Due operations that are posted or reversed already. */
  unchangedIds: string[];
  postingRequestIds: string[];
  /** Requests of the ledger itself, posted in the same batch. */
  ownRequests: PostingRequest[];
  problems: Problem[];
}

export function planWork(given: Work, settings: EffectSettings): Plan {
  const work = { ...given, openings: movedOpenings(given), tokens: new Map(given.tokens) };
  const plan: Plan = {
    drafts: [],
    movements: [],
    opened: [],
    operationIds: [],
    unchangedIds: [],
    postingRequestIds: [],
    ownRequests: [],
    problems: [],
  };
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
    if (inLedger === isPosted(due.timesPosted)) {
      plan.unchangedIds.push(id);
      continue;
    }
    quarantineIfUnpostable('operation', id, () => {
      planOperation(due, work, settings, plan);
      plan.operationIds.push(id);
    });
  }
  return plan;
}

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

/** The openings where they stand once they are moved. */
function movedOpenings({ openings, moves }: Work): ReadonlyMap<string, Opening> {
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

/** Posts a request of the ledger itself. */
function postOwn(request: PostingRequest, plan: Plan): void {
  planRequest(request, [], plan);
  plan.ownRequests.push(request);
  plan.postingRequestIds.push(request.id);
}

function planOperation(
  { operation, effects, timesPosted }: DueOperation,
  { originals, openings, tokens }: Work & { tokens: Map<string, number> },
  settings: EffectSettings,
  plan: Plan,
): void {
  const { id, txHash, inLedger } = operation;
  const posting = timesPosted + 1;
  const token = tokenMoveOf(operation);
  if (token) {
    const { effectiveAt } = effectiveTimeOf(operation);
    const opening = inLedger ? tokenOpeningOf(token, tokens) : undefined;
    if (opening) {
      const before = {
        operationId: null,
        posting: null,
        txHash: null,
        effectiveAt: effectiveAt - 1,
      };
      plan.movements.push({ ...opening, ...before });
    }
    const move = inLedger ? token : reverseOf(token);
    plan.movements.push({ ...move, operationId: id, posting, txHash, effectiveAt });
  } else if (inLedger) {
    if (effects.length === 0) throw unpostable(operation, settings);
    const { kind } = operation;
    plan.drafts.push({
      ...draftOf(operation),
      kind,
      posting,
      effects,
      ...effectiveTimeOf(operation),
    });
    correctOpenings(operation, timesPosted, effects, openings, plan);
  } else {
    const original = originals.find(({ operationId }) => operationId === id);
    if (!original) throw new Unpostable('what it reverses is not in the ledger');
    const { transactionId, effectiveAt, effectiveBasis } = original;
    const reversed = original.effects.map(({ account, amount }) => ({ account, amount: -amount }));
    plan.drafts.push({
      ...draftOf(operation),
      kind: 'reversal',
      posting,
      reverses: transactionId,
      // The write was never applied, so its reversal takes effect at the same time as the original.
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
    postOwn(correction, plan);
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
