/**
 * Commits intents in groups. The database checks intents against committed writes only, so writes
 * of one group that conflict with each other go into different commits.
 */
import type { Db } from '../../db/connect.ts';
import { type Daemon, type ProveDeps, whenProved } from '../../db/leases.ts';
import { isAway, isOutage, isTooSlow } from '../../db/sqlstate.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import { accountOfWallet } from '../effects/effects.ts';
import type { Kind, WriteFields } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import {
  type ConflictScope,
  conflictsOf,
  impactOf,
  type OpenWrite,
  type SentWrite,
  type WriteImpact,
  walletsApart,
} from './conflicts.ts';
import { BOUNDS, groupCommit } from './group-commit.ts';
import type { WritesInFlight } from './in-flight.ts';
import { type Attempt, type Intent, type RecordRow, recordIntents } from './store.ts';
import type { UnconfirmedIntents } from './unconfirmed.ts';

export type Verdict =
  | { verdict: Exclude<RecordRow['result'], 'others_open' | 'throttled' | 'unproved'> }
  /** The service asked writes to wait until then. */
  | { verdict: 'throttled'; until: Instant }
  /** The open writes that this commit found on its wallets and token, or recorded there. */
  | { verdict: 'others_open'; open: SentWrite[] }
  | { verdict: 'retry' };

/** A write to be recorded. */
export interface Candidate extends WriteImpact {
  intent: Intent;
  names: string[];
  /** Open writes that do not conflict; undefined records it beside any open write. */
  known: SentWrite[] | undefined;
  state: 'sending' | 'queued';
  sendWithinMs: number;
  /** Retries because of new open writes that did not conflict. */
  rechecks: number;
  /** Time of the last attempt. */
  at: Instant;
  sendDeadlineAt: Instant;
  /** Number of the write in this daemon; waiting writes are woken in this order. */
  arrival: number;
}

/**
 * A silently lost connection would otherwise block all intents. Nothing is sent before a commit.
 */
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
  const { daemon, settings, inFlight, metrics } = deps;
  return groupCommit<Candidate, Verdict>(
    async (group) => {
      const results = await whenProved(deps, () => commit(deps, group));
      for (const { candidate, row } of results) {
        const state = row.result;
        if (state === 'sending') {
          inFlight.add(inFlightOf(candidate));
          daemon.lastSend = { operationId: candidate.intent.id, n: 1 };
        }
        if (state === 'sending' || state === 'queued')
          metrics.operations.inc({ kind: candidate.intent.kind, state });
      }
      return verdictsOf(group, results, { settings, inFlight });
    },
    BOUNDS,
    // Only an error of a single row is worth a retry row by row; after a timeout each retry could
    // time out again.
    (error) => !isOutage(error) && !isTooSlow(error) && !(error instanceof Failure),
  );
}

/** @throws Failure `database_unproved`: nothing was recorded */
async function commit(deps: Deps, group: readonly Candidate[]): Promise<Result[]> {
  const { db, clock, daemon, settings, unconfirmed, inFlight } = deps;
  const at = clock.now();
  const attempts = attemptsOf(group, at, inFlight);
  const input = { attempts: [...attempts.values()], at, daemon, queueMax: settings.queueMax };
  const rows = await db
    .single((q) => recordIntents(q, input), COMMIT_WITHIN_MS)
    .catch((error) => {
      // The commit may have happened, or may still happen.
      if (isAway(error)) unconfirmed.add(input.attempts, at);
      throw error;
    });
  if (rows[0]?.result === 'unproved') throw new Failure('database_unproved');
  const rowsByIndex = new Map(rows.map((row) => [row.n, row]));
  return [...attempts].flatMap(([candidate, attempt], n): Result[] => {
    const row = rowsByIndex.get(n);
    return row ? [{ candidate, attempt, row }] : [];
  });
}

interface Result {
  candidate: Candidate;
  attempt: Attempt;
  row: RecordRow;
}

function inFlightOf({ intent, scope, names, known, at, sendDeadlineAt }: Candidate) {
  const ambiguous = known === undefined;
  return { ...scope, id: intent.id, sentAt: at, ambiguous, names, sendDeadlineAt };
}

function verdictsOf(
  group: readonly Candidate[],
  results: readonly Result[],
  { settings, inFlight }: { settings: OperationsSettings; inFlight: WritesInFlight },
): Verdict[] {
  const byCandidate = new Map(results.map((result) => [result.candidate, result]));
  const foundByName = new Map<string, SentWrite[]>();
  for (const { candidate, row } of results)
    for (const name of row.result === 'others_open' ? candidate.names : [])
      foundByName.set(name, [...(foundByName.get(name) ?? []), ...openOf(row.open, settings)]);
  return group.map((candidate): Verdict => {
    const result = byCandidate.get(candidate);
    if (result && result.row.result !== 'others_open') return verdictOf(result);
    if (!result && candidate.intent.expiresAt !== null) return { verdict: 'retry' };
    const found = candidate.names.flatMap((name) => foundByName.get(name) ?? []);
    const open = union(found, inFlight.listOn(candidate.names, candidate.at));
    return open.length === 0 ? { verdict: 'retry' } : { verdict: 'others_open', open };
  });
}

function union(one: readonly SentWrite[], other: readonly SentWrite[]): SentWrite[] {
  return [...new Map([...one, ...other].map((write) => [write.id, write])).values()];
}

function verdictOf({ row: { result, open }, attempt }: Result): Verdict {
  switch (result) {
    case 'others_open':
    case 'unproved':
      return { verdict: 'retry' };
    case 'throttled':
      return { verdict: 'throttled', until: Number(open) };
    case 'day_limit':
      // Earlier writes of the same call count here, but may not have been recorded.
      return attempt.dayMoved > movedBy(attempt.intent.fields)
        ? { verdict: 'retry' }
        : { verdict: 'day_limit' };
    default:
      return { verdict: result };
  }
}

/** The writes of a group that fit into one commit; the first always does. */
function attemptsOf(
  group: readonly Candidate[],
  at: Instant,
  inFlight: WritesInFlight,
): Map<Candidate, Attempt> {
  const attempts = new Map<Candidate, Attempt>();
  const byName = new Map<string, Candidate[]>();
  const byKey = new Map<string, bigint>();
  for (const candidate of group) {
    const { intent, scope } = candidate;
    const sharing = candidate.names.flatMap((name) => byName.get(name) ?? []);
    const earlier = [...new Set(sharing)].filter((other) => !sameKey(candidate, other));
    const open = earlier.map((other) => ({ ...other.scope, id: other.intent.id }));
    const inOrder = earlier.every((other) => mayShareCommit(candidate, other));
    const here = inFlight.listOn(candidate.names, at);
    const known = candidate.known && knownWith(scope, candidate.known, { here, open });
    const allOpen = known && [...known, ...open];
    const conflictFree = !allOpen || conflictsOf(scope, allOpen).length === 0;
    if (!inOrder || !conflictFree) continue;
    for (const name of candidate.names) byName.set(name, [...(byName.get(name) ?? []), candidate]);
    const moved = (byKey.get(intent.keyId) ?? 0n) + movedBy(intent.fields);
    byKey.set(intent.keyId, moved);
    candidate.at = at;
    candidate.sendDeadlineAt = Math.min(
      at + candidate.sendWithinMs,
      intent.expiresAt ?? Number.POSITIVE_INFINITY,
    );
    attempts.set(candidate, {
      intent,
      state: candidate.state,
      sendDeadlineAt: candidate.sendDeadlineAt,
      ambiguous: known === undefined,
      effects: candidate.effects,
      feeMode: candidate.feeMode,
      users: [...scope.effects.keys()].map(accountOfWallet),
      apart: allOpen ? walletsApart(scope, allOpen).map(accountOfWallet) : [],
      conflictKey: scope.conflictKey ?? null,
      known: known ? known.map(({ id }) => id) : null,
      dayMoved: moved,
      names:
        intent.dayLimit === null ? candidate.names : [...candidate.names, `key:${intent.keyId}`],
    });
  }
  return attempts;
}

/** Writes in flight are known too, unless they conflict: then the database has the last word. */
function knownWith(
  scope: ConflictScope,
  known: SentWrite[],
  { here, open }: { here: SentWrite[]; open: OpenWrite[] },
): SentWrite[] {
  const all = union(known, here);
  return conflictsOf(scope, [...all, ...open]).length === 0 ? all : known;
}

/** Of writes with the same idempotency key at most one is recorded, so they cannot conflict. */
function sameKey({ intent: one }: Candidate, { intent: other }: Candidate): boolean {
  return (
    one.idempotencyKey !== null &&
    one.idempotencyKey === other.idempotencyKey &&
    one.owner === other.owner
  );
}

/** Writes that may queue keep their order: one commit per wallet or token. */
function mayShareCommit(one: Candidate, other: Candidate): boolean {
  return one.intent.expiresAt === null && other.intent.expiresAt === null;
}

/** What a write counts towards the daily limit of its key: amount and fee, if positive. */
function movedBy({ amount, feeAmount }: WriteFields): bigint {
  const counted = (value: bigint | null | undefined) => (value != null && value > 0n ? value : 0n);
  return counted(amount) + counted(feeAmount);
}

function openOf(rows: Json, settings: OperationsSettings): SentWrite[] {
  if (!Array.isArray(rows)) return [];
  return rows.map((row) => {
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
  });
}
