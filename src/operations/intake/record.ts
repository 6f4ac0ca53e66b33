/**
 * Makes writes durable before they are sent. A write that conflicts with an open one waits for a
 * bounded time, as long as that may help, outside of every transaction. After that it is sent and
 * marked ambiguous, or refused, as configured.
 */
import type { Db } from '../../db/connect.ts';
import type { Daemon, ProveDeps } from '../../db/leases.ts';
import { isAway } from '../../db/sqlstate.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import { newOperation, type Operation } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import * as reads from '../store.ts';
import {
  type Attempt,
  firstAttempt,
  type Intent,
  lastAttempt,
  nextStep,
  type Result,
  type Write,
} from './attempts.ts';
import { impactOf, lockNamesOf, OPEN_MAX, type SentWrite } from './conflicts.ts';
import { makeWritesInFlight, type UnconfirmedIntents } from './in-flight.ts';
import { intentCommits } from './intent-commits.ts';
import { makeWaitQueue } from './wait-queue.ts';

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
  /** Nothing was recorded: the service asked writes to wait until then. */
  | { throttledUntil: Instant }
  /** Nothing was recorded: this operation holds the idempotency key. */
  | { held: reads.KeyedOperation };

interface Deps extends ProveDeps {
  db: Db;
  ids: Ids;
  daemon: Daemon;
  settings: OperationsSettings;
  unconfirmed: UnconfirmedIntents;
  metrics: Pick<Metrics, 'operations'>;
}

export function makeIntentRecorder(deps: Deps) {
  const { db, clock, ids, settings, pause } = deps;
  const waitQueue = makeWaitQueue({
    max: settings.waitingMax,
    maxPerName: settings.refuseConflicts ? settings.waitingMax : OPEN_MAX,
    pause,
    stillBlocking: (names) => db.single((q) => reads.listOpen(q, names)),
  });
  const inFlight = makeWritesInFlight();
  const commits = intentCommits({ ...deps, inFlight });
  let arrivals = 0;

  async function commitWhenPossible(write: Write, state: Attempt['state']): Promise<Recorded> {
    const startedAt = clock.now();
    const endAt = startedAt + settings.conflictWaitMs;
    let attempt = firstAttempt(write, state, inFlight.listOn(write.names, startedAt), settings);
    for (;;) {
      const result = await commits
        .add(attempt)
        .catch((error) => throwCommitError(error, write.intent));
      if (result.result === 'others_open') attempt = await afterOpen(attempt, result.open, endAt);
      else if (result.result === 'key_in_use') return { held: await holderOf(db, write.intent) };
      else if (result.result !== 'retry') return recordedOf(write.intent, result);
    }
  }

  /**
   * Waits for the conflicting writes, as long as that may help; returns the next attempt.
   * @throws Failure `shutting_down`, `wallet_outcome_pending`
   */
  async function afterOpen(
    attempt: Attempt,
    open: readonly SentWrite[],
    endAt: Instant,
  ): Promise<Attempt> {
    const next = nextStep(attempt, open, { now: clock.now(), endAt }, settings);
    if (next.step === 'try') return next.attempt;
    if (next.step === 'wait') {
      const woken = await waitQueue.wait(next.ids, next.ms, attempt.write.arrival);
      if (woken === 'closed') throw new Failure('shutting_down');
      if (woken === 'notified' && clock.now() < endAt) return { ...attempt, known: [] };
    }
    const last = lastAttempt(attempt, settings);
    if (last) return last;
    const operation_ids = next.step === 'wait' ? next.ids : open.map(({ id }) => id);
    throw new Failure('wallet_outcome_pending', undefined, { operation_ids });
  }

  return {
    /** See `Operations.record`. */
    record({ sendWithinMs, queue, ...write }: NewWrite): Promise<Recorded> {
      const intent = { ...write, id: ids.next('op') };
      const impact = impactOf({ ...write, at: clock.now() }, settings.effects);
      const names = lockNamesOf(write.kind, write.fields, impact.scope);
      const arrival = arrivals++;
      const state = queue && write.expiresAt !== null ? 'queued' : 'sending';
      return commitWhenPossible({ ...impact, intent, names, sendWithinMs, arrival }, state);
    },
    /** The outcome of a send is durable. Wakes the writes that wait for an operation that ended. */
    concluded({ id, state }: Operation): void {
      inFlight.remove(id);
      if (state !== 'sending' && state !== 'unknown') waitQueue.notify([id]);
    },
    close: waitQueue.close,
  };
}

/** @throws Failure when it was refused */
function recordedOf(
  intent: Intent,
  result: Exclude<Result, { result: 'others_open' | 'retry' | 'key_in_use' }>,
): Recorded {
  switch (result.result) {
    case 'sending': {
      const { sendDeadlineAt, ambiguous } = result;
      return { id: intent.id, sendDeadlineAt, ambiguous };
    }
    case 'queued':
      return { queued: queuedOperation(intent, result.at) };
    case 'throttled':
      return { throttledUntil: result.until };
    case 'day_limit':
      throw new Failure(
        'key_limit',
        'amount_per_day: the write exceeds the limit of the last 24 hours',
      );
    case 'queue_full':
      throw new Failure('too_many_requests', 'the request queue is full');
    default:
      throw new Failure(result.result);
  }
}

async function holderOf(db: Db, { owner, idempotencyKey }: Intent): Promise<reads.KeyedOperation> {
  const key = must(idempotencyKey, 'key');
  const held = await db.single((q) => reads.findByIdempotencyKey(q, owner, key));
  // The key was released since; the caller retries.
  if (!held) throw new Failure('idempotency_in_flight');
  return held;
}

function queuedOperation(intent: Intent, recordedAt: Instant): Operation {
  const { id, kind, owner, idempotencyKey, reference, preImage, expiresAt, fields } = intent;
  return newOperation({
    id,
    kind,
    state: 'queued',
    source: 'gateway',
    owner,
    recordedAt,
    ...fields,
    idempotencyKey,
    reference,
    preImage,
    expiresAt,
  });
}

/** A write may be queued although its commit result was lost; it must not look refused. */
function throwCommitError(error: unknown, { id, expiresAt }: Intent): never {
  if (expiresAt === null || !isAway(error)) throw error;
  const detail = 'it is not known whether the write was queued';
  throw new Failure('outcome_unknown', detail, { operation_id: id });
}
