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
import { lockStop } from './lock-store.ts';
import type { Kind, Operation } from './operation.ts';
import { operationFields } from './operation-event.ts';
import * as reads from './read-store.ts';
import type { JournalSettings } from './settings.ts';
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
export { listSends, type Send } from './send-store.ts';
export { type JournalSettings, journalDefaults, type Touched } from './settings.ts';
export { listPostingsDue, type Move, markPosted, setAside } from './store.ts';

/** What the gateway wants recorded before it sends. */
export interface NewWrite
  extends Omit<store.Intent, 'id' | 'recordedAt' | 'daemonId' | 'epoch' | 'sendDeadlineAt'> {
  /** From the commit of the intent to the last moment at which it may be sent, ms. */
  sendWithinMs: number;
  /** Its caller chose to wait: until when it may still be sent. */
  expiresAt: Instant | null;
  /** Recorded straight into `queued`; only with `expiresAt`. */
  queue: boolean;
  /** The most that this key may move in any 24 hours; null: no limit. */
  dayLimit: bigint | null;
}

/** What became of a write that was to be recorded. */
export type Recorded =
  /** In `sending`: it may leave until then. */
  | { id: string; sendDeadlineAt: Instant; ambiguous: boolean }
  /** In `queued`: `claimQueued` hands it out. */
  | { queued: Operation }
  /** Nothing was recorded: this operation holds the idempotency key. */
  | { held: reads.KeyedOperation };

/** A queued write that was just moved to `sending`: everything that a sender needs. */
export interface QueuedSend {
  id: string;
  kind: Kind;
  owner: string;
  keyId: string;
  idempotencyKey: string | null;
  reference: string | null;
  method: string;
  path: string;
  contentType: string | null;
  body: Uint8Array;
  sendDeadlineAt: Instant;
  expiresAt: Instant;
}

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
const ABANDONED_MAX = 100;
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
  const { db, clock, ids, daemon } = parts;
  const intents = intentCommits(parts);
  const outcomes = outcomeCommits(parts);
  return {
    async record({ sendWithinMs, ...write }) {
      const now = clock.now();
      const id = ids.next('op');
      const sendDeadlineAt = now + sendWithinMs;
      const by = { daemonId: daemon.id, epoch: daemon.epoch };
      const intent = { ...write, ...by, id, recordedAt: now, sendDeadlineAt };
      if (await intents.add(intent)) return { id, sendDeadlineAt, ambiguous: false };
      const held = write.idempotencyKey
        ? await reads.findByIdempotencyKey(db, write.owner, write.idempotencyKey)
        : undefined;
      // Released between the insert and the look: the caller simply tries again.
      if (!held) throw new Failure('idempotency_in_flight');
      return { held };
    },
    recordResend: (operationId, after, deadlineAt) => {
      const { id: daemonId, epoch } = daemon;
      const startedAt = clock.now();
      const send = { operationId, after, deadlineAt, startedAt, daemonId, epoch };
      return db.begin((tx) => store.insertSend(tx, send));
    },
    async conclude(conclusion) {
      const moved = await outcomes.add(conclusion);
      const operation = moved ?? (await reads.findOperation(db, conclusion.operationId));
      if (!operation) throw new Failure('internal', 'the operation is gone');
      return operation;
    },
    move: (tx, moves) => (moves.length === 0 ? Promise.resolve([]) : store.moveStates(tx, moves)),
    claimQueued: async () => [],
    cancel: async () => {
      throw new Failure('conflict');
    },
    freeze: (order) =>
      db.begin(async (tx) => {
        await lockStop(tx);
        const standing = await freezes.findFreeze(tx);
        return standing ?? freezes.insertFreeze(tx, order, clock.now());
      }),
    unfreeze: (order) =>
      db.begin(async (tx) => {
        await lockStop(tx);
        const released = await freezes.releaseFreeze(tx, order, clock.now());
        if (!released) throw new Failure('conflict', 'writes are not frozen');
        return released;
      }),
    currentFreeze: () => freezes.findFreeze(db),
    hold: freezes.upsertHold,
    unhold: freezes.deleteHold,
    runOnce: (now) => abandon(parts, now),
    close: () => {},
  };
}

/** Intents share commits; a commit is refused once this daemon no longer counts as alive. */
function intentCommits({ db, daemon, clock }: Parts) {
  return groupCommit<store.Intent, boolean>(
    async (group) => {
      const inserted = await db.begin(async (tx) => {
        await daemonAlive(tx, daemon, clock.now());
        return store.insertIntents(tx, group);
      });
      return group.map((intent) => inserted.has(intent.id));
    },
    BOUNDS,
    (error) => !isAway(error),
  );
}

/** Outcomes share commits; each with its event. */
function outcomeCommits({ db, daemon, outbox }: Parts) {
  return groupCommit<Conclusion, Operation | undefined>(
    async (group) => {
      const moves = group.map((conclusion) => conclusionMove(conclusion, daemon.id));
      const moved = await db.begin((tx) => moveAndTell(tx, outbox, moves));
      return group.map((c) => moved.find((operation) => operation.id === c.operationId));
    },
    BOUNDS,
    (error) => !isAway(error),
  );
}

/** Calls unknown what nobody can answer any more. */
async function abandon({ db, daemon, outbox }: Parts, now: Instant): Promise<number> {
  const ids = await reads.listAbandoned(db, now, ABANDONED_GRACE_MS, ABANDONED_MAX);
  if (ids.length === 0) return 0;
  const moves = ids.map(
    (id): store.Move => ({
      id,
      to: 'unknown',
      at: now,
      cause: 'the daemon that sent it ended before the answer came',
      errorClass: 'abandoned',
      daemonId: daemon.id,
    }),
  );
  const moved = await db.begin((tx) => moveAndTell(tx, outbox, moves));
  return moved.length;
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
