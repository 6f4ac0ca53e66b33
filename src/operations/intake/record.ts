/**
 * How a write becomes durable before it leaves. Concurrent intents share commits. One that could
 * not be told apart from what is open waits, bounded, outside of every transaction; after that it
 * goes out marked ambiguous, or is refused, as the settings have it.
 */
import type { Db } from '../../db/connect.ts';
import type { Daemon } from '../../db/leases.ts';
import { isAway } from '../../db/sqlstate.ts';
import { must } from '../../kernel/assert.ts';
import { type Clock, type Instant, pause as kernelPause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Operation } from '../operation.ts';
import { queuedOperation } from '../queue/queued-operation.ts';
import type { OperationsSettings } from '../settings.ts';
import * as reads from '../store.ts';
import { conflictsOf, impactOf, lockNamesOf, type OpenWrite } from './conflicts.ts';
import { type Candidate, intentCommits } from './intent-commits.ts';
import type { Intent } from './store.ts';
import type { UnconfirmedIntents } from './unconfirmed.ts';
import { makeWaitQueue, type WaitQueue } from './wait-queue.ts';

/** What the gateway wants recorded before it sends. */
export interface NewWrite extends Omit<Intent, 'id'> {
  /** From the commit of the intent to the last moment at which it may be sent, ms. */
  sendWithinMs: number;
  /** Recorded straight into `queued`; only with `expiresAt`. */
  queue: boolean;
}

/** What became of a write that was to be recorded. */
export type Recorded =
  /** In `sending`: it may leave until then. */
  | { id: string; sendDeadlineAt: Instant; ambiguous: boolean }
  /** In `queued`: `claimQueued` hands it out. */
  | { queued: Operation }
  /** Nothing was recorded: this operation holds the idempotency key. */
  | { held: reads.KeyedOperation };

interface Deps {
  db: Db;
  clock: Clock;
  ids: Ids;
  daemon: Daemon;
  settings: OperationsSettings;
  unconfirmed: UnconfirmedIntents;
  pause?: typeof kernelPause;
}

interface Waits {
  clock: Clock;
  settings: OperationsSettings;
  room: WaitQueue;
}

/** Looks that find something new, each time harmless, before a write stops looking. */
const LOOKS_MAX = 50;

/** The recording of one daemon. */
export function makeRecording(parts: Deps) {
  const { db, clock, ids, settings, pause = kernelPause } = parts;
  const room = makeWaitQueue({
    max: settings.waitingMax,
    pause,
    stillBlocking: (names) => db.single((q) => reads.listBlocking(q, names, clock.now())),
  });
  const commits = intentCommits(parts);
  const waits = { clock, settings, room };
  let turn = 0;

  async function take(candidate: Candidate): Promise<Recorded> {
    const { intent } = candidate;
    const endAt = clock.now() + settings.conflictWaitMs;
    for (;;) {
      const said = await commits.add(candidate).catch((error) => refuseOf(error, intent));
      switch (said.verdict) {
        case 'sending': {
          const { sendDeadlineAt, known } = candidate;
          return { id: intent.id, sendDeadlineAt, ambiguous: known === undefined };
        }
        case 'queued':
          return { queued: queuedOperation(intent, candidate.at) };
        case 'key_in_use':
          return { held: await holderOf(intent) };
        case 'frozen':
          throw new Failure('frozen');
        case 'day_limit':
          throw new Failure('key_limit', 'amount_per_day: the last 24 hours leave no room for it');
        case 'queue_full':
          throw new Failure('too_many_requests', 'too many writes wait in the queue');
        case 'wallet_held':
          await waitForHold(waits, candidate, said, endAt);
          break;
        case 'others_open':
          await waitForOpen(waits, candidate, said.open, endAt);
          break;
        case 'again':
          break;
      }
    }
  }

  async function holderOf({ owner, idempotencyKey }: Intent): Promise<reads.KeyedOperation> {
    const key = must(idempotencyKey, 'key');
    const held = await db.single((q) => reads.findByIdempotencyKey(q, owner, key));
    // Released between the insert and the look: the caller simply tries again.
    if (!held) throw new Failure('idempotency_in_flight');
    return held;
  }

  return {
    /** See `Operations.record`. */
    record({ sendWithinMs, queue, ...write }: NewWrite): Promise<Recorded> {
      const intent = { ...write, id: ids.next('op') };
      const described = impactOf(write.kind, write.fields, settings.effects);
      const state = queue && write.expiresAt !== null ? 'queued' : 'sending';
      const names = lockNamesOf(write.kind, write.fields, described.scope);
      turn++;
      const untried = { known: [], observations: 0, at: 0, sendDeadlineAt: 0, turn };
      return take({ ...described, intent, names, state, sendWithinMs, ...untried });
    },
    /** Tells that these are no longer open. */
    left: room.notify,
    close: room.close,
  };
}

/** One that was queued unseen may be sent: its caller must not take it for refused. */
function refuseOf(error: unknown, { id, expiresAt }: Intent): never {
  if (expiresAt === null || !isAway(error)) throw error;
  const detail = 'it is not known whether the write was queued';
  throw new Failure('outcome_unknown', detail, { operation_id: id });
}

/**
 * Waits for what stands in the way, and says in the candidate how it is to be tried again.
 * @throws Failure `shutting_down`, `wallet_outcome_pending`
 */
async function waitForOpen(
  { clock, settings, room }: Waits,
  candidate: Candidate,
  open: OpenWrite[],
  endAt: Instant,
): Promise<void> {
  const conflicts = conflictsOf(candidate.scope, open);
  if (conflicts.length === 0 && candidate.observations++ < LOOKS_MAX) {
    candidate.known = open;
    return;
  }
  const woken = await room.wait(conflicts, endAt - clock.now(), candidate.turn);
  if (woken === 'closed') throw new Failure('shutting_down');
  if (woken === 'notified') {
    candidate.known = [];
    return;
  }
  candidate.known = undefined;
  // Its caller chose to wait: it waits on in the queue.
  if (candidate.intent.expiresAt !== null) candidate.state = 'queued';
  else if (settings.refuseConflicts)
    throw new Failure('wallet_outcome_pending', undefined, { operation_ids: conflicts });
}

/**
 * Waits for one look at the held wallets; when it was not told that they are free, it does not wait
 * again. @throws Failure `shutting_down`
 */
async function waitForHold(
  { clock, room }: Waits,
  candidate: Candidate,
  { until, wallets }: { until: Instant; wallets: string[] },
  endAt: Instant,
): Promise<void> {
  const names = wallets.map((wallet) => `hold:${wallet}`);
  const woken = await room.wait(names, Math.min(until, endAt) - clock.now(), candidate.turn);
  if (woken === 'closed') throw new Failure('shutting_down');
  if (woken === 'timed_out') candidate.wallets = [];
}
