/**
 * Runs evaluations, each all or nothing: several in one transaction, and if that fails one by one,
 * so that one that fails delays no other. A commit waits for the disk and costs as much as the
 * statements of an evaluation; alone, 60 evaluations a second were the most.
 */
import type { Db, Tx } from '../db/connect.ts';
import { lockLease } from '../db/leases.ts';
import { DatabaseError, isOutage, isTooSlow } from '../db/sqlstate.ts';
import { Failure } from '../kernel/errors.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Outbox } from '../outbox/outbox.ts';

export interface Evaluation {
  /** A single statement; false: there is nothing to evaluate any more. */
  claim?: (tx: Tx) => Promise<boolean>;
  /** Returns the events to emit. */
  evaluate: (tx: Tx) => Promise<EventDraft[]>;
  onFailure: (error: unknown) => unknown;
}

/** The lease that each transaction locks. */
interface Fence {
  name: string;
  fence: bigint;
}

/** Observations evaluated in one transaction. */
export const TOGETHER = 8;
/** The deadline of one transaction; a slow one must not delay the others for long. */
const EVALUATION_MS = 5_000;

/**
 * @param evaluations in their order; `TOGETHER` of observations at most
 * @throws errors that end the pass: the lease is lost or the database is away
 */
export async function runEvaluations(
  deps: { db: Db; outbox: Outbox },
  lease: Fence,
  evaluations: readonly Evaluation[],
): Promise<void> {
  const [first, ...others] = evaluations;
  if (!first) return;
  try {
    const work = (tx: Tx) => runAll(deps.outbox, tx, lease, evaluations);
    await deps.db.begin(work, { snapshot: true, deadlineMs: EVALUATION_MS });
  } catch (error) {
    // Without the lease or the database every evaluation fails; a timeout concerns only one.
    if (isLeaseLost(error) || (isOutage(error) && !isSlow(error))) throw error;
    if (others.length === 0) await first.onFailure(error);
    else for (const one of evaluations) await runEvaluations(deps, lease, [one]);
  }
}

/** Commits the events of the evaluations with them. */
async function runAll(
  outbox: Outbox,
  tx: Tx,
  { name, fence }: Fence,
  evaluations: readonly Evaluation[],
): Promise<void> {
  // Pipelined: one round trip.
  const claims = evaluations.map(({ claim }) => claim?.(tx));
  const [, ...claimed] = await Promise.all([lockLease(tx, name, fence), ...claims]);
  const drafts: EventDraft[] = [];
  for (const [i, { evaluate }] of evaluations.entries())
    if (claimed[i] !== false) drafts.push(...(await evaluate(tx)));
  await outbox.emit(tx, drafts);
}

/** An evaluation that took too long says nothing about the database. */
export function isSlow(error: unknown): boolean {
  return isTooSlow(error) || (error instanceof DatabaseError && error.code === 'DEADLINE');
}

export function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.code === 'lease_lost';
}
