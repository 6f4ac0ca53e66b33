/**
 * Writes whose callers chose to wait, as they leave the queue: in order per wallet and token, each
 * when it can be told apart from what is open there, and none while writes are frozen.
 */
import type { Tx } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';
import { conflictsOf, type Marks, namesOf, type OpenWrite } from './admission.ts';
import { findFreeze } from './freeze-store.ts';
import { lockGo, lockNames, tryLockClaim } from './lock-store.ts';
import type { Operation } from './operation.ts';
import * as store from './queue-store.ts';
import { marksOf } from './recording.ts';
import type { JournalSettings } from './settings.ts';

/** How far into the queue one claim looks, and how many open writes it compares with. */
const LOOKED_AT_MAX = 1_000;

/** One write at the head of its wallets and tokens. */
interface Head {
  operation: Operation;
  marks: Marks;
  names: string[];
}

/**
 * Moves what may leave to `sending`, at most `limit`. One transaction at a time does this; another
 * one gets none.
 */
export async function claim(
  tx: Tx,
  settings: JournalSettings,
  given: { now: Instant; limit: number; daemonId: string; epoch: bigint },
): Promise<store.QueuedSend[]> {
  const { now, limit } = given;
  if (!(await tryLockClaim(tx))) return [];
  await lockGo(tx);
  if (await findFreeze(tx)) return [];
  const queue = await store.listQueue(tx, LOOKED_AT_MAX);
  const heads = headsOf(queue, settings, await store.listHeldWallets(tx, now), now);
  const first = heads.slice(0, limit);
  if (first.length === 0) return [];
  await lockNames(
    tx,
    first.flatMap(({ names }) => names),
  );
  const users = [...new Set(first.flatMap(({ marks }) => [...marks.effects.keys()]))];
  const contracts = first.flatMap(({ operation }) =>
    operation.contractId === null ? [] : [operation.contractId],
  );
  const open = await store.listOpenOn(tx, { users, contracts }, LOOKED_AT_MAX);
  const claims = first.flatMap((head) => claimOf(head, open, settings, now));
  const deadlineAt = now + settings.queuedSendWithinMs;
  return claims.length === 0 ? [] : store.sendQueued(tx, claims, { at: now, deadlineAt, ...given });
}

/** The queued writes before which nothing waits, or is on its way, that shares a name. */
function headsOf(
  queue: readonly Operation[],
  settings: JournalSettings,
  held: ReadonlySet<string>,
  now: Instant,
): Head[] {
  const taken = new Set<string>();
  const heads: Head[] = [];
  for (const operation of queue) {
    const { marks, all } = marksOf(settings, operation.kind, operation);
    const names = namesOf(operation.kind, operation, marks);
    const behind = names.some((name) => taken.has(name));
    for (const name of names) taken.add(name);
    const waits = operation.state === 'queued' && (operation.expiresAt ?? 0) > now;
    if (!behind && waits && !all.some((wallet) => held.has(wallet)))
      heads.push({ operation, marks, names });
  }
  return heads;
}

/**
 * Whether a head may go: beside what it can be told apart from, and beside what has been open for
 * longer than anybody waits, then marked ambiguous.
 */
function claimOf(
  { operation, marks }: Head,
  open: readonly Operation[],
  settings: JournalSettings,
  now: Instant,
): { id: string; ambiguous: boolean }[] {
  const beside: OpenWrite[] = open.map((other) => ({
    id: other.id,
    ...marksOf(settings, other.kind, other).marks,
  }));
  const conflicts = new Set(conflictsOf(marks, beside));
  if (conflicts.size === 0) return [{ id: operation.id, ambiguous: false }];
  const patient = now - settings.admissionWaitMs;
  const waitedFor = open.some((o) => conflicts.has(o.id) && (o.sentAt ?? o.recordedAt) > patient);
  return waitedFor || settings.refuseAmbiguous ? [] : [{ id: operation.id, ambiguous: true }];
}
