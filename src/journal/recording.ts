/**
 * How a write becomes durable before it leaves. Concurrent intents share commits. One that could
 * not be told apart from what is open waits, bounded, outside of every transaction; after that it
 * goes out marked ambiguous, or is refused, as the settings have it.
 */
import type { Db } from '../db/connect.ts';
import type { Daemon } from '../db/leases.ts';
import { isAway } from '../db/sqlstate.ts';
import { wholeOf } from '../kernel/amounts.ts';
import { must } from '../kernel/assert.ts';
import { type Clock, type Instant, pause as kernelPause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Json } from '../kernel/json.ts';
import { conflictsOf, type Marks, namesOf, type OpenWrite, targetOf } from './admission.ts';
import { groupCommit } from './group-commit.ts';
import { type Attempt, type Intent, recordIntents } from './intent-store.ts';
import type { Kind, Operation, WriteFields } from './operation.ts';
import * as reads from './read-store.ts';
import type { JournalSettings } from './settings.ts';
import { makeWaitingRoom } from './waiting-room.ts';

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

interface Parts {
  db: Db;
  clock: Clock;
  ids: Ids;
  daemon: Daemon;
  settings: JournalSettings;
  pause?: typeof kernelPause;
}

/** What an attempt came to. */
type Verdict =
  | { verdict: 'sending' | 'queued' | 'held' | 'frozen' | 'limit' | 'full' }
  | { verdict: 'hold'; until: Instant }
  | { verdict: 'seen'; open: OpenWrite[] }
  /** Something in the same commit stands in its way: the next commit sees it. */
  | { verdict: 'again' };

/** A write on its way to be recorded. */
interface Candidate {
  intent: Intent;
  marks: Marks;
  wallets: readonly string[];
  names: string[];
  /** What is known to be open where it goes; undefined: it goes whatever is open. */
  known: OpenWrite[] | undefined;
  state: 'sending' | 'queued';
  sendWithinMs: number;
  sendDeadlineAt: Instant;
}

const BOUNDS = { rowsMax: 64, queueMax: 5_000, lanes: 2 };

export type Recording = ReturnType<typeof makeRecording>;

/** The recording of one daemon. */
export function makeRecording(parts: Parts) {
  const { db, clock, ids, settings, pause = kernelPause } = parts;
  const room = makeWaitingRoom({
    max: settings.waitingMax,
    pause,
    stillThere: (names) => reads.stillInTheWay(db, names, clock.now()),
  });
  const commits = intentCommits(parts);

  /** Waits for what stands in the way. Answers what is known after that. */
  async function waitFor(
    candidate: Candidate,
    open: OpenWrite[],
    endAt: Instant,
  ): Promise<OpenWrite[] | undefined> {
    const conflicts = conflictsOf(candidate.marks, open);
    if (conflicts.length === 0) return open;
    const woken = await room.wait(conflicts, endAt - clock.now());
    if (woken === 'closed') throw new Failure('shutting_down');
    if (woken === 'left') return [];
    // Its caller chose to wait: it waits on in the queue.
    if (candidate.intent.expiresAt !== null) candidate.state = 'queued';
    else if (settings.refuseAmbiguous)
      throw new Failure('wallet_outcome_pending', undefined, { operation_ids: conflicts });
    return undefined;
  }

  async function take(candidate: Candidate): Promise<Recorded> {
    const { intent } = candidate;
    const endAt = clock.now() + settings.admissionWaitMs;
    for (;;) {
      const said = await commits.add(candidate);
      switch (said.verdict) {
        case 'sending': {
          const { sendDeadlineAt, known } = candidate;
          return { id: intent.id, sendDeadlineAt, ambiguous: known === undefined };
        }
        case 'queued':
          return { queued: must(await reads.findOperation(db, intent.id), 'queued write') };
        case 'held':
          return { held: await holderOf(intent) };
        case 'frozen':
          throw new Failure('frozen');
        case 'limit':
          throw new Failure('key_limit', 'amount_per_day: the last 24 hours leave no room for it');
        case 'full':
          throw new Failure('too_many_requests', 'too many writes wait in the queue');
        case 'hold':
          await holdOn(candidate, said.until, endAt);
          break;
        case 'seen':
          candidate.known = await waitFor(candidate, said.open, endAt);
          break;
        case 'again':
          break;
      }
    }
  }

  /** Waits for one look at a wallet. A hold that comes again and again ends with the wait. */
  async function holdOn(candidate: Candidate, until: Instant, endAt: Instant): Promise<void> {
    const now = clock.now();
    if (now >= endAt) candidate.wallets = [];
    const names = candidate.wallets.map((wallet) => `hold:${wallet}`);
    const woken = await room.wait(names, Math.min(until, endAt) - now);
    if (woken === 'closed') throw new Failure('shutting_down');
  }

  async function holderOf({ owner, idempotencyKey }: Intent): Promise<reads.KeyedOperation> {
    const held = await reads.findByIdempotencyKey(db, owner, must(idempotencyKey, 'key'));
    // Released between the insert and the look: the caller simply tries again.
    if (!held) throw new Failure('idempotency_in_flight');
    return held;
  }

  return {
    /** See `Journal.record`. */
    record({ sendWithinMs, queue, ...write }: NewWrite): Promise<Recorded> {
      const intent = { ...write, id: ids.next('op') };
      const { marks, all } = marksOf(settings, write.kind, write.fields);
      return take({
        intent,
        marks,
        wallets: all,
        names: namesOf(write.kind, write.fields, marks),
        known: [],
        state: queue && write.expiresAt !== null ? 'queued' : 'sending',
        sendWithinMs,
        sendDeadlineAt: 0,
      });
    },
    /** Tells that these are no longer open. */
    left: room.left,
    close: room.close,
  };
}

/** What a write changes, as admission needs it, and every wallet that it touches. */
export function marksOf({ touchedBy }: JournalSettings, kind: Kind, fields: WriteFields) {
  const { users, all } = touchedBy(kind, fields);
  return { marks: { effects: users, target: targetOf(kind, fields) }, all };
}

/** Intents share commits; a commit is refused once this daemon no longer counts as alive. */
function intentCommits({ db, daemon, clock, settings }: Parts) {
  return groupCommit<Candidate, Verdict>(
    async (group) => {
      const at = clock.now();
      const going = attemptsOf(group, at);
      const attempts = [...going.values()];
      const rows = await db.single((q) =>
        recordIntents(q, {
          ...{ attempts, at, daemonId: daemon.id, epoch: daemon.epoch },
          queueMax: settings.queueMax,
        }),
      );
      if (rows[0]?.verdict === 'lease_lost')
        throw new Failure('lease_lost', 'this daemon is no longer counted as alive');
      const said = new Map([...going.keys()].map((candidate, n) => [candidate, n]));
      return group.map((candidate): Verdict => {
        const n = said.get(candidate);
        const row = n === undefined ? undefined : rows.find((r) => r.n === n);
        if (!row || row.verdict === 'lease_lost') return { verdict: 'again' };
        if (row.verdict === 'hold') return { verdict: 'hold', until: row.until ?? at };
        if (row.verdict === 'seen') return { verdict: 'seen', open: openOf(row.seen, settings) };
        return { verdict: row.verdict };
      });
    },
    BOUNDS,
    (error) => !isAway(error),
  );
}

/**
 * Those of a group that can go into one commit: the call sees what is committed, not what goes with
 * it, so what could not be told apart from one of its own goes with the next.
 */
function attemptsOf(group: readonly Candidate[], at: Instant): Map<Candidate, Attempt> {
  const going = new Map<Candidate, Attempt>();
  const byName = new Map<string, Candidate[]>();
  const byKey = new Map<string, bigint>();
  for (const candidate of group) {
    const { intent, marks, known } = candidate;
    const mates = [...new Set(candidate.names.flatMap((name) => byName.get(name) ?? []))];
    const beside = mates.map((mate) => ({ ...mate.marks, id: mate.intent.id }));
    const inOrder = mates.every((mate) => mayGoTogether(candidate, mate));
    const apart = !known || conflictsOf(marks, [...known, ...beside]).length === 0;
    if (!inOrder || !apart) continue;
    for (const name of candidate.names) byName.set(name, [...(byName.get(name) ?? []), candidate]);
    const moved = (byKey.get(intent.keyId) ?? 0n) + movedBy(intent.fields);
    byKey.set(intent.keyId, moved);
    candidate.sendDeadlineAt = at + candidate.sendWithinMs;
    going.set(candidate, {
      intent,
      state: candidate.state,
      sendDeadlineAt: candidate.sendDeadlineAt,
      ambiguous: known === undefined,
      users: [...marks.effects.keys()],
      wallets: candidate.wallets,
      sees: known ? known.map(({ id }) => id) : null,
      target: marks.target !== undefined,
      dayBefore: moved,
      names:
        intent.dayLimit === null ? candidate.names : [...candidate.names, `key:${intent.keyId}`],
    });
  }
  return going;
}

/** What waits keeps its order: it is not committed beside another one of its wallet or token. */
function mayGoTogether(one: Candidate, other: Candidate): boolean {
  return one.intent.expiresAt === null && other.intent.expiresAt === null;
}

/** What a write counts for the limit of its key: its amount and its fee, never less than nothing. */
function movedBy({ amount, feeAmount }: WriteFields): bigint {
  const counted = (value: bigint | null | undefined) => (value != null && value > 0n ? value : 0n);
  return counted(amount) + counted(feeAmount);
}

function openOf(seen: Json, settings: JournalSettings): OpenWrite[] {
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
    return { id: String(id), ...marksOf(settings, kind as Kind, fields).marks };
  });
}
