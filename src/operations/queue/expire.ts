/**
 * Ends abandoned sends, queued writes that expired or whose key was revoked, and intents whose
 * commit was never confirmed. Each ends in one transaction with its event.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Daemon } from '../../db/leases.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { eventsOf } from '../events.ts';
import type { UnconfirmedIntents } from '../intake/unconfirmed.ts';
import { pruneUsage } from '../intake/usage-store.ts';
import { listAbandoned } from '../store.ts';
import { type AddDuePostings, applyTransitions, type Move } from '../transition-store.ts';
import { lockOver, lockUnsent } from './store.ts';

/** A send this long past its deadline is called unknown even if its daemon shows signs of life. */
const ABANDONED_GRACE_MS = 60_000;
const OVER_MAX = 100;

interface Deps {
  db: Db;
  daemon: Daemon;
  outbox: Outbox;
  unconfirmed: UnconfirmedIntents;
  addDuePostings: AddDuePostings;
}

/** One pass. Answers how many moved. */
export async function endOverdue(parts: Deps, now: Instant): Promise<number> {
  const { db, daemon, unconfirmed } = parts;
  await pruneUsage(db, now);
  const gone = await abandoned(parts, now);
  const inDoubt = unconfirmed.ids(now);
  const { moved, settled } = await db.begin(async (tx) => {
    const found = inDoubt.length === 0 ? [] : await lockUnsent(tx, inDoubt, daemon.id);
    const unsent = found.map((id) => notSent(id, 'unconfirmed', daemon, now));
    const over = (await lockOver(tx, now, OVER_MAX)).filter(({ id }) => !found.includes(id));
    const ended = over.map(({ id, why }) => notSent(id, why, daemon, now));
    const moves = [...gone.filter(({ id }) => !found.includes(id)), ...unsent, ...ended];
    if (moves.length === 0) return { moved: 0, settled: [] };
    return { moved: await moveAndEmit(tx, parts, moves), settled: found };
  });
  unconfirmed.settled(settled);
  return moved;
}

/** What nobody can answer any more, called unknown. */
async function abandoned({ db, daemon }: Deps, now: Instant): Promise<Move[]> {
  const ids = await listAbandoned(db, now, ABANDONED_GRACE_MS, OVER_MAX);
  const cause = 'the daemon that sent it ended before the answer came';
  return ids.map((id) => ({
    ...{ id, to: 'unknown', at: now, cause, errorClass: 'abandoned', daemonId: daemon.id },
  }));
}

/** The end of what never left: its key may be used again. */
function notSent(id: string, code: string, daemon: Daemon, at: Instant): Move {
  const error = { errorClass: 'not_sent', errorCode: code, keyHeld: false };
  return { id, to: 'rejected', at, cause: code, daemonId: daemon.id, ...error };
}

async function moveAndEmit(
  tx: Tx,
  { outbox, addDuePostings }: Deps,
  moves: readonly Move[],
): Promise<number> {
  const moved = await applyTransitions(tx, moves, addDuePostings);
  await outbox.emit(tx, moved.flatMap(eventsOf));
  return moved.length;
}
