/**
 * Operations: the writes asked of the service. An intent is durable before it is sent, and its
 * outcome before the caller gets the answer. This folder sends nothing itself. A state changes only
 * by an answer, by evidence of a later stage, or by a decision.
 */
import type { Tx } from '../db/connect.ts';
import type { Context } from '../db/context.ts';
import { assertProved, type Daemon, type ProveDeps, whenProved } from '../db/leases.ts';
import { type Instant, pause as kernelPause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { beginSeries } from '../kernel/telemetry/metrics.ts';
import type { OwnOutbox } from '../outbox/outbox.ts';
import { STATES } from '../resources/operations/operation.ts';
import { type Conclusion, outcomeCommits } from './conclusion.ts';
import type { Freeze, FreezeOrder } from './freezes.ts';
import * as freezes from './freezes.ts';
import { lockWrites, lockWritesShared } from './intake/locks.ts';
import { makeIntentRecorder, type NewWrite, type Recorded } from './intake/record.ts';
import { KINDS, type Kind, type Operation } from './operation.ts';
import { claim, type QueuedSend } from './queue/claim.ts';
import { endOverdue, makeUnconfirmedIntents } from './queue/expire.ts';
import { insertSend } from './queue/sends.ts';
import { type OperationsSettings, operationsDefaults } from './settings.ts';
import * as reads from './store.ts';
import * as store from './transitions.ts';

export type { Conclusion } from './conclusion.ts';
export {
  assertDecidable,
  countProposed,
  type Decisions,
  decisionEvidence,
  lockOperation,
  makeDecisions,
} from './decisions/decisions.ts';
export {
  approve,
  type Decision,
  listDecisions,
  newestDecisions,
  type Person,
  propose,
} from './decisions/two-owners.ts';
export {
  addDuePostings,
  lockDuePostings,
  quarantineDuePosting,
  releaseDuePosting,
  removeDuePostings,
} from './due-postings.ts';
export { findWithEffects } from './effects/due-operations.ts';
export * from './effects/effects.ts';
export * from './effects/fee-rule.ts';
export {
  aboutOperation,
  endedEvent,
  operationFields,
  operationRow,
  resolvedEvent,
} from './events.ts';
export {
  type FreezeCause,
  findCurrent,
  findFreeze,
  findLastRestore,
  freezeWrites,
  hasQueued,
  insertUsedSinceBackup,
  releaseRestored,
  type UsedSinceBackup,
} from './freezes.ts';
export { imageOf } from './intake/pre-image.ts';
export type { NewWrite, Recorded } from './intake/record.ts';
export { countOpen, listOperations, listWriteActivity } from './lists.ts';
export * from './operation.ts';
export type { QueuedSend } from './queue/claim.ts';
export { hasSend, listSends } from './queue/sends.ts';
export { hasOpen, hasQueuedWrites, hasUnknown, maybeOverdue } from './queue/waiting.ts';
export { type Report, transactionKey } from './reported/plan.ts';
export {
  type Checked,
  makeReportedOperations,
  REPORTS_MAX,
  type Reported,
  type ReportedOperations,
} from './reported/reported.ts';
export { type OperationsSettings, operationsDefaults } from './settings.ts';
export {
  changeFees,
  findByIdempotencyKey,
  findOperation,
  findOperations,
  type KeyedOperation,
  listEffects,
  listForToken,
  listLines,
  listNotExecuted,
  listUnknown,
  listUnknownOn,
  listUnsettledGives,
  lockOperations,
  lockWithFees,
  renameAccount,
  type WriteWithFee,
} from './store.ts';
export { listTransitions, type Move, numberEvents, pruneUsage, waitsForOf } from './transitions.ts';

export interface Operations {
  /**
   * Makes the intent durable, in `sending` or `queued`, as soon as it does not conflict with an
   * open write. An operation with the same idempotency key is returned before any other check.
   * @throws Failure `frozen`, `key_limit`, `wallet_outcome_pending` (with `operation_ids`),
   * `idempotency_in_flight`, `shutting_down`, `too_many_requests`, `database_unproved`,
   * `database_unavailable`, `outcome_unknown` (with `operation_id`: it may have been queued)
   */
  record(write: NewWrite): Promise<Recorded>;
  /** Makes one more send durable. @param after why an earlier send allows it */
  recordResend(operationId: string, after: string, deadlineAt: Instant): Promise<void>;
  /** Makes the outcome and its event durable; returns the operation in its current state. */
  conclude(conclusion: Conclusion): Promise<Operation>;
  /** Changes states inside the caller's transaction; returns the operations that changed. */
  move(tx: Tx, moves: readonly store.Move[]): Promise<Operation[]>;
  /** Notes what executed operations wait for before they settle, unless it is noted already. */
  hold(tx: Tx, waitsFor: ReadonlyMap<string, store.WaitsFor>, now: Instant): Promise<void>;
  /** Moves the effective time of an executed operation and of what the ledger posts of it. */
  redate(tx: Tx, redating: store.Redating, now: Instant): Promise<void>;
  /**
   * Moves at most `limit` queued writes to `sending`, in order per wallet and token; none of these
   * kinds, none before its retry is due, and none while writes are frozen.
   */
  claimQueued(now: Instant, limit: number, except?: readonly Kind[]): Promise<QueuedSend[]>;
  /**
   * Cancels a queued write; its idempotency key stays used.
   * @throws Failure `not_found`, `forbidden` (another owner's), `conflict` (no longer queued)
   */
  cancel(id: string, by: { owner: string; admin: boolean }): Promise<Operation>;
  /**
   * Stops all writes: after it returns, no further intent commits. Returns the current freeze,
   * which may be an earlier one.
   */
  freeze(order: FreezeOrder): Promise<Freeze>;
  /** Ends the freeze of people. @throws Failure `conflict` when there is none, or a restored one */
  unfreeze(order: FreezeOrder): Promise<Freeze>;
  currentFreeze(): Promise<Freeze | undefined>;
  /**
   * One pass: abandoned sends become `unknown`; expired queued writes and unconfirmed intents are
   * rejected as not sent. Returns how many changed.
   */
  runOnce(now: Instant): Promise<number>;
  /** Ends all waits of `record` with `shutting_down`. */
  close(): void;
}

interface Options extends store.TransitionDeps, Pick<Context, 'db' | 'clock' | 'ids'> {
  pause?: typeof kernelPause;
  settings?: OperationsSettings;
  daemon: Daemon;
  outbox: Pick<OwnOutbox, 'emit' | 'prepare' | 'note'>;
  /** Proves the database again; see `whenProved`. */
  prove: ProveDeps['prove'];
}
type Deps = Options & ProveDeps;

export function makeOperations(options: Options): Operations {
  const deps = { pause: kernelPause, ...options };
  const { db, clock, daemon, metrics, settings = operationsDefaults } = deps;
  beginSeries(metrics.operations, { kind: KINDS, state: STATES });
  const unconfirmed = makeUnconfirmedIntents();
  const recording = makeIntentRecorder({ ...deps, settings, unconfirmed });
  const outcomes = outcomeCommits(deps);
  return {
    record: recording.record,
    recordResend: (operationId, after, deadlineAt) => resend(deps, operationId, after, deadlineAt),
    async conclude(conclusion) {
      const { operationId } = conclusion;
      const sent = recording.sent(operationId);
      const moved = await outcomes.add({ ...conclusion, sent });
      const operation = moved ?? (await db.single((q) => reads.findOperation(q, operationId)));
      if (!operation) throw new Failure('internal', 'the operation does not exist');
      recording.concluded(operation);
      return operation;
    },
    move: (tx, moves) =>
      moves.length === 0 ? Promise.resolve([]) : store.applyTransitions(tx, moves, deps),
    hold: store.hold,
    redate: store.redate,
    claimQueued: (now, limit, except = []) =>
      asProved(deps, async (tx) => {
        // The pass may have begun long ago; sends and expiry go by the present.
        const present = { now: Math.max(now, clock.now()), limit, except };
        const claimed = await claim(tx, { settings, metrics, daemonId: daemon.id }, present);
        const last = claimed.at(-1);
        if (last) rememberSend(tx, daemon, last.id, last.n);
        return claimed;
      }),
    cancel: (id, by) => cancel(deps, id, by),
    freeze: (order) => db.begin((tx) => freezes.freezeWrites(tx, order, 'ordered', clock.now())),
    unfreeze: (order) =>
      db.begin(async (tx) => {
        await lockWrites(tx);
        const released = await freezes.releaseFreeze(tx, order, clock.now());
        if (!released) throw new Failure('conflict', notFrozen(await freezes.findFreeze(tx)));
        return released;
      }),
    currentFreeze: () => freezes.findFreeze(db),
    runOnce: (now) => endOverdue({ ...deps, unconfirmed }, now),
    close: recording.close,
  };
}

/** A transaction that acts as this daemon. @throws Failure `database_unproved` */
function asProved<T>(deps: Deps, work: (tx: Tx) => Promise<T>): Promise<T> {
  const { db, daemon, clock } = deps;
  return whenProved(deps, () =>
    db.begin(async (tx) => {
      await assertProved(tx, daemon, clock.now());
      return work(tx);
    }),
  );
}

function rememberSend(tx: Tx, daemon: Daemon, operationId: string, n: number): void {
  tx.afterCommit(() => {
    daemon.lastSend = { operationId, n };
  });
}

function notFrozen(restored: Freeze | undefined): string {
  return restored ? `${restored.reason}; npx tallyhook doctor --restored` : 'writes are not frozen';
}

/** @throws Failure `frozen`, or `lease_lost` when it may not be sent again */
function resend(
  deps: Deps,
  operationId: string,
  after: string,
  deadlineAt: Instant,
): Promise<void> {
  const { clock, daemon } = deps;
  return asProved(deps, async (tx) => {
    await lockWritesShared(tx);
    if (await freezes.findFreeze(tx)) throw new Failure('frozen');
    const n = await insertSend(tx, {
      operationId,
      after,
      deadlineAt,
      startedAt: clock.now(),
      daemonId: daemon.id,
    });
    if (n === undefined) throw new Failure('lease_lost', 'this write may not be sent again');
    rememberSend(tx, daemon, operationId, n);
  });
}

async function cancel(
  deps: Deps,
  id: string,
  by: { owner: string; admin: boolean },
): Promise<Operation> {
  const { db, clock, daemon } = deps;
  const operation = await reads.findOperation(db, id);
  if (!operation) throw new Failure('not_found');
  if (!by.admin && operation.owner !== by.owner)
    throw new Failure('forbidden', 'the write belongs to another owner');
  return asProved(deps, async (tx) => {
    if (await freezes.isMaybeSent(tx, id))
      throw new Failure('conflict', 'it may have been sent before the database was restored');
    const cause = `cancelled by ${by.owner}`;
    const at = clock.now();
    const cancelled = { id, to: 'cancelled', at, cause, daemonId: daemon.id } as const;
    const [moved] = await store.applyTransitions(tx, [cancelled], deps);
    if (!moved) throw new Failure('conflict', 'it is not in the request queue');
    return moved;
  });
}
