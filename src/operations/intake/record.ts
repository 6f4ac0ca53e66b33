/**
 * Makes writes durable before they are sent. A write that conflicts with an open one waits for a
 * bounded time, as long as that may help, outside of every transaction. After that it is sent and
 * marked ambiguous, or refused, as configured.
 */
import type { Db } from '../../db/connect.ts';
import type { Daemon, ProveDeps } from '../../db/leases.ts';
import { isAway } from '../../db/sqlstate.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import { newOperation, type Operation } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import * as reads from '../store.ts';
import {
  conflictsOf,
  impactOf,
  lockNamesOf,
  OPEN_MAX,
  type SentWrite,
  usefulWaitMs,
} from './conflicts.ts';
import { makeWritesInFlight } from './in-flight.ts';
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

interface Waits {
  clock: Clock;
  settings: OperationsSettings;
  waitQueue: WaitQueue;
}

/**
 * Retries because of new open writes that do not conflict; after that it is sent as ambiguous. A
 * write that would be refused is retried until its wait ends.
 */
const RECHECKS_MAX = 5;

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
  const waits = { clock, settings, waitQueue };
  let arrival = 0;

  async function commitWhenPossible(candidate: Candidate): Promise<Recorded> {
    const { intent } = candidate;
    const endAt = clock.now() + settings.conflictWaitMs;
    if (isHopeless(candidate, settings, inFlight.listOn(candidate.names, clock.now())))
      candidate.known = undefined;
    for (;;) {
      const result = await commits.add(candidate).catch((error) => throwCommitError(error, intent));
      switch (result.verdict) {
        case 'sending': {
          const { sendDeadlineAt, known } = candidate;
          return { id: intent.id, sendDeadlineAt, ambiguous: known === undefined };
        }
        case 'queued':
          return { queued: queuedOperation(intent, candidate.at) };
        case 'throttled':
          return { throttledUntil: result.until };
        case 'key_in_use':
          return { held: await holderOf(db, intent) };
        case 'frozen':
          throw new Failure('frozen');
        case 'key_used_since_backup':
          throw new Failure('key_used_since_backup');
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

  return {
    /** See `Operations.record`. */
    record({ sendWithinMs, queue, ...write }: NewWrite): Promise<Recorded> {
      const intent = { ...write, id: ids.next('op') };
      const impact = impactOf({ ...write, at: clock.now() }, settings.effects);
      const state = queue && write.expiresAt !== null ? 'queued' : 'sending';
      const names = lockNamesOf(write.kind, write.fields, impact.scope);
      const untried = { known: [], rechecks: 0, at: 0, sendDeadlineAt: 0, arrival: arrival++ };
      return commitWhenPossible({ ...impact, intent, names, state, sendWithinMs, ...untried });
    },
    /** The outcome of a send is durable. Wakes the writes that wait for an operation that ended. */
    concluded({ id, state }: Operation): void {
      inFlight.remove(id);
      if (state !== 'sending' && state !== 'unknown') waitQueue.notify([id]);
    },
    close: waitQueue.close,
  };
}

async function holderOf(db: Db, { owner, idempotencyKey }: Intent): Promise<reads.KeyedOperation> {
  const key = must(idempotencyKey, 'key');
  const held = await db.single((q) => reads.findByIdempotencyKey(q, owner, key));
  // The key was released since; the caller retries.
  if (!held) throw new Failure('idempotency_in_flight');
  return held;
}

/** So many writes are in flight that it would only be refused first and then sent as ambiguous. */
function isHopeless(
  { intent, scope }: Candidate,
  { refuseConflicts }: OperationsSettings,
  inFlight: SentWrite[],
): boolean {
  if (refuseConflicts || intent.expiresAt !== null) return false;
  return conflictsOf(scope, inFlight).length > OPEN_MAX;
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

/**
 * Waits for the conflicting writes, as long as that may help, and prepares the candidate for its
 * next attempt.
 * @throws Failure `shutting_down`, `wallet_outcome_pending`
 */
async function waitForOpen(
  { clock, settings, waitQueue }: Waits,
  candidate: Candidate,
  open: SentWrite[],
  endAt: Instant,
): Promise<void> {
  const { scope, arrival } = candidate;
  const { conflictWaitMs, refuseConflicts } = settings;
  const conflicts = new Set(conflictsOf(scope, open));
  const isQueueable = candidate.intent.expiresAt !== null;
  if (conflicts.size === 0) {
    const isRefusable = refuseConflicts && !isQueueable && clock.now() < endAt;
    if (candidate.rechecks++ < RECHECKS_MAX || isRefusable) {
      candidate.known = open;
      return;
    }
  } else {
    const now = clock.now();
    const others = open.filter(({ id }) => conflicts.has(id));
    const usefulMs = refuseConflicts
      ? conflictWaitMs
      : usefulWaitMs(scope, others, now, conflictWaitMs);
    const woken = await waitQueue.wait([...conflicts], Math.min(usefulMs, endAt - now), arrival);
    if (woken === 'closed') throw new Failure('shutting_down');
    if (woken === 'notified' && clock.now() < endAt) {
      candidate.known = [];
      return;
    }
  }
  candidate.known = undefined;
  // Its caller chose to wait longer, in the request queue.
  if (isQueueable) candidate.state = 'queued';
  else if (refuseConflicts) {
    const ids = conflicts.size > 0 ? [...conflicts] : open.map(({ id }) => id);
    throw new Failure('wallet_outcome_pending', undefined, { operation_ids: ids });
  }
}
