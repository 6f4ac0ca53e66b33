/**
 * What we asked of the service. A write is durable as an intent before it is sent, and its answer
 * is durable before the caller sees it; concurrent writes share commits. Nothing here ever sends
 * anything, and nothing here guesses: a state changes by an answer, by evidence that a later stage
 * brings, or by people.
 */
import type { Db, Tx } from '../db/connect.ts';
import { assertDaemonAlive, type Daemon } from '../db/leases.ts';
import { isAway, isTooSlow } from '../db/sqlstate.ts';
import type { Clock, Instant, pause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { type Conclusion, conclusionMove } from './conclusion.ts';
import { eventsOf } from './events.ts';
import type { Freeze, FreezeOrder } from './freeze-store.ts';
import * as freezes from './freeze-store.ts';
import { BOUNDS, groupCommit } from './intake/group-commit.ts';
import { lockNames, lockWrites, lockWritesShared, txNumberLock } from './intake/lock-store.ts';
import { makeRecording, type NewWrite, type Recorded } from './intake/record.ts';
import { makeUnconfirmedIntents } from './intake/unconfirmed.ts';
import type { Operation } from './operation.ts';
import { claim } from './queue/claim.ts';
import { endOverdue } from './queue/expire.ts';
import { insertSend } from './queue/send-store.ts';
import { lockSentLater, type QueuedSend } from './queue/store.ts';
import { type OperationsSettings, operationsDefaults } from './settings.ts';
import * as reads from './store.ts';
import * as store from './transition-store.ts';

export type { Conclusion } from './conclusion.ts';
export {
  type DecidedOutcome,
  type Decision,
  type Decisions,
  listDecisions,
  makeDecisions,
} from './decisions/service.ts';
export {
  accountKey,
  accountOfWallet,
  type Effect,
  type EffectInput,
  type EffectSettings,
  effectOn,
  effectsOf,
  effectsOrNone,
  ownWalletsOf,
  Unpostable,
  walletEffectsOf,
  walletKeysOf,
} from './effects.ts';
export { operationFields } from './events.ts';
export { type Freeze, type FreezeOrder, findFreeze } from './freeze-store.ts';
export type { NewWrite, Recorded } from './intake/record.ts';
export * from './operation.ts';
export { listSends, type Send } from './queue/send-store.ts';
export type { QueuedSend } from './queue/store.ts';
export {
  makeReportedOperations,
  REPORTS_MAX,
  type Report,
  type Reported,
  type ReportedOperations,
} from './reported/service.ts';
export { type OperationsSettings, operationsDefaults } from './settings.ts';
export {
  countOpen,
  findByIdempotencyKey,
  findOperation,
  findOperations,
  type KeyedOperation,
  listEffects,
  listForToken,
  listOperations,
  listTouching,
  listTransitions,
  listUnknown,
  type OperationFilter,
  type StoredAnswer,
  type Touching,
} from './store.ts';
export type { AddDuePostings, DuePosting, Move } from './transition-store.ts';

export interface Operations {
  /**
   * Makes the intent durable, in `sending` or `queued`, as soon as it can be told apart from what
   * is open; what holds its idempotency key comes first, whatever else would refuse it.
   * @throws Failure `frozen`, `key_limit`, `wallet_outcome_pending` (with `operation_ids`),
   * `idempotency_in_flight`, `shutting_down`, `lease_lost`, `too_many_requests`,
   * `database_unavailable`, `outcome_unknown` (with `operation_id`: it may have been queued)
   */
  record(write: NewWrite): Promise<Recorded>;
  /** Makes one more send durable, with the proof that allows it. */
  recordResend(operationId: string, after: string, deadlineAt: Instant): Promise<void>;
  /** Makes the outcome and its event durable. Answers the operation as it stands. */
  conclude(conclusion: Conclusion): Promise<Operation>;
  /** Changes states inside a later stage's transaction; answers those that really moved. */
  move(tx: Tx, moves: readonly store.Move[]): Promise<Operation[]>;
  /**
   * Moves queued writes to `sending`, in order per wallet, at most `limit`, and hands them out;
   * none while writes are frozen.
   */
  claimQueued(now: Instant, limit: number): Promise<QueuedSend[]>;
  /**
   * Ends a queued write, which then is never sent; its key stays used.
   * @throws Failure `not_found`, `forbidden` (another owner's), `conflict` (no longer queued)
   */
  cancel(id: string, by: { owner: string; admin: boolean }): Promise<Operation>;
  /**
   * Stops all writes: once this answers, no further intent commits. Answers the freeze that stands,
   * which may be an earlier one.
   */
  freeze(order: FreezeOrder): Promise<Freeze>;
  /** Releases all writes. @throws Failure `conflict` when nothing is frozen */
  unfreeze(order: FreezeOrder): Promise<Freeze>;
  currentFreeze(): Promise<Freeze | undefined>;
  /** New writes that touch this wallet (lower case) wait until then, or until `unhold`. */
  hold(tx: Tx, walletKey: string, until: Instant): Promise<void>;
  unhold(tx: Tx, walletKey: string): Promise<void>;
  /**
   * One pass: sends whose deadline and daemon are both gone become `unknown`; queued writes that
   * expired, and intents whose callers never heard that they were recorded, are rejected as not
   * sent. Answers how many.
   */
  runOnce(now: Instant): Promise<number>;
  /** Releases what waits to be recorded, as `shutting_down`; nothing waits from then on. */
  close(): void;
}

interface Deps {
  /** How writes wait; tests pass their own. */
  pause?: typeof pause;
  settings?: OperationsSettings;
  db: Db;
  clock: Clock;
  ids: Ids;
  daemon: Daemon;
  outbox: Outbox;
  /** Tells the ledger what became due, inside the transaction that makes it due. */
  addDuePostings: store.AddDuePostings;
}

/** The operations of one daemon. */
export function makeOperations(parts: Deps): Operations {
  const { db, clock, daemon, addDuePostings, settings = operationsDefaults } = parts;
  const unconfirmed = makeUnconfirmedIntents();
  const recording = makeRecording({ ...parts, settings, unconfirmed });
  const outcomes = outcomeCommits(parts);
  const stopped = <T>(work: (tx: Tx) => Promise<T>) =>
    db.begin(async (tx) => {
      await lockWrites(tx);
      return work(tx);
    });
  return {
    record: recording.record,
    recordResend: (operationId, after, deadlineAt) => resend(parts, operationId, after, deadlineAt),
    async conclude(conclusion) {
      const moved = await outcomes.add(conclusion);
      const { operationId } = conclusion;
      const operation = moved ?? (await db.single((q) => reads.findOperation(q, operationId)));
      if (!operation) throw new Failure('internal', 'the operation is gone');
      if (operation.state !== 'sending' && operation.state !== 'unknown')
        recording.left([operation.id]);
      return operation;
    },
    move: (tx, moves) =>
      moves.length === 0 ? Promise.resolve([]) : store.applyTransitions(tx, moves, addDuePostings),
    claimQueued: (now, limit) =>
      db.begin(async (tx) => {
        await assertDaemonAlive(tx, daemon, now);
        const by = { daemonId: daemon.id, epoch: daemon.epoch };
        // A pass may take long: what it sends now is sent now, and what expired meanwhile is over.
        return claim(tx, settings, { now: Math.max(now, clock.now()), limit, ...by });
      }),
    cancel: (id, by) => cancel(parts, id, by),
    freeze: (order) =>
      stopped(async (tx) => {
        const standing = await freezes.findFreeze(tx);
        return standing ?? freezes.insertFreeze(tx, order, clock.now());
      }),
    unfreeze: (order) =>
      stopped(async (tx) => {
        const released = await freezes.releaseFreeze(tx, order, clock.now());
        if (!released) throw new Failure('conflict', 'writes are not frozen');
        return released;
      }),
    currentFreeze: () => freezes.findFreeze(db),
    hold: freezes.upsertHold,
    unhold: freezes.deleteHold,
    runOnce: (now) => endOverdue({ ...parts, unconfirmed }, now),
    close: recording.close,
  };
}

/** @throws Failure `frozen`, or `lease_lost` when it may not leave again */
function resend(
  { db, clock, daemon }: Deps,
  operationId: string,
  after: string,
  deadlineAt: Instant,
): Promise<void> {
  const startedAt = clock.now();
  const by = { daemonId: daemon.id, epoch: daemon.epoch };
  return db.begin(async (tx) => {
    await lockWritesShared(tx);
    if (await freezes.findFreeze(tx)) throw new Failure('frozen');
    await assertDaemonAlive(tx, daemon, startedAt);
    const send = { operationId, after, deadlineAt, startedAt, ...by };
    if (!(await insertSend(tx, send)))
      throw new Failure('lease_lost', 'this write may not leave again');
  });
}

async function cancel(
  { db, clock, daemon, addDuePostings }: Deps,
  id: string,
  by: { owner: string; admin: boolean },
): Promise<Operation> {
  const operation = await reads.findOperation(db, id);
  if (!operation) throw new Failure('not_found');
  if (!by.admin && operation.owner !== by.owner)
    throw new Failure('forbidden', 'the write belongs to another owner');
  const cause = `cancelled by ${by.owner}`;
  const at = clock.now();
  const cancelled = { id, to: 'cancelled', at, cause, daemonId: daemon.id } as const;
  const [moved] = await db.begin((tx) => store.applyTransitions(tx, [cancelled], addDuePostings));
  if (!moved) throw new Failure('conflict', 'it does not wait in the queue');
  return moved;
}

/** Outcomes share commits; each with its event. */
function outcomeCommits({ db, daemon, outbox, addDuePostings }: Deps) {
  return groupCommit<Conclusion, Operation | undefined>(
    async (group) => {
      // What is said twice is said once.
      const first = new Map(group.toReversed().map((said) => [said.operationId, said]));
      const moves = [...first.values()].map((said) => conclusionMove(said, daemon.id));
      const numbers = moves.flatMap(({ txAppNo, txLogNo }) =>
        txAppNo == null || txLogNo == null ? [] : [txNumberLock(txAppNo, txLogNo)],
      );
      const moved = await db.begin(async (tx) => {
        // Sent together: one round trip. Of two answers with one number the later sees the earlier.
        const locked = lockNames(tx, numbers);
        const [, operations] = await Promise.all([
          locked,
          moveConcluded(tx, moves, addDuePostings),
        ]);
        await outbox.emit(tx, operations.flatMap(eventsOf));
        return operations;
      });
      return group.map((c) => moved.find((operation) => operation.id === c.operationId));
    },
    BOUNDS,
    (error) => !isAway(error) && !isTooSlow(error),
  );
}

/**
 * Moves by what answers say. What never left may leave again: a repeat of that word must not end,
 * or queue once more, a send that began since.
 */
async function moveConcluded(
  tx: Tx,
  moves: store.Move[],
  addDuePostings: store.AddDuePostings,
): Promise<Operation[]> {
  const neverLeft = moves.filter((move) => move.requeue);
  if (neverLeft.length === 0) return store.applyTransitions(tx, moves, addDuePostings);
  const later = await lockSentLater(tx, neverLeft);
  return store.applyTransitions(
    tx,
    moves.filter((move) => !move.requeue || !later.has(move.id)),
    addDuePostings,
  );
}
