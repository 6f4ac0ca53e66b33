/**
 * Plans the transactions for due operations and posting requests. What cannot be posted becomes a
 * problem with the reason and affects no other row. Pure.
 */
import {
  accountKey,
  type Effect,
  type EffectSettings,
  effectsOf,
  type Operation,
  Unpostable,
} from '../../operations/operations.ts';
import {
  correctionOf,
  isPosted,
  type MissedEntry,
  type Opening,
  type OpeningMove,
  requestsOf,
} from '../opening-rule.ts';
import type { PostingRequest } from '../posting.ts';
import { effectiveTimeOf } from '../posting.ts';
import { type DueHolder, type Journals, TokenWork } from '../tokens/token-work.ts';
import {
  emptyPlan,
  type Original,
  type Plan,
  type Problem,
  planPosting,
  planRequest,
  planReversal,
  postOwn,
} from './draft.ts';

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
