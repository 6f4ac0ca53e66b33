/**
 * Claims queued writes to send: in order per wallet and token, each as soon as it does not conflict
 * with an open write, and none while writes are frozen.
 */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { accountOfWallet } from '../effects/effects.ts';
import { findFreeze } from '../freeze-store.ts';
import {
  type ConflictScope,
  conflictsOf,
  impactOf,
  lockNamesOf,
  type OpenWrite,
} from '../intake/conflicts.ts';
import { lockNames, lockWritesShared, tryLockClaim } from '../intake/lock-store.ts';
import type { Kind, Operation } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import * as store from './store.ts';

/** Queued writes and open writes that one claim considers. */
const QUEUE_MAX = 1_000;
const OPEN_MAX = 5_000;

/** The first queued write of its wallets and token. */
interface Head {
  operation: Operation;
  scope: ConflictScope;
  names: string[];
}

interface OpenOperation {
  operation: Operation;
  write: OpenWrite;
}

/** Moves at most `limit` writes to `sending`; none while another transaction claims. */
export async function claim(
  tx: Tx,
  settings: OperationsSettings,
  input: {
    now: Instant;
    limit: number;
    except: readonly Kind[];
    daemonId: string;
    epoch: bigint;
  },
): Promise<store.QueuedSend[]> {
  const { now, limit, except } = input;
  if (!(await tryLockClaim(tx))) return [];
  await lockWritesShared(tx);
  if (await findFreeze(tx)) return [];
  const queue = await store.listQueue(tx, { now, except, limit: QUEUE_MAX });
  const heads = headsOf(queue, settings, now);
  // Checked once without locks, so that only sendable writes count towards the limit.
  const candidates = (await listSendable(tx, heads, settings, now)).slice(0, limit);
  if (candidates.length === 0) return [];
  const first = candidates.map(({ head }) => head);
  const names = first.flatMap((head) => head.names);
  await lockNames(tx, names);
  const sendable = await listSendable(tx, first, settings, now);
  const claims = sendable.map(({ head, ambiguous }) => ({ id: head.operation.id, ambiguous }));
  const deadlineAt = now + settings.queuedSendWithinMs;
  return claims.length === 0 ? [] : store.sendQueued(tx, claims, { at: now, deadlineAt, ...input });
}

/** A write that is sent, or is about to be. */
function writeOf(operation: Operation, now: Instant) {
  return { kind: operation.kind, fields: operation, at: operation.sentAt ?? now };
}

/** The heads that may be sent now, given the open writes. */
async function listSendable(
  tx: Tx,
  heads: readonly Head[],
  settings: OperationsSettings,
  now: Instant,
): Promise<{ head: Head; ambiguous: boolean }[]> {
  if (heads.length === 0) return [];
  const users = [
    ...new Set(heads.flatMap(({ scope }) => [...scope.effects.keys()].map(accountOfWallet))),
  ];
  const contracts = heads.flatMap(({ operation, scope }) =>
    operation.contractId === null || scope.conflictKey === undefined ? [] : [operation.contractId],
  );
  const open = await store.listOpenOn(tx, { users, contracts }, OPEN_MAX);
  const byName = new Map<string, OpenOperation[]>();
  for (const operation of open) {
    const { scope } = impactOf(writeOf(operation, now), settings.effects);
    const entry = { operation, write: { id: operation.id, ...scope } };
    for (const name of lockNamesOf(operation.kind, operation, scope))
      byName.set(name, [...(byName.get(name) ?? []), entry]);
  }
  return heads.flatMap((head) => {
    const related = [...new Set(head.names.flatMap((name) => byName.get(name) ?? []))];
    return sendableHead(head, related, settings, now);
  });
}

/** The queued writes that share no name with an earlier write of the queue. */
function headsOf(queue: readonly Operation[], settings: OperationsSettings, now: Instant): Head[] {
  const taken = new Set<string>();
  const heads: Head[] = [];
  for (const operation of queue) {
    const { scope } = impactOf(writeOf(operation, now), settings.effects);
    const names = lockNamesOf(operation.kind, operation, scope);
    const isBehind = names.some((name) => taken.has(name));
    for (const name of names) taken.add(name);
    const isWaiting = operation.state === 'queued' && (operation.expiresAt ?? 0) > now;
    if (!isBehind && isWaiting) heads.push({ operation, scope, names });
  }
  return heads;
}

/**
 * A head may be sent if it conflicts with no open write, or only with writes that have been open
 * for longer than the conflict wait; then it is ambiguous.
 */
function sendableHead(
  head: Head,
  open: readonly OpenOperation[],
  settings: OperationsSettings,
  now: Instant,
): { head: Head; ambiguous: boolean }[] {
  const writes = open.map(({ write }) => write);
  const conflicts = new Set(conflictsOf(head.scope, writes));
  if (conflicts.size === 0) return [{ head, ambiguous: false }];
  const waitedSince = now - settings.conflictWaitMs;
  const mustWait = open.some(
    ({ operation: { id, sentAt, recordedAt } }) =>
      conflicts.has(id) && (sentAt ?? recordedAt) > waitedSince,
  );
  return mustWait || settings.refuseConflicts ? [] : [{ head, ambiguous: true }];
}
