/**
 * Writes whose callers chose to wait, as they leave the queue: in order per wallet and token, each
 * when it can be told apart from what is open there, and none while writes are frozen.
 */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { accountOfWallet } from '../effects.ts';
import { findFreeze } from '../freeze-store.ts';
import {
  type ConflictScope,
  conflictsOf,
  impactOf,
  lockNamesOf,
  type OpenWrite,
} from '../intake/conflicts.ts';
import { lockNames, lockWritesShared, tryLockClaim } from '../intake/lock-store.ts';
import type { Operation } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import * as store from './store.ts';

/** How far into the queue one claim looks, and how many open writes it compares with. */
const LOOKED_AT_MAX = 1_000;
const OPEN_LOOKED_AT_MAX = 5_000;

/** One write at the head of its wallets and tokens. */
interface Head {
  operation: Operation;
  marks: ConflictScope;
  names: string[];
}

/** An open write beside which others may have to go. */
interface Beside {
  operation: Operation;
  mark: OpenWrite;
}

/**
 * Moves what may leave to `sending`, at most `limit`. One transaction at a time does this; another
 * one gets none.
 */
export async function claim(
  tx: Tx,
  settings: OperationsSettings,
  given: { now: Instant; limit: number; daemonId: string; epoch: bigint },
): Promise<store.QueuedSend[]> {
  const { now, limit } = given;
  if (!(await tryLockClaim(tx))) return [];
  await lockWritesShared(tx);
  if (await findFreeze(tx)) return [];
  const queue = await store.listQueue(tx, LOOKED_AT_MAX);
  const heads = headsOf(queue, settings, await store.listHeldWallets(tx, now), now);
  // Those that have to wait must not keep the others; what may go is looked at once more, locked.
  const likely = (await goingNow(tx, heads, settings, now)).slice(0, limit);
  if (likely.length === 0) return [];
  const first = likely.map(({ head }) => head);
  const names = first.flatMap((head) => head.names);
  await lockNames(tx, names);
  const going = await goingNow(tx, first, settings, now);
  const claims = going.map(({ head, ambiguous }) => ({ id: head.operation.id, ambiguous }));
  const deadlineAt = now + settings.queuedSendWithinMs;
  return claims.length === 0 ? [] : store.sendQueued(tx, claims, { at: now, deadlineAt, ...given });
}

/** Those of the heads that may go beside what is open now. */
async function goingNow(
  tx: Tx,
  heads: readonly Head[],
  settings: OperationsSettings,
  now: Instant,
): Promise<{ head: Head; ambiguous: boolean }[]> {
  if (heads.length === 0) return [];
  const users = [
    ...new Set(heads.flatMap(({ marks }) => [...marks.effects.keys()].map(accountOfWallet))),
  ];
  const contracts = heads.flatMap(({ operation, marks }) =>
    operation.contractId === null || marks.conflictKey === undefined ? [] : [operation.contractId],
  );
  const open = await store.listOpenOn(tx, { users, contracts }, OPEN_LOOKED_AT_MAX);
  const byWallet = new Map<string, Beside[]>();
  for (const operation of open) {
    const { scope: marks } = impactOf(operation.kind, operation, settings.effects);
    const beside = { operation, mark: { id: operation.id, ...marks } };
    for (const name of lockNamesOf(operation.kind, operation, marks))
      byWallet.set(name, [...(byWallet.get(name) ?? []), beside]);
  }
  return heads.flatMap((head) => {
    const near = [...new Set(head.names.flatMap((name) => byWallet.get(name) ?? []))];
    return goingBeside(head, near, settings, now);
  });
}

/** The queued writes before which nothing waits, or is on its way, that shares a name. */
function headsOf(
  queue: readonly Operation[],
  settings: OperationsSettings,
  held: ReadonlySet<string>,
  now: Instant,
): Head[] {
  const taken = new Set<string>();
  const heads: Head[] = [];
  for (const operation of queue) {
    const { scope: marks, wallets } = impactOf(operation.kind, operation, settings.effects);
    const names = lockNamesOf(operation.kind, operation, marks);
    const behind = names.some((name) => taken.has(name));
    for (const name of names) taken.add(name);
    const waits = operation.state === 'queued' && (operation.expiresAt ?? 0) > now;
    if (!behind && waits && !wallets.some((wallet) => held.has(wallet)))
      heads.push({ operation, marks, names });
  }
  return heads;
}

/**
 * Whether a head may go: beside what it can be told apart from, and beside what has been open for
 * longer than anybody waits, then marked ambiguous.
 */
function goingBeside(
  head: Head,
  near: readonly Beside[],
  settings: OperationsSettings,
  now: Instant,
): { head: Head; ambiguous: boolean }[] {
  const marks = near.map(({ mark }) => mark);
  const conflicts = new Set(conflictsOf(head.marks, marks));
  if (conflicts.size === 0) return [{ head, ambiguous: false }];
  const patient = now - settings.conflictWaitMs;
  const waitedFor = near.some(
    ({ operation: { id, sentAt, recordedAt } }) =>
      conflicts.has(id) && (sentAt ?? recordedAt) > patient,
  );
  return waitedFor || settings.refuseConflicts ? [] : [{ head, ambiguous: true }];
}
