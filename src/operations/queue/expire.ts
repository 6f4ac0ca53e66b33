/**
 * Ends abandoned sends, queued writes that expired or whose key was revoked, and unconfirmed
 * intents; queued writes that may have been sent elsewhere become unknown. Each change is one
 * commit with its event.
 */
import type { Db, Queryable, Tx } from '../../db/connect.ts';
import { assertProved, type Daemon, type ProveDeps, whenProved } from '../../db/leases.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { eventsOf } from '../events.ts';
import { mayBeSent } from '../freezes.ts';
import type { Intent } from '../intake/attempts.ts';
import { applyTransitions, type Move, type TransitionDeps } from '../transitions.ts';

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
  const moved = await applyTransitions(tx, moves, deps);
  await deps.outbox.emit(tx, moved.flatMap(eventsOf));
  return moved.length;
}

/** More are never in flight; as a limit it lets the planner expect few. */
const SENDING_MAX = 100_000;

/** `sending` operations past their deadline, with a dead daemon or later than the grace period. */
export async function listAbandoned(
  db: Queryable,
  now: Instant,
  graceMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`
    select o.id from (
      select id from tallyhook.open_operations
      where state = 'sending' order by changed_at limit ${SENDING_MAX}) w
    join tallyhook.operations o on o.id = w.id
    left join tallyhook.daemons d on d.id = o.daemon_id
    where o.state = 'sending' and o.send_deadline_at < ${isoText(now)}
      and (d.id is null or d.alive_until < ${isoText(now)}
        or o.send_deadline_at < ${isoText(now - graceMs)})
    order by o.send_deadline_at limit ${limit}`;
  return rows.map((row) => row.id);
}

/** Whether the key of operation `o` was revoked; its queued writes are not sent any more. */
export function ofRevokedKey({ sql }: Tx) {
  return sql`exists (
    select from tallyhook.keys k where k.id = o.key_id and k.revoked_at is not null)`;
}

interface Overdue {
  id: string;
  why: 'expired' | 'key_revoked';
}

/**
 * Queued writes that were not sent and must not be any more, locked; skips those being claimed or
 * cancelled.
 */
export async function lockOverdue(tx: Tx, now: Instant, limit: number): Promise<Overdue[]> {
  return tx.sql<Overdue[]>`
    select o.id,
      case when o.expires_at <= ${isoText(now)} then 'expired' else 'key_revoked' end as why
    from tallyhook.open_operations w join tallyhook.operations o on o.id = w.id
    where w.state = 'queued' and o.state = 'queued'
      and (o.expires_at <= ${isoText(now)} or ${ofRevokedKey(tx)})
      and not ${mayBeSent(tx.sql)}
    order by o.recorded_at, o.id limit ${limit} for update of o skip locked`;
}

/**
 * Queued writes that may have been sent elsewhere, once a person has released them; locked.
 * `sentBy` is the latest time at which that can have been.
 */
async function lockMaySent(
  tx: Tx,
  limit: number,
): Promise<{ id: string; recordedAt: Instant; sentBy: Instant }[]> {
  return tx.sql<{ id: string; recordedAt: Instant; sentBy: Instant }[]>`
    select o.id, o.recorded_at, r.sent_by
    from (select max(released_at) as sent_by from tallyhook.freezes
      where cause <> 'ordered' and released_at is not null) r
    join tallyhook.open_operations w on w.state = 'queued' and w.recorded_at <= r.sent_by
    join tallyhook.operations o on o.id = w.id and o.state = 'queued'
    where ${mayBeSent(tx.sql)} and not exists (
      select from tallyhook.freezes f where f.released_at is null and f.cause <> 'ordered')
    order by o.recorded_at, o.id limit ${limit} for update of o skip locked`;
}

/**
 * Those of these unconfirmed intents that were recorded, locked. Writes that may queue are
 * excluded: their callers may know them as queued, or they may have been claimed.
 */
async function lockUnconfirmed(
  tx: Tx,
  ids: readonly string[],
  daemonId: string,
): Promise<string[]> {
  const rows = await tx.sql<{ id: string }[]>`
    select o.id from tallyhook.operations o
    where o.id = any(${[...ids]}::text[]) and o.state = 'sending'
      and o.daemon_id = ${daemonId} and o.expires_at is null
    order by o.id for update`;
  return rows.map((row) => row.id);
}

/**
 * Intents whose commit result was lost, so that their callers got an error, but which the database
 * may have recorded. They were not sent. They are looked for until the statement cannot be running
 * any more, and then ended as not sent. Writes that may queue are excluded: their callers learn
 * that the outcome is not known, so a recorded one must stay. An intent that is dropped here
 * becomes `unknown` like any abandoned send.
 */
export interface UnconfirmedIntents {
  add(intents: readonly Pick<Intent, 'id' | 'expiresAt'>[], at: Instant): void;
  /** Those that may still get recorded. */
  ids(now: Instant): string[];
  /** Removes intents that were ended. */
  remove(ids: Iterable<string>): void;
}

/** Twice the statement timeout. */
const KEPT_MS = 120_000;
const KEPT_MAX = 10_000;

export function makeUnconfirmedIntents(): UnconfirmedIntents {
  const until = new Map<string, Instant>();
  return {
    add(intents, at) {
      for (const { id, expiresAt } of intents)
        if (expiresAt === null && until.size < KEPT_MAX) until.set(id, at + KEPT_MS);
    },
    ids(now) {
      for (const [id, end] of until) if (end < now) until.delete(id);
      return [...until.keys()];
    },
    remove(ids) {
      for (const id of ids) until.delete(id);
    },
  };
}
