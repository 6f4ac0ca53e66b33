/**
 * Makes writes durable before they are sent. A write that conflicts with an open one waits for a
 * bounded time, outside of every transaction. After that it is sent and marked ambiguous, or
 * refused, as configured.
 */
import type { Db } from '../../db/connect.ts';
import type { Daemon } from '../../db/leases.ts';
import { isAway } from '../../db/sqlstate.ts';
import { must } from '../../kernel/assert.ts';
import { type Clock, type Instant, pause as kernelPause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import { newOperation, type Operation } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import * as reads from '../store.ts';
import { conflictsOf, impactOf, lockNamesOf, type OpenWrite } from './conflicts.ts';
import { type Candidate, intentCommits } from './intent-commits.ts';
import type { Intent } from './store.ts';
import type { UnconfirmedIntents } from './unconfirmed.ts';
import { makeWaitQueue, type WaitQueue } from './wait-queue.ts';

/** A write that the gateway is about to send. */
export interface NewWrite extends Omit<Intent, 'id'> {
  /** The time from the commit of the intent to its send deadline, ms. */
  sendWithinMs: number;
  /** Recorded straight into `queued`; only with `expiresAt`. */
  queue: boolean;
}

export type Recorded =
  /** In `sending`: it may be sent until the deadline. */
  | { id: string; sendDeadlineAt: Instant; ambiguous: boolean }
  /** In `queued`: `claimQueued` returns it later. */
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
  waitQueue: WaitQueue;
}

/** Retries because of new open writes that do not conflict; after that the write waits. */
const RECHECKS_MAX = 50;

export function makeIntentRecorder(deps: Deps) {
  const { db, clock, ids, settings, pause = kernelPause } = deps;
  const waitQueue = makeWaitQueue({
    max: settings.waitingMax,
    pause,
    stillBlocking: (names) => db.single((q) => reads.listOpen(q, names)),
  });
  const commits = intentCommits(deps);
  const waits = { clock, settings, waitQueue };
  let arrival = 0;

  async function commitWhenPossible(candidate: Candidate): Promise<Recorded> {
    const { intent } = candidate;
    const endAt = clock.now() + settings.conflictWaitMs;
    for (;;) {
      const result = await commits.add(candidate).catch((error) => throwCommitError(error, intent));
      switch (result.verdict) {
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
          throw new Failure(
            'key_limit',
            'amount_per_day: the write exceeds the limit of the last 24 hours',
          );
        case 'queue_full':
          throw new Failure('too_many_requests', 'the request queue is full');
        case 'others_open':
          await waitForOpen(waits, candidate, result.open, endAt);
          break;
        case 'retry':
          break;
      }
    }
  }

  async function holderOf({ owner, idempotencyKey }: Intent): Promise<reads.KeyedOperation> {
    const key = must(idempotencyKey, 'key');
    const held = await db.single((q) => reads.findByIdempotencyKey(q, owner, key));
    // The key was released since; the caller retries.
    if (!held) throw new Failure('idempotency_in_flight');
    return held;
  }

  return {
    /** See `Operations.record`. */
    record({ sendWithinMs, queue, ...write }: NewWrite): Promise<Recorded> {
      const intent = { ...write, id: ids.next('op') };
      const impact = impactOf(write.kind, write.fields, settings.effects);
      const state = queue && write.expiresAt !== null ? 'queued' : 'sending';
      const names = lockNamesOf(write.kind, write.fields, impact.scope);
      const untried = { known: [], rechecks: 0, at: 0, sendDeadlineAt: 0, arrival: arrival++ };
      return commitWhenPossible({ ...impact, intent, names, state, sendWithinMs, ...untried });
    },
    /** Wakes writes that wait for these operations, which are no longer open. */
    notify: waitQueue.notify,
    close: waitQueue.close,
  };
}

function queuedOperation(intent: Intent, recordedAt: Instant): Operation {
  const { id, kind, owner, idempotencyKey, reference, preImage, expiresAt, fields } = intent;
  return newOperation({
    ...{ id, kind, state: 'queued', source: 'gateway', owner, recordedAt },
    ...{ ...fields, idempotencyKey, reference, preImage, expiresAt },
  });
}

/** A write may be queued although its commit result was lost; it must not look refused. */
function throwCommitError(error: unknown, { id, expiresAt }: Intent): never {
  if (expiresAt === null || !isAway(error)) throw error;
  const detail = 'it is not known whether the write was queued';
  throw new Failure('outcome_unknown', detail, { operation_id: id });
}

/**
 * Waits for the conflicting writes and prepares the candidate for its next attempt.
 * @throws Failure `shutting_down`, `wallet_outcome_pending`
 */
async function waitForOpen(
  { clock, settings, waitQueue }: Waits,
  candidate: Candidate,
  open: OpenWrite[],
  endAt: Instant,
): Promise<void> {
  const conflicts = conflictsOf(candidate.scope, open);
  if (conflicts.length === 0 && candidate.rechecks++ < RECHECKS_MAX) {
    candidate.known = open;
    return;
  }
  const woken = await waitQueue.wait(conflicts, endAt - clock.now(), candidate.arrival);
  if (woken === 'closed') throw new Failure('shutting_down');
  if (woken === 'notified') {
    candidate.known = [];
    return;
  }
  candidate.known = undefined;
  // Its caller chose to wait longer, in the request queue.
  if (candidate.intent.expiresAt !== null) candidate.state = 'queued';
  else if (settings.refuseConflicts)
    throw new Failure('wallet_outcome_pending', undefined, { operation_ids: conflicts });
}
