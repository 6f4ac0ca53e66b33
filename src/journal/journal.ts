/**
 * What we asked of the service. A write is durable as an intent before it is sent, and its answer
 * is durable before the caller sees it; concurrent writes share commits. Nothing here ever sends
 * anything, and nothing here guesses: a state changes by an answer, by evidence that a later stage
 * brings, or by people.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Daemon, daemonAlive } from '../db/leases.ts';
import { isAway } from '../db/sqlstate.ts';
import type { Clock, Instant, pause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { type Conclusion, conclusionMove } from './conclusion.ts';
import type { Freeze, FreezeOrder } from './freeze-store.ts';
import * as freezes from './freeze-store.ts';
import { groupCommit } from './group-commit.ts';
import { lockGo, lockNames, lockStop, numberName } from './lock-store.ts';
import type { Operation } from './operation.ts';
import { operationFields } from './operation-event.ts';
import { claim } from './queue.ts';
import { listExpired, type QueuedSend } from './queue-store.ts';
import * as reads from './read-store.ts';
import { makeRecording, type NewWrite, type Recorded } from './recording.ts';
import { insertSend } from './send-store.ts';
import { type JournalSettings, journalDefaults } from './settings.ts';
import * as store from './store.ts';

export type { Conclusion } from './conclusion.ts';
export {
  type DecidedOutcome,
  type Decision,
  type Decisions,
  listDecisions,
  makeDecisions,
} from './decisions.ts';
export {
  type Elsewhere,
  makeElsewhere,
  REPORTS_MAX,
  type Report,
  type Reported,
} from './elsewhere.ts';
export { type Freeze, type FreezeOrder, findFreeze } from './freeze-store.ts';
export * from './operation.ts';
export { operationFields } from './operation-event.ts';
export type { QueuedSend } from './queue-store.ts';
export {
  countOpen,
  findByIdempotencyKey,
  findOperation,
  type KeyedOperation,
  listForToken,
  listInStates,
  listOperations,
  listTouching,
  listTransitions,
  type OperationFilter,
  type StoredAnswer,
  type Touching,
} from './read-store.ts';
export type { NewWrite, Recorded } from './recording.ts';
export { listSends, type Send } from './send-store.ts';
export { type JournalSettings, journalDefaults, type Touched } from './settings.ts';
export { listPostingsDue, type Move, markPosted, setAside } from './store.ts';

export interface Journal {
  /**
   * Makes the intent durable, in `sending` or `queued`, as soon as it can be told apart from what
   * is open; what holds its idempotency key comes first, whatever else would refuse it.
   * @throws Failure `frozen`, `key_limit`, `wallet_outcome_pending` (with `operation_ids`),
   * `idempotency_in_flight`, `shutting_down`, `lease_lost`, `database_unavailable`
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
   * One pass: sends whose deadline and daemon are both gone become `unknown`, queued writes that
   * expired are rejected. Answers how many.
   */
  runOnce(now: Instant): Promise<number>;
  /** Releases what waits to be recorded, as `shutting_down`; nothing waits from then on. */
  close(): void;
}

/** A send this long past its deadline is called unknown even if its daemon shows signs of life. */
const ABANDONED_GRACE_MS = 60_000;
const OVER_MAX = 100;
const BOUNDS = { rowsMax: 64, queueMax: 5_000, lanes: 2 };

interface Parts {
  /** How this journal waits; a test may keep its own time. */
  pause?: typeof pause;
  settings?: JournalSettings;
  db: Db;
  clock: Clock;
  ids: Ids;
  daemon: Daemon;
  outbox: Outbox;
}

/** The journal of one daemon. */
export function makeJournal(parts: Parts): Journal {
  const { db, clock, daemon, outbox, settings = journalDefaults } = parts;
  const recording = makeRecording({ ...parts, settings });
  const outcomes = outcomeCommits(parts);
  const stopped = <T>(work: (tx: Tx) => Promise<T>) =>
    db.begin(async (tx) => {
      await lockStop(tx);
      return work(tx);
    });
  return {
    record: recording.record,
    recordResend: (operationId, after, deadlineAt) => resend(parts, operationId, after, deadlineAt),
    async conclude(conclusion) {
      const moved = await outcomes.add(conclusion);
      const operation = moved ?? (await reads.findOperation(db, conclusion.operationId));
      if (!operation) throw new Failure('internal', 'the operation is gone');
      if (operation.state !== 'sending' && operation.state !== 'unknown')
        recording.left([operation.id]);
      return operation;
    },
    move: (tx, moves) => (moves.length === 0 ? Promise.resolve([]) : store.moveStates(tx, moves)),
    claimQueued: (now, limit) =>
      db.begin(async (tx) => {
        await daemonAlive(tx, daemon, now);
        const by = { daemonId: daemon.id, epoch: daemon.epoch };
        return claim(tx, settings, { now, limit, ...by });
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
    runOnce: async (now) => {
      const over = [...(await abandoned(parts, now)), ...(await expired(parts, now))];
      if (over.length === 0) return 0;
      const moved = await db.begin((tx) => moveAndTell(tx, outbox, over));
      return moved.length;
    },
    close: recording.close,
  };
}

/** @throws Failure `frozen`, or `lease_lost` when it may not leave again */
function resend(
  { db, clock, daemon }: Parts,
  operationId: string,
  after: string,
  deadlineAt: Instant,
): Promise<void> {
  const startedAt = clock.now();
  const by = { daemonId: daemon.id, epoch: daemon.epoch };
  return db.begin(async (tx) => {
    await lockGo(tx);
    if (await freezes.findFreeze(tx)) throw new Failure('frozen');
    await daemonAlive(tx, daemon, startedAt);
    const send = { operationId, after, deadlineAt, startedAt, ...by };
    if (!(await insertSend(tx, send)))
      throw new Failure('lease_lost', 'this write may not leave again');
  });
}

async function cancel(
  { db, clock, daemon }: Parts,
  id: string,
  by: { owner: string; admin: boolean },
): Promise<Operation> {
  const operation = await reads.findOperation(db, id);
  if (!operation) throw new Failure('not_found');
  if (!by.admin && operation.owner !== by.owner)
    throw new Failure('forbidden', 'the write belongs to another owner');
  const cause = `cancelled by ${by.owner}`;
  const at = clock.now();
  const [moved] = await db.begin((tx) =>
    store.moveStates(tx, [{ id, to: 'cancelled', at, cause, daemonId: daemon.id }]),
  );
  if (!moved) throw new Failure('conflict', 'it does not wait in the queue');
  return moved;
}

/** Outcomes share commits; each with its event. */
function outcomeCommits({ db, daemon, outbox }: Parts) {
  return groupCommit<Conclusion, Operation | undefined>(
    async (group) => {
      const moves = group.map((conclusion) => conclusionMove(conclusion, daemon.id));
      const numbers = moves.flatMap(({ txAppNo, txLogNo }) =>
        txAppNo == null || txLogNo == null ? [] : [numberName(txAppNo, txLogNo)],
      );
      const moved = await db.begin(async (tx) => {
        // Sent together: one round trip. Of two answers with one number the later sees the earlier.
        const [, operations] = await Promise.all([
          lockNames(tx, numbers),
          store.moveStates(tx, moves),
        ]);
        await outbox.emit(tx, operations.flatMap(eventOf));
        return operations;
      });
      return group.map((c) => moved.find((operation) => operation.id === c.operationId));
    },
    BOUNDS,
    (error) => !isAway(error),
  );
}

/** What nobody can answer any more, called unknown. */
async function abandoned({ db, daemon }: Parts, now: Instant): Promise<store.Move[]> {
  const ids = await reads.listAbandoned(db, now, ABANDONED_GRACE_MS, OVER_MAX);
  const cause = 'the daemon that sent it ended before the answer came';
  return ids.map((id) => ({
    ...{ id, to: 'unknown', at: now, cause, errorClass: 'abandoned', daemonId: daemon.id },
  }));
}

/** What waited in the queue for longer than its caller wanted, refused without having been sent. */
async function expired({ db, daemon }: Parts, now: Instant): Promise<store.Move[]> {
  const rows = await listExpired(db, now, OVER_MAX);
  const error = { errorClass: 'not_sent', errorCode: 'expired', keyHeld: false };
  return rows.map(({ id }) => ({
    ...{ id, to: 'rejected', at: now, cause: 'expired', daemonId: daemon.id, ...error },
  }));
}

/** Moves states and emits the event that each new state has, in one transaction. */
async function moveAndTell(tx: Tx, outbox: Outbox, moves: store.Move[]): Promise<Operation[]> {
  const moved = await store.moveStates(tx, moves);
  await outbox.emit(tx, moved.flatMap(eventOf));
  return moved;
}

function eventOf(operation: Operation): EventDraft[] {
  const { state, id } = operation;
  if (state !== 'accepted' && state !== 'rejected' && state !== 'unknown') return [];
  const occurredAt = operation.answeredAt ?? operation.sentAt ?? operation.recordedAt;
  const data = operationFields(operation);
  return [{ type: `operation.${state}`, subject: `operation:${id}`, occurredAt, data }];
}
