/**
 * Plans what another fee rule changes in the ledger: a posted operation is reversed and posted
 * again, at the time of the first posting, in one batch. Its openings are corrected as for any
 * late posting, so that the balances become those of a ledger that had the rule from the beginning.
 * Pure.
 */
import {
  accountKey,
  type Effect,
  FEE_EXCEEDS,
  type WriteWithFee,
} from '../../operations/operations.ts';
import {
  isPosted,
  lateCorrectionsOf,
  type Opening,
  type OpeningMove,
  requestsOf,
} from '../opening-rule.ts';
import {
  emptyPlan,
  type Original,
  type Plan,
  planPosting,
  planReversal,
  postOwn,
} from '../plan/draft.ts';
import { movedOpenings } from '../plan/plan.ts';

/** A write under the wrong rule. */
export interface Wrong {
  write: WriteWithFee;
  /** Its effects under the right rule; none if it cannot be posted then. */
  effects: readonly Effect[];
  /** How often it was posted or reversed so far. */
  timesPosted: number;
  /** Why its posting is quarantined; undefined if none is due. */
  dueReason: string | undefined;
  /** What it posted last, if it is posted. */
  original: Original | undefined;
}

interface Openings {
  openings: ReadonlyMap<string, Opening>;
  moves: readonly (OpeningMove & { amount: bigint })[];
}

/** What the batch posts, and the operations that the right rule makes impossible to post. */
export interface Repost {
  plan: Plan;
  /** How many operations were posted again, or only reversed. */
  reposted: number;
  unpostableIds: string[];
}

export function planRepost(wrong: readonly Wrong[], given: Openings): Repost {
  const openings = movedOpenings(given);
  const plan = emptyPlan();
  const done: Repost = { plan, reposted: 0, unpostableIds: [] };
  for (const move of given.moves)
    for (const request of requestsOf(move, move.amount)) postOwn(request, plan);
  for (const { write, effects, timesPosted, dueReason, original } of wrong) {
    if (!write.inLedger) continue;
    if (original && isPosted(timesPosted)) {
      if (isSame(original.effects, effects)) continue;
      done.reposted += 1;
      planReversal(write, original, { timesPosted, openings }, plan);
      const { effectiveAt, effectiveBasis } = original;
      const before = { timesPosted: timesPosted + 1, openings };
      if (effects.length === 0) done.unpostableIds.push(write.id);
      else planPosting(write, effects, before, plan, { effectiveAt, effectiveBasis });
    } else if (dueReason === FEE_EXCEEDS && effects.length > 0) {
      // Openings did not count it, because it had no effects.
      done.reposted += 1;
      planPosting(write, effects, { timesPosted, openings: new Map() }, plan);
      for (const correction of lateCorrectionsOf(write, timesPosted, effects, openings))
        postOwn(correction, plan);
      plan.operationIds.push(write.id);
    }
  }
  return done;
}

function isSame(some: readonly Effect[], others: readonly Effect[]): boolean {
  const keys = (effects: readonly Effect[]) =>
    effects
      .map(({ account, amount }) => `${accountKey(account)} ${amount}`)
      .sort()
      .join();
  return keys(some) === keys(others);
}
