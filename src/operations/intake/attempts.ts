/**
 * How a write is tried to be recorded: which attempts of a group fit into one commit, what became
 * of each, and what is tried next when a commit found open writes. Pure.
 *
 * The database checks intents against committed writes only, so writes of one group that conflict
 * with each other go into different commits.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { accountOfWallet } from '../effects/effects.ts';
import type { Kind, WriteFields } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import {
  type ConflictScope,
  conflictsOf,
  OPEN_MAX,
  type OpenWrite,
  type SentWrite,
  usefulWaitMs,
  type WriteImpact,
  walletsApart,
} from './conflicts.ts';

export interface Intent {
  id: string;
  kind: Kind;
  owner: string;
  keyId: string;
  idempotencyKey: string | null;
  fingerprint: string;
  reference: string | null;
  method: string;
  path: string;
  contentType: string | null;
  body: Uint8Array;
  fields: WriteFields;
  preImage: Json;
  /** When a caller that chose to wait stops waiting; else null. */
  expiresAt: Instant | null;
  /** The most that its key may move in any 24 hours; null: no limit. */
  dayLimit: bigint | null;
}

/** A write to be recorded. */
export interface Write extends Readonly<WriteImpact> {
  readonly intent: Readonly<Intent>;
  /** See `lockNamesOf`. */
  readonly names: readonly string[];
  readonly sendWithinMs: number;
  /** Number of the write in this daemon; waiting writes are woken in this order. */
  readonly arrival: number;
}

export interface Attempt {
  readonly write: Write;
  /** `queued` records it into the request queue. */
  readonly state: 'sending' | 'queued';
  /** Open writes that do not conflict; undefined records it beside any open write. */
  readonly known: readonly SentWrite[] | undefined;
  /** Attempts before it that met new open writes of which none conflicts. */
  readonly rechecks: number;
}

/** The writes that this process is sending on these wallets and tokens. */
type InFlightOn = (names: readonly string[]) => readonly SentWrite[];

/**
 * @param inFlight if so many conflict that it would only be refused first and then sent as
 * ambiguous, it is recorded beside any open write at once
 */
export function firstAttempt(
  write: Write,
  state: Attempt['state'],
  inFlight: readonly SentWrite[],
  { refuseConflicts }: OperationsSettings,
): Attempt {
  const isHopeless =
    !refuseConflicts &&
    write.intent.expiresAt === null &&
    conflictsOf(write.scope, inFlight).length > OPEN_MAX;
  return { write, state, known: isHopeless ? undefined : [], rechecks: 0 };
}

/** An attempt as a commit makes it. */
export interface PlannedAttempt {
  attempt: Attempt;
  sendDeadlineAt: Instant;
  ambiguous: boolean;
  /** Accounts of users' wallets (lower case). */
  users: readonly string[];
  /**
   * Those of them that tell it apart from the known writes and the others of this commit; one that
   * has no further open writes is enough.
   */
  apart: readonly string[];
  /** Open writes known not to conflict; null skips the check. */
  known: readonly string[] | null;
  /** The amount and fee of this attempt and of earlier ones of the same key in this commit. */
  dayMoved: bigint;
  /** Wallets, tokens and keys to lock. */
  names: readonly string[];
}

/** The attempts of a group that fit into one commit; the first always does. */
export function planCommit(
  group: readonly Attempt[],
  at: Instant,
  inFlightOn: InFlightOn,
): PlannedAttempt[] {
  const planned: PlannedAttempt[] = [];
  const byName = new Map<string, Write[]>();
  const byKey = new Map<string, bigint>();
  for (const attempt of group) {
    const { write } = attempt;
    const { intent, scope, names } = write;
    const sharing = new Set(names.flatMap((name) => byName.get(name) ?? []));
    const earlier = [...sharing].filter((other) => !hasSameKey(intent, other.intent));
    const open = earlier.map((other) => ({ ...other.scope, id: other.intent.id }));
    const inFlight = inFlightOn(names);
    const known = attempt.known && knownWith(scope, attempt.known, { inFlight, open });
    const allOpen = known && [...known, ...open];
    const isConflictFree = !allOpen || conflictsOf(scope, allOpen).length === 0;
    if (!isConflictFree || !earlier.every((other) => mayShareCommit(intent, other.intent)))
      continue;
    for (const name of names) byName.set(name, [...(byName.get(name) ?? []), write]);
    const dayMoved = (byKey.get(intent.keyId) ?? 0n) + movedBy(intent.fields);
    byKey.set(intent.keyId, dayMoved);
    planned.push({
      attempt,
      sendDeadlineAt: Math.min(at + write.sendWithinMs, intent.expiresAt ?? Infinity),
      ambiguous: known === undefined,
      users: [...scope.effects.keys()].map(accountOfWallet),
      apart: allOpen ? walletsApart(scope, allOpen).map(accountOfWallet) : [],
      known: known ? known.map(({ id }) => id) : null,
      dayMoved,
      names: intent.dayLimit === null ? names : [...names, `key:${intent.keyId}`],
    });
  }
  return planned;
}

/** Writes in flight are known too, unless they conflict: then the database has the last word. */
function knownWith(
  scope: ConflictScope,
  known: readonly SentWrite[],
  { inFlight, open }: { inFlight: readonly SentWrite[]; open: readonly OpenWrite[] },
): readonly SentWrite[] {
  const all = union(known, inFlight);
  return conflictsOf(scope, [...all, ...open]).length === 0 ? all : known;
}

function union(one: readonly SentWrite[], other: readonly SentWrite[]): SentWrite[] {
  return [...new Map([...one, ...other].map((write) => [write.id, write])).values()];
}

/** Of writes with the same idempotency key at most one is recorded, so they cannot conflict. */
function hasSameKey(one: Intent, other: Intent): boolean {
  return (
    one.idempotencyKey !== null &&
    one.idempotencyKey === other.idempotencyKey &&
    one.owner === other.owner
  );
}

/** Writes that may queue keep their order: one commit per wallet or token. */
function mayShareCommit(one: Intent, other: Intent): boolean {
  return one.expiresAt === null && other.expiresAt === null;
}

/** What a write counts towards the daily limit of its key: amount and fee, if positive. */
function movedBy({ amount, feeAmount }: WriteFields): bigint {
  const counted = (value: bigint | null | undefined) => (value != null && value > 0n ? value : 0n);
  return counted(amount) + counted(feeAmount);
}

/** What a commit did with an attempt. */
export type Result =
  | { result: 'sending'; sendDeadlineAt: Instant; ambiguous: boolean }
  | { result: 'queued'; at: Instant }
  | { result: 'key_in_use' }
  | { result: 'frozen' | 'key_used_since_backup' | 'day_limit' | 'queue_full' }
  /** The service asked writes to wait until then. */
  | { result: 'throttled'; until: Instant }
  /** The open writes that this commit found on its wallets and token, or recorded there. */
  | { result: 'others_open'; open: SentWrite[] }
  /** It did not fit into the commit, or the rest of the commit was in its way. */
  | { result: 'retry' };

/** What became of each attempt of a group. @param committed of those that were planned */
export function resultsOf(
  group: readonly Attempt[],
  committed: ReadonlyMap<Attempt, { planned: PlannedAttempt; result: Result }>,
  inFlightOn: InFlightOn,
): Result[] {
  const foundByName = new Map<string, SentWrite[]>();
  for (const [{ write }, { result }] of committed)
    for (const name of result.result === 'others_open' ? write.names : [])
      foundByName.set(name, [...(foundByName.get(name) ?? []), ...openOf(result)]);
  return group.map((attempt): Result => {
    const { intent, names } = attempt.write;
    const own = committed.get(attempt);
    if (own && own.result.result !== 'others_open') return retriedIfShared(own);
    if (!own && intent.expiresAt !== null) return { result: 'retry' };
    const found = names.flatMap((name) => foundByName.get(name) ?? []);
    const open = union(found, inFlightOn(names));
    return open.length === 0 ? { result: 'retry' } : { result: 'others_open', open };
  });
}

function openOf(result: Result): SentWrite[] {
  return result.result === 'others_open' ? result.open : [];
}

/** Earlier writes of the same commit count towards a limit, but may not have been recorded. */
function retriedIfShared({ planned, result }: { planned: PlannedAttempt; result: Result }): Result {
  const { fields } = planned.attempt.write.intent;
  const isShared = planned.dayMoved > movedBy(fields);
  return result.result === 'day_limit' && isShared ? { result: 'retry' } : result;
}

/**
 * Attempts that may meet new open writes of which none conflicts; after that the write is sent as
 * ambiguous. One that would be refused is tried until its wait ends.
 */
const RECHECKS_MAX = 5;

/** What follows an attempt that found open writes. */
type Step =
  | { step: 'try'; attempt: Attempt }
  /** Waits for these writes; `lastAttempt` when that did not help. */
  | { step: 'wait'; ids: string[]; ms: number }
  | { step: 'last' };

export function nextStep(
  attempt: Attempt,
  open: readonly SentWrite[],
  { now, endAt }: { now: Instant; endAt: Instant },
  { conflictWaitMs, refuseConflicts }: OperationsSettings,
): Step {
  const { write, rechecks } = attempt;
  const ids = conflictsOf(write.scope, open);
  if (ids.length === 0) {
    const isRefusable = refuseConflicts && write.intent.expiresAt === null && now < endAt;
    return rechecks < RECHECKS_MAX || isRefusable
      ? { step: 'try', attempt: { ...attempt, known: open, rechecks: rechecks + 1 } }
      : { step: 'last' };
  }
  const conflicts = open.filter(({ id }) => ids.includes(id));
  const usefulMs = refuseConflicts
    ? conflictWaitMs
    : usefulWaitMs(write.scope, conflicts, now, conflictWaitMs);
  return { step: 'wait', ids, ms: Math.min(usefulMs, endAt - now) };
}

/**
 * The attempt of a write that has waited enough: in the request queue if its caller chose to wait
 * longer, else as ambiguous; undefined if it is refused instead.
 */
export function lastAttempt(
  attempt: Attempt,
  { refuseConflicts }: OperationsSettings,
): Attempt | undefined {
  if (attempt.write.intent.expiresAt !== null)
    return { ...attempt, known: undefined, state: 'queued' };
  return refuseConflicts ? undefined : { ...attempt, known: undefined };
}
