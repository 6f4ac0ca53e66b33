/**
 * Ends abandoned sends, queued writes that expired or whose key was revoked, and unconfirmed
 * intents; queued writes that may have been sent elsewhere become unknown. Each change is one
 * commit with its event.
 */
import type { Db, Tx } from '../../db/connect.ts';
import { assertProved, type Daemon, type ProveDeps, whenProved } from '../../db/leases.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { eventsOf } from '../events.ts';
import type { UnconfirmedIntents } from '../intake/unconfirmed.ts';
import { listAbandoned } from '../store.ts';
import { applyTransitions, type Move, type TransitionDeps } from '../transition-store.ts';
import { lockMaySent, lockOverdue, lockUnconfirmed } from './store.ts';

/** A send this long past its deadline becomes unknown even if its daemon is alive. */
const ABANDONED_GRACE_MS = 60_000;
const PASS_MAX = 100;

interface Deps extends TransitionDeps, ProveDeps {
  db: Db;
  daemon: Daemon;
  outbox: Outbox;
  unconfirmed: UnconfirmedIntents;
}

/** One pass; returns how many operations changed. */
export async function endOverdue(deps: Deps, now: Instant): Promise<number> {
  const { db, clock, daemon, unconfirmed } = deps;
  const abandonedMoves = await abandoned(deps, now);
  const unconfirmedIds = unconfirmed.ids(now);
  const end = async (tx: Tx) => {
    const found =
      unconfirmedIds.length === 0 ? [] : await lockUnconfirmed(tx, unconfirmedIds, daemon.id);
    const overdue = await lockOverdue(tx, now, PASS_MAX);
    const maySent = await lockMaySent(tx, PASS_MAX);
    const moves = [
      ...abandonedMoves.filter(({ id }) => !found.includes(id)),
      ...found.map((id) => notSent(id, 'unconfirmed', daemon, now)),
      ...overdue.map(({ id, why }) => notSent(id, why, daemon, now)),
      ...maySent.map((queued) => possiblySent(queued, daemon, now)),
    ];
    if (moves.length === 0) return { moved: 0, found };
    // A copy of the database may show as unsent what was sent.
    await assertProved(tx, daemon, clock.now());
    return { moved: await moveAndEmit(tx, deps, moves), found };
  };
  const { moved, found } = await whenProved(deps, () => db.begin(end));
  unconfirmed.remove(found);
  return moved;
}

/** Sends whose answer no living daemon waits for become unknown. */
async function abandoned({ db, daemon }: Deps, now: Instant): Promise<Move[]> {
  const ids = await listAbandoned(db, now, ABANDONED_GRACE_MS, PASS_MAX);
  const cause = 'the daemon that sent it ended before the answer came';
  return ids.map((id) => ({
    id,
    to: 'unknown',
    at: now,
    cause,
    errorClass: 'abandoned',
    daemonId: daemon.id,
  }));
}

/** The write was never sent, so its idempotency key may be used again. */
function notSent(id: string, code: string, daemon: Daemon, at: Instant): Move {
  const error = { errorClass: 'not_sent', errorCode: code, keyHeld: false };
  return { id, to: 'rejected', at, cause: code, daemonId: daemon.id, ...error };
}

/** Evidence tells whether it was sent at any time since it was queued. */
function possiblySent(
  { id, recordedAt, sentBy }: { id: string; recordedAt: Instant; sentBy: Instant },
  daemon: Daemon,
  at: Instant,
): Move {
  const cause = 'it may have been sent before the database was restored or failed over';
  const span = { sentAt: recordedAt, sendDeadlineAt: sentBy };
  return { id, to: 'unknown', at, cause, errorClass: 'restored', daemonId: daemon.id, ...span };
}

async function moveAndEmit(tx: Tx, deps: Deps, moves: readonly Move[]): Promise<number> {
  const moved = await applyTransitions(tx, moves, deps, (changed) =>
    deps.outbox.emit(tx, changed.flatMap(eventsOf)),
  );
  return moved.length;
}
