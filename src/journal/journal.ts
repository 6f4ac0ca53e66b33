/**
 * What we asked of the service. A write is durable as an intent before it is sent, and its answer
 * is durable before the caller sees it; concurrent writes share commits. Nothing here ever sends
 * anything, and nothing here guesses: a state changes by an answer, by evidence that a later stage
 * brings, or by people.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Daemon, daemonAlive } from '../db/leases.ts';
import { isAway } from '../db/sqlstate.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { type Conclusion, conclusionMove } from './conclusion.ts';
import { groupCommit } from './group-commit.ts';
import type { Operation } from './operation.ts';
import { operationFields } from './operation-event.ts';
import * as reads from './read-store.ts';
import * as store from './store.ts';

export type { Conclusion } from './conclusion.ts';
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
export { listPostingsDue, type Move, markPosted, setAside } from './store.ts';

/** What the gateway wants recorded before it sends. */
export type NewWrite = Omit<store.Intent, 'id' | 'recordedAt' | 'daemonId' | 'epoch'>;

export interface Journal {
  /**
   * Makes the intent durable in state `sending`. Answers the id, or what already holds its
   * idempotency key.
   * @throws Failure `database_unavailable`
   */
  record(write: NewWrite): Promise<{ id: string } | { held: reads.KeyedOperation }>;
  /** Makes one more send durable, with the proof that allows it. */
  recordResend(operationId: string, after: string, deadlineAt: Instant): Promise<void>;
  /** Makes the outcome and its event durable. Answers the operation as it stands. */
  conclude(conclusion: Conclusion): Promise<Operation>;
  /** Changes states inside a later stage's transaction; answers those that really moved. */
  move(tx: Tx, moves: readonly store.Move[]): Promise<Operation[]>;
  /** One pass: sends whose deadline and daemon are both gone become `unknown`. Answers how many. */
  runOnce(now: Instant): Promise<number>;
}

/** A send this long past its deadline is called unknown even if its daemon shows signs of life. */
const ABANDONED_GRACE_MS = 60_000;
const ABANDONED_MAX = 100;
const BOUNDS = { rowsMax: 64, queueMax: 5_000, lanes: 2 };

interface Parts {
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
    async record(write) {
      const now = clock.now();
      const id = ids.next('op');
      const intent = { ...write, id, recordedAt: now, daemonId: daemon.id, epoch: daemon.epoch };
      if (await intents.add(intent)) return { id };
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
    runOnce: (now) => abandon(parts, now),
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
