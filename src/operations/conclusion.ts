/**
 * Conclusions: the state that follows from an answer of the service, or from a send without one.
 * They are committed in groups, each with its event.
 */
import { BOUNDS, groupCommit } from '../db/access/group-commit.ts';
import type { Db } from '../db/connect.ts';
import type { Daemon } from '../db/leases.ts';
import type { Instant } from '../kernel/clock.ts';
import { unreachable } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import type { OwnOutbox } from '../outbox/outbox.ts';
import type { WriteOutcome } from '../upstream/upstream.ts';
import { eventsOf } from './events.ts';
import { lockNames, txNumberLock } from './intake/locks.ts';
import type { Operation } from './operation.ts';
import { lockSentLater } from './queue/sends.ts';
import {
  applyTransitions,
  type Move,
  moveOperations,
  operationAfter,
  type TransitionDeps,
} from './transitions.ts';

/** The result of a send. */
export interface Conclusion {
  operationId: string;
  outcome: WriteOutcome;
  answer: { status: number; headers: Json; body: Uint8Array } | undefined;
  endedAt: Instant;
  /** Of the app whose token was sent, if known; an answer with another number is quarantined. */
  expectedAppNo?: bigint | undefined;
  /** The number of our own app, if known: of a write whose answer names none. */
  ownAppNo?: bigint | undefined;
}

interface Deps extends TransitionDeps {
  db: Db;
  daemon: Daemon;
  outbox: Pick<OwnOutbox, 'emit' | 'prepare' | 'note'>;
}

interface Concluding extends Conclusion {
  /** As it was recorded and is being sent, if this process recorded it. */
  sent: Operation | undefined;
}

/** Commits conclusions; the result is undefined for one that changes nothing. */
export function outcomeCommits(deps: Deps) {
  return groupCommit<Concluding, Operation | undefined>(async (group) => {
    // The first of repeated conclusions counts.
    const first = new Map(group.toReversed().map((one) => [one.operationId, one]));
    const moves = [...first.values()].map((one) => ({
      move: conclusionMove(one, deps.daemon.id),
      sent: one.sent,
    }));
    const foreseen = moves.flatMap(({ move, sent }) =>
      sent && !move.requeue ? { move, sent } : [],
    );
    const moved = foreseen.length > 0 ? await concludeSent(deps, foreseen) : [];
    const done = new Set(moved.map(({ id }) => id));
    const others = moves.flatMap(({ move }) => (done.has(move.id) ? [] : move));
    if (others.length > 0) moved.push(...(await concludeOthers(deps, others)));
    return group.map((c) => moved.find((operation) => operation.id === c.operationId));
  }, BOUNDS);
}

/**
 * Concludes sends of operations that nothing else has changed since they were recorded, which is
 * nearly always so: what their events say is known before, so that it is one statement. Returns
 * those that it moved.
 */
async function concludeSent(
  { db, outbox, metrics }: Deps,
  foreseen: readonly { move: Move; sent: Operation }[],
): Promise<Operation[]> {
  const moves = foreseen.map(({ move }): Move => ({ ...move, before: ['sending'] }));
  const after = foreseen.map(({ move, sent }) => operationAfter(sent, move));
  const prepared = outbox.prepare(after.flatMap(eventsOf));
  const events = {
    ...prepared,
    rows: prepared.rows.map((row, n) => ({
      ...row,
      operation: after[n]?.id,
      state: after[n]?.state,
    })),
  };
  const input = { moves, locks: numberLocks(moves), events };
  const { moved, deliveries } = await db.single((q) => moveOperations(q, input));
  outbox.note(deliveries);
  for (const { kind, state } of moved) metrics.operations.inc({ kind, state });
  return moved;
}

/**
 * Concludes the others. A write that was proved not to be sent may be sent again since; a late
 * repeat of such a conclusion must not change that newer send.
 */
function concludeOthers(deps: Deps, moves: readonly Move[]): Promise<Operation[]> {
  return deps.db.begin(async (tx) => {
    // The later of two answers with the same number sees the earlier.
    await lockNames(tx, numberLocks(moves));
    const notSent = moves.filter((move) => move.requeue);
    const later = notSent.length === 0 ? undefined : await lockSentLater(tx, notSent);
    const moved = await applyTransitions(
      tx,
      moves.filter((move) => !move.requeue || !later?.has(move.id)),
      deps,
    );
    await deps.outbox.emit(tx, moved.flatMap(eventsOf));
    return moved;
  });
}

function numberLocks(moves: readonly Move[]): string[] {
  return moves.flatMap(({ txLogNo }) => (txLogNo == null ? [] : txNumberLock(txLogNo)));
}

const MESSAGE_MAX = 500;

/**
 * The idempotency key is released only after proof that nothing was applied, and not by a refusal
 * of the request. A refusal of the caller says nothing about the request, so the caller may repeat
 * it with another credential.
 */
function conclusionMove(conclusion: Conclusion, daemonId: string): Move {
  const { operationId: id, outcome, answer, endedAt } = conclusion;
  const base = {
    id,
    at: endedAt,
    daemonId,
    answeredAt: endedAt,
    answerStatus: answer?.status ?? null,
    answerHeaders: answer ? keptHeaders(answer.headers) : null,
    answerBody: answer?.body ?? null,
  };
  switch (outcome.class) {
    case 'accepted':
      return {
        ...base,
        to: 'accepted',
        cause: 'answer',
        txAppNo: appNoOf(conclusion, outcome),
        txLogNo: outcome.txLogNo ?? null,
        txHash: outcome.txHash ?? null,
        tokenId: outcome.tokenId ?? null,
        effectiveAt: endedAt,
        effectiveBasis: 'answer',
        ...(isForeign(conclusion) ? FOREIGN : {}),
      };
    case 'rejected':
      return {
        ...base,
        to: 'rejected',
        cause: 'answer',
        errorClass: 'refused',
        errorStatus: outcome.status,
        errorCode: outcome.code,
        errorMessage: outcome.message.slice(0, MESSAGE_MAX),
        keyHeld: outcome.refuses === undefined,
      };
    case 'unavailable':
      return {
        ...base,
        to: 'rejected',
        cause: outcome.reason,
        errorClass: 'unavailable',
        errorCode: outcome.reason,
        keyHeld: false,
        requeue: true,
        retryAt: outcome.retryAt,
      };
    case 'not_sent':
      return {
        ...base,
        to: 'rejected',
        cause: outcome.cause,
        errorClass: 'not_sent',
        errorCode: outcome.cause,
        keyHeld: false,
        requeue: true,
      };
    case 'unknown':
      return {
        ...base,
        to: 'unknown',
        cause: outcome.cause,
        errorClass: 'unknown',
        errorCode: outcome.cause,
        errorStatus: outcome.status ?? null,
      };
    default:
      return unreachable(outcome);
  }
}

/** Cause of the transition for an answer with the number of another app; it is not posted. */
export const FOREIGN_ANSWER = 'answer with a foreign tx_app_no';
const FOREIGN = { quarantineReason: 'foreign_tx_app_no', cause: FOREIGN_ANSWER };

/** Headers that a replay of the answer repeats. */
const KEPT = ['content-type', 'content-encoding', 'location', 'retry-after', 'www-authenticate'];

function keptHeaders(headers: Json): Json {
  if (!Array.isArray(headers)) return [];
  return headers.filter(
    (pair) => Array.isArray(pair) && KEPT.includes(String(pair[0]).toLowerCase()),
  );
}

function appNoOf(
  { expectedAppNo, ownAppNo }: Conclusion,
  { txAppNo, txLogNo }: WriteOutcome & { class: 'accepted' },
): bigint | null {
  if (txLogNo === undefined) return txAppNo ?? null;
  return txAppNo ?? expectedAppNo ?? ownAppNo ?? null;
}

function isForeign({ outcome, expectedAppNo }: Conclusion): boolean {
  if (outcome.class !== 'accepted' || expectedAppNo === undefined) return false;
  return outcome.txAppNo !== undefined && outcome.txAppNo !== expectedAppNo;
}
