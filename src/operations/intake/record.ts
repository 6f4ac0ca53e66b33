/**
 * Makes writes durable before they are sent. Their intents are committed in groups: one call of
 * `tallyhook.record_intents` locks, checks and records them in one round trip. A write that
 * conflicts with an open one waits for a bounded time, as long as that may help, outside of every
 * transaction. After that it is sent and marked ambiguous, or refused, as configured.
 */

import { BOUNDS, groupCommit } from '../../db/access/group-commit.ts';
import { asJson, type Db, type Queryable } from '../../db/connect.ts';
import { type Daemon, type ProveDeps, whenProved } from '../../db/leases.ts';
import { isAway } from '../../db/sqlstate.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import { type Instant, isoText, isoTextOrNull } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Json } from '../../kernel/json.ts';
import type { Metrics } from '../../kernel/telemetry/metrics.ts';
import { type Kind, newOperation, type Operation } from '../operation.ts';
import type { UnconfirmedIntents } from '../queue/expire.ts';
import type { OperationsSettings } from '../settings.ts';
import * as reads from '../store.ts';
import {
  type Attempt,
  firstAttempt,
  type Intent,
  lastAttempt,
  nextStep,
  type PlannedAttempt,
  planCommit,
  type Result,
  resultsOf,
  type Write,
} from './attempts.ts';
import { impactOf, lockNamesOf, OPEN_MAX, type SentWrite } from './conflicts.ts';
import { storedImage } from './pre-image.ts';
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
    /** The operation as this process recorded it and is sending it; undefined if it does not. */
    sent: (id: string): Operation | undefined => inFlight.find(id)?.operation,
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
      return { queued: recordedOperation(intent, 'queued', result.at) };
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

function recordedOperation(
  intent: Intent,
  state: 'queued' | 'sending',
  recordedAt: Instant,
): Operation {
  const { id, kind, owner, idempotencyKey, reference, preImage, expiresAt, fields } = intent;
  return newOperation({
    id,
    kind,
    state,
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

/** A connection that was lost unnoticed would else block all intents. Nothing is sent before. */
const COMMIT_WITHIN_MS = 15_000;

type CommitDeps = Deps & { inFlight: WritesInFlight };

function intentCommits(deps: CommitDeps) {
  const { daemon, inFlight, metrics } = deps;
  return groupCommit<Attempt, Result>(async (group) => {
    const { at, committed } = await whenProved(deps, () => commit(deps, group));
    for (const [{ write }, { result }] of committed) {
      const { intent, scope, names } = write;
      const state = result.result;
      if (state === 'sending') {
        const { sendDeadlineAt, ambiguous } = result;
        const sent = { sentAt: at, sendDeadlineAt, ambiguous };
        const operation = { ...recordedOperation(intent, state, at), ...sent };
        inFlight.add({ ...scope, id: intent.id, ...sent, names, operation });
        daemon.lastSend = { operationId: intent.id, n: 1 };
      }
      if (state === 'sending' || state === 'queued')
        metrics.operations.inc({ kind: intent.kind, state });
    }
    return resultsOf(group, committed, (names) => inFlight.listOn(names, at));
  }, BOUNDS);
}

/** @throws Failure `database_unproved`: nothing was recorded */
async function commit(deps: CommitDeps, group: readonly Attempt[]) {
  const { db, clock, daemon, settings, unconfirmed, inFlight } = deps;
  const at = clock.now();
  const planned = planCommit(group, at, (names) => inFlight.listOn(names, at));
  const input = { planned, at, daemon, queueMax: settings.queueMax };
  const rows = await db
    .single((q) => recordIntents(q, input), COMMIT_WITHIN_MS)
    .catch((error) => {
      // The commit may have happened, or may still happen.
      const intents = planned.map(({ attempt }) => attempt.write.intent);
      if (isAway(error)) unconfirmed.add(intents, at);
      throw error;
    });
  const proved = rows.filter((row) => row.result !== 'unproved');
  if (proved.length < rows.length) throw new Failure('database_unproved');
  const committed = new Map<Attempt, { planned: PlannedAttempt; result: Result }>();
  for (const row of proved) {
    const own = planned[row.n];
    if (own) committed.set(own.attempt, { planned: own, result: resultOf(row, own, at, settings) });
  }
  return { at, committed };
}

interface RecordRow {
  n: number;
  result: Exclude<Result['result'], 'retry'>;
  /** The open writes of `others_open`, or the deadline of `throttled`. */
  open: Json;
}

/** Records the attempts that pass the checks; returns a row for each, by its index. */
async function recordIntents(
  db: Queryable,
  input: {
    planned: readonly PlannedAttempt[];
    at: Instant;
    daemon: Daemon;
    queueMax: number;
  },
): Promise<(RecordRow | { result: 'unproved' })[]> {
  const { planned, at, daemon } = input;
  const { id, lastSend } = daemon;
  const names = [...new Set(planned.flatMap((one) => one.names))];
  const mayQueue = planned.some(({ attempt }) => attempt.write.intent.expiresAt !== null);
  return db.sql<(RecordRow | { result: 'unproved' })[]>`
    select n, result, open from tallyhook.record_intents(
      ${asJson(planned.map(rowOf))}::jsonb, ${names}::text[], ${isoText(at)}::timestamptz,
      ${id}, ${lastSend?.operationId ?? null}::text, ${lastSend?.n ?? null}::int,
      ${mayQueue ? input.queueMax : null}::int)`;
}

function rowOf({ attempt, names: _, ...planned }: PlannedAttempt, n: number) {
  const { intent, effects, feeMode, scope } = attempt.write;
  const { fields, body, preImage, expiresAt, ...plain } = intent;
  return {
    n,
    ...plain,
    ...fields,
    ...planned,
    state: attempt.state,
    effects,
    feeMode,
    conflictKey: scope.conflictKey ?? null,
    preImage: storedImage(preImage),
    body: Buffer.from(body).toString('base64'),
    expiresAt: isoTextOrNull(expiresAt),
    sendDeadlineAt: isoText(planned.sendDeadlineAt),
  };
}

function resultOf(
  { result, open }: RecordRow,
  { sendDeadlineAt, ambiguous }: PlannedAttempt,
  at: Instant,
  settings: OperationsSettings,
): Result {
  switch (result) {
    case 'sending':
      return { result, sendDeadlineAt, ambiguous };
    case 'queued':
      return { result, at };
    case 'throttled':
      return { result, until: Number(open) };
    case 'others_open':
      return { result, open: Array.isArray(open) ? open.map((row) => openOf(row, settings)) : [] };
    default:
      return { result };
  }
}

function openOf(row: Json, settings: OperationsSettings): SentWrite {
  const { id, kind, ...members } = row as Record<string, Json>;
  const whole = (value: Json | undefined) => wholeOf(value) ?? null;
  const text = (value: Json | undefined) => (typeof value === 'string' ? value : null);
  const fields = {
    fromAddr: text(members.fromAddr),
    toAddr: text(members.toAddr),
    operationNo: whole(members.operationNo),
    contractId: whole(members.contractId),
    tokenId: whole(members.tokenId),
    amount: whole(members.amount),
    feeAmount: whole(members.feeAmount),
    tokenUri: text(members.tokenUri),
    metaData: text(members.metaData),
    extraData: text(members.extraData),
  };
  const sentAt = Number(members.sentAt);
  return {
    ...impactOf({ kind: kind as Kind, fields, at: sentAt }, settings.effects).scope,
    id: String(id),
    ambiguous: members.ambiguous === true,
    sentAt,
  };
}

interface InFlight extends SentWrite {
  operation: Operation;
  /** See `lockNamesOf`. */
  names: readonly string[];
  /** From then on only the database knows of it. */
  sendDeadlineAt: Instant;
}

/**
 * The writes that this process is sending, by their wallets and token: new writes are compared with
 * them, so that the database seldom has to refuse one because of open writes that it did not know.
 */
interface WritesInFlight {
  add(write: InFlight): void;
  find(id: string): InFlight | undefined;
  /** Its outcome, or that it is unknown, is in the database. */
  remove(id: string): void;
  listOn(names: readonly string[], now: Instant): SentWrite[];
}

function makeWritesInFlight(): WritesInFlight {
  const writes = new Map<string, InFlight>();
  const idsByName = new Map<string, Set<string>>();

  function remove(id: string): void {
    for (const name of writes.get(id)?.names ?? []) {
      const ids = idsByName.get(name);
      ids?.delete(id);
      if (ids?.size === 0) idsByName.delete(name);
    }
    writes.delete(id);
  }

  return {
    add(write) {
      writes.set(write.id, write);
      for (const name of write.names)
        idsByName.set(name, (idsByName.get(name) ?? new Set()).add(write.id));
    },
    find: (id) => writes.get(id),
    remove,
    listOn(names, now) {
      const ids = new Set(names.flatMap((name) => [...(idsByName.get(name) ?? [])]));
      return [...ids].flatMap((id) => {
        const write = writes.get(id);
        if (write && write.sendDeadlineAt > now) return [write];
        remove(id);
        return [];
      });
    },
  };
}
