/**
 * Intents that share commits: which of those that arrive together may be written together, and
 * what the one call says of each. It sees what is committed, not what goes with it, so a write that
 * could not be told apart from one of its own group goes with the next.
 */
import type { Db } from '../../db/connect.ts';
import type { Daemon } from '../../db/leases.ts';
import { isAway, isTooSlow } from '../../db/sqlstate.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import { accountOfWallet } from '../effects.ts';
import type { Kind, WriteFields } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import { conflictsOf, impactOf, type OpenWrite, type WriteImpact } from './conflicts.ts';
import { BOUNDS, groupCommit } from './group-commit.ts';
import { type Attempt, type Intent, type RecordRow, recordIntents } from './store.ts';
import type { UnconfirmedIntents } from './unconfirmed.ts';

/** What an attempt came to. */
export type Verdict =
  | { verdict: 'sending' | 'queued' | 'key_in_use' | 'frozen' | 'day_limit' | 'queue_full' }
  | { verdict: 'wallet_held'; until: Instant; wallets: string[] }
  | { verdict: 'others_open'; open: OpenWrite[] }
  /** Something in the same commit stands in its way: the next commit sees it. */
  | { verdict: 'again' };

/** A write on its way to be recorded. */
export interface Candidate extends WriteImpact {
  intent: Intent;
  names: string[];
  /** What is known to be open where it goes; undefined: it goes whatever is open. */
  known: OpenWrite[] | undefined;
  state: 'sending' | 'queued';
  sendWithinMs: number;
  /** How often something new was open, each time harmless. */
  observations: number;
  /** When it was last tried. */
  at: Instant;
  sendDeadlineAt: Instant;
  /** Its place among the writes of this daemon: who came first is woken first. */
  turn: number;
}

/**
 * How long a commit of intents is waited for: all intents wait behind it, and a connection that was
 * lost without a word would never answer. Nothing was sent by then.
 */
const COMMIT_WITHIN_MS = 15_000;

/** Intents share commits; a commit is refused once this daemon no longer counts as alive. */
export function intentCommits(given: {
  db: Db;
  clock: Clock;
  daemon: Daemon;
  settings: OperationsSettings;
  unconfirmed: UnconfirmedIntents;
}) {
  const { db, daemon, clock, settings, unconfirmed } = given;
  return groupCommit<Candidate, Verdict>(
    async (group) => {
      const at = clock.now();
      const going = attemptsOf(group, at);
      const attempts = [...going.values()];
      const rows = await db
        .single(
          (q) =>
            recordIntents(q, {
              ...{ attempts, at, daemonId: daemon.id, epoch: daemon.epoch },
              queueMax: settings.queueMax,
            }),
          COMMIT_WITHIN_MS,
        )
        .catch((error) => {
          // The commit may have happened, or may still happen.
          if (isAway(error)) unconfirmed.add(attempts, at);
          throw error;
        });
      if (rows[0]?.result === 'lease_lost')
        throw new Failure('lease_lost', 'this daemon is no longer counted as alive');
      const byPlace = new Map(rows.map((row) => [row.n, row]));
      const places = new Map([...going.keys()].map((candidate, n) => [candidate, n]));
      return group.map((candidate): Verdict => {
        const attempt = going.get(candidate);
        const row = byPlace.get(places.get(candidate) ?? -1);
        return attempt && row ? verdictOf(row, attempt, settings) : { verdict: 'again' };
      });
    },
    BOUNDS,
    // One bad row is found by trying each alone; what stops all of them is not, and each try of
    // what is too slow would take its whole time.
    (error) => !isAway(error) && !isTooSlow(error) && !(error instanceof Failure),
  );
}

function verdictOf(row: RecordRow, attempt: Attempt, settings: OperationsSettings): Verdict {
  switch (row.result) {
    case 'lease_lost':
      return { verdict: 'again' };
    case 'day_limit':
      // Those before it in the call were counted, but may not have been written.
      return attempt.dayMoved > movedBy(attempt.intent.fields)
        ? { verdict: 'again' }
        : { verdict: 'day_limit' };
    case 'wallet_held': {
      const wallets = Array.isArray(row.open) ? row.open.map(String) : [];
      return { verdict: 'wallet_held', until: row.until ?? 0, wallets };
    }
    case 'others_open':
      return { verdict: 'others_open', open: openOf(row.open, settings) };
    default:
      return { verdict: row.result };
  }
}

/** Those of a group that can go into one commit; the first always can. */
function attemptsOf(group: readonly Candidate[], at: Instant): Map<Candidate, Attempt> {
  const going = new Map<Candidate, Attempt>();
  const byName = new Map<string, Candidate[]>();
  const byKey = new Map<string, bigint>();
  for (const candidate of group) {
    const { intent, scope: marks, known } = candidate;
    const named = candidate.names.flatMap((name) => byName.get(name) ?? []);
    const mates = [...new Set(named)].filter((mate) => !sameKey(candidate, mate));
    const beside = mates.map((mate) => ({ ...mate.scope, id: mate.intent.id }));
    const inOrder = mates.every((mate) => mayGoTogether(candidate, mate));
    const apart = !known || conflictsOf(marks, [...known, ...beside]).length === 0;
    if (!inOrder || !apart) continue;
    for (const name of candidate.names) byName.set(name, [...(byName.get(name) ?? []), candidate]);
    const moved = (byKey.get(intent.keyId) ?? 0n) + movedBy(intent.fields);
    byKey.set(intent.keyId, moved);
    candidate.at = at;
    candidate.sendDeadlineAt = Math.min(
      at + candidate.sendWithinMs,
      intent.expiresAt ?? Number.POSITIVE_INFINITY,
    );
    going.set(candidate, {
      intent,
      state: candidate.state,
      sendDeadlineAt: candidate.sendDeadlineAt,
      ambiguous: known === undefined,
      effects: candidate.effects,
      users: [...marks.effects.keys()].map(accountOfWallet),
      wallets: candidate.wallets,
      conflictKey: marks.conflictKey ?? null,
      known: known ? known.map(({ id }) => id) : null,
      dayMoved: moved,
      names:
        intent.dayLimit === null ? candidate.names : [...candidate.names, `key:${intent.keyId}`],
    });
  }
  return going;
}

/** Of writes with one idempotency key at most one is written: they never stand together. */
function sameKey({ intent: one }: Candidate, { intent: other }: Candidate): boolean {
  return (
    one.idempotencyKey !== null &&
    one.idempotencyKey === other.idempotencyKey &&
    one.owner === other.owner
  );
}

/** What waits keeps its order: it is not committed beside another one of its wallet or token. */
function mayGoTogether(one: Candidate, other: Candidate): boolean {
  return one.intent.expiresAt === null && other.intent.expiresAt === null;
}

/** What a write counts for the limit of its key: amount and fee, never less than nothing. */
function movedBy({ amount, feeAmount }: WriteFields): bigint {
  const counted = (value: bigint | null | undefined) => (value != null && value > 0n ? value : 0n);
  return counted(amount) + counted(feeAmount);
}

function openOf(seen: Json, settings: OperationsSettings): OpenWrite[] {
  if (!Array.isArray(seen)) return [];
  return seen.map((row) => {
    const { id, kind, ...named } = row as Record<string, Json>;
    const whole = (value: Json | undefined) => wholeOf(value) ?? null;
    const text = (value: Json | undefined) => (typeof value === 'string' ? value : null);
    const fields = {
      fromAddr: text(named.fromAddr),
      toAddr: text(named.toAddr),
      operationNo: whole(named.operationNo),
      contractId: whole(named.contractId),
      tokenId: whole(named.tokenId),
      amount: whole(named.amount),
      feeAmount: whole(named.feeAmount),
      tokenUri: text(named.tokenUri),
      metaData: text(named.metaData),
      extraData: text(named.extraData),
    };
    return { id: String(id), ...impactOf(kind as Kind, fields, settings.effects).scope };
  });
}
