/**
 * Posts writes again whose effects are others than what they posted: under another fee rule, or
 * from the wallet of an operator that had none. Each is reversed and posted again at the time of
 * its first posting, in one batch.
 */
import type { Queryable, Tx } from '../db/connect.ts';
import type { Clock } from '../kernel/clock.ts';
import {
  accountKey,
  addDuePostings,
  type Effect,
  FEE_EXCEEDS,
  type Operation,
} from '../operations/operations.ts';
import { listOriginals, readHead, writePlan } from './batch.ts';
import {
  isPosted,
  lateCorrectionsOf,
  type Opening,
  type OpeningMove,
  readOpenings,
  requestsOf,
} from './openings.ts';
import {
  emptyPlan,
  movedOpenings,
  type Original,
  type Plan,
  planPosting,
  planReversal,
  postOwn,
} from './plan.ts';
import { effectiveTimeOf } from './posting.ts';

/** A write with other effects than it posted. */
export interface Wrong {
  write: Operation;
  /** Its right effects; none if it cannot be posted then. */
  effects: readonly Effect[];
  /** How often it was posted or reversed so far. */
  timesPosted: number;
  /** Why its posting is quarantined; undefined if none is due. */
  dueReason: string | undefined;
  /** What it posted last, if it is posted. */
  original: Original | undefined;
}

/** What these operations posted last, if they are posted. @param times how often each was */
export function findPosted(tx: Tx, times: ReadonlyMap<string, number>): Promise<Original[]> {
  const posted = [...times]
    .filter(([, n]) => isPosted(n))
    .map(([id, posting]) => ({ id, posting }));
  return listOriginals(tx, posted);
}

/** Posts them again, and answers how many were, or were only reversed. */
export async function repost(tx: Tx, wrong: readonly Wrong[], clock: Clock): Promise<number> {
  const entries = wrong.flatMap(({ write, effects, original }) => {
    const { effectiveAt } = original ?? effectiveTimeOf(write);
    return write.inLedger ? effects.map(({ account }) => ({ account, effectiveAt })) : [];
  });
  const reversed = wrong.flatMap(({ original }) => original?.effects ?? []);
  const accounts = [...entries, ...reversed].map(({ account }) => account);
  const { plan, reposted, unpostableIds } = planRepost(
    wrong,
    await readOpenings(tx, accounts, entries),
  );
  if (reposted === 0) return 0;
  const { recordedAt: dueAt } = await writePlan(tx, plan, await readHead(tx), clock.now());
  await addDuePostings(
    tx,
    unpostableIds.map((operationId) => ({ operationId, dueAt, quarantineReason: FEE_EXCEEDS })),
  );
  return reposted;
}

/** Why the postings of these operations wait, by operation id; null: they are about to be made. */
export async function listDueReasons(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, string | null>> {
  const rows = await db.sql<{ operationId: string; quarantineReason: string | null }[]>`
    select operation_id, quarantine_reason from tallyhook.due_postings
    where operation_id = any(${ids as string[]}::text[])`;
  return new Map(rows.map((row) => [row.operationId, row.quarantineReason]));
}

interface Openings {
  openings: ReadonlyMap<string, Opening>;
  moves: readonly (OpeningMove & { amount: bigint })[];
}

/** What the batch posts, and the operations that cannot be posted any more. */
interface Repost {
  plan: Plan;
  /** How many operations were posted again, or only reversed. */
  reposted: number;
  unpostableIds: string[];
}

/**
 * A posted operation is reversed and posted again, at the time of the first posting, in one batch.
 * Its openings are corrected as for any late posting, so that the balances become those of a ledger
 * that had the rule from the beginning.
 */
function planRepost(wrong: readonly Wrong[], given: Openings): Repost {
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
