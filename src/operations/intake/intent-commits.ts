/**
 * Commits intents in groups: one call of `tallyhook.record_intents` locks, checks and records them
 * in one round trip.
 */
import { asJson, type Db, type Queryable } from '../../db/connect.ts';
import { type Daemon, type ProveDeps, whenProved } from '../../db/leases.ts';
import { isAway, isOutage, isTooSlow } from '../../db/sqlstate.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import type { Kind } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import {
  type Attempt,
  type PlannedAttempt,
  planCommit,
  type Result,
  resultsOf,
} from './attempts.ts';
import { impactOf, type SentWrite } from './conflicts.ts';
import { BOUNDS, groupCommit } from './group-commit.ts';
import type { UnconfirmedIntents, WritesInFlight } from './in-flight.ts';
import { storedImage } from './pre-image.ts';

/** A connection that was lost unnoticed would else block all intents. Nothing is sent before. */
const COMMIT_WITHIN_MS = 15_000;

interface Deps extends ProveDeps {
  db: Db;
  daemon: Daemon;
  settings: OperationsSettings;
  unconfirmed: UnconfirmedIntents;
  inFlight: WritesInFlight;
  metrics: Pick<Metrics, 'operations'>;
}

export function intentCommits(deps: Deps) {
  const { daemon, inFlight, metrics } = deps;
  return groupCommit<Attempt, Result>(
    async (group) => {
      const { at, committed } = await whenProved(deps, () => commit(deps, group));
      for (const [{ write }, { result }] of committed) {
        const { intent, scope, names } = write;
        const state = result.result;
        if (state === 'sending') {
          const { sendDeadlineAt, ambiguous } = result;
          inFlight.add({ ...scope, id: intent.id, sentAt: at, ambiguous, names, sendDeadlineAt });
          daemon.lastSend = { operationId: intent.id, n: 1 };
        }
        if (state === 'sending' || state === 'queued')
          metrics.operations.inc({ kind: intent.kind, state });
      }
      return resultsOf(group, committed, (names) => inFlight.listOn(names, at));
    },
    BOUNDS,
    // Only an error of a single row is worth a retry row by row; after a timeout each retry could
    // time out again.
    (error) => !isOutage(error) && !isTooSlow(error) && !(error instanceof Failure),
  );
}

/** @throws Failure `database_unproved`: nothing was recorded */
async function commit(deps: Deps, group: readonly Attempt[]) {
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
  if (rows[0]?.result === 'unproved') throw new Failure('database_unproved');
  const committed = new Map<Attempt, { planned: PlannedAttempt; result: Result }>();
  for (const row of rows) {
    const own = planned[row.n];
    if (own) committed.set(own.attempt, { planned: own, result: resultOf(row, own, at, settings) });
  }
  return { at, committed };
}

interface RecordRow {
  n: number;
  result: Exclude<Result['result'], 'retry'> | 'unproved';
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
): Promise<RecordRow[]> {
  const { planned, at, daemon } = input;
  const { id, epoch, lastSend } = daemon;
  const names = [...new Set(planned.flatMap((one) => one.names))];
  const mayQueue = planned.some(({ attempt }) => attempt.write.intent.expiresAt !== null);
  return db.sql<RecordRow[]>`
    select n, result, open from tallyhook.record_intents(
      ${asJson(planned.map(rowOf))}::jsonb, ${names}::text[], ${isoText(at)}::timestamptz,
      ${id}, ${epoch.toString()}::bigint, ${lastSend?.operationId ?? null}::text,
      ${lastSend?.n ?? null}::int, ${mayQueue ? input.queueMax : null}::int)`;
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
    expiresAt: expiresAt === null ? null : isoText(expiresAt),
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
    case 'unproved':
      return { result: 'retry' };
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
