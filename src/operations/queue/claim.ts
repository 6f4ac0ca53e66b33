/**
 * Claims queued writes to send: in order per wallet and token, each as soon as it does not conflict
 * with an open write, and none while writes are frozen.
 */
import type { Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { accountOfWallet } from '../effects/effects.ts';
import { findFreeze, mayBeSent } from '../freezes.ts';
import {
  type ConflictScope,
  conflictsOf,
  impactOf,
  lockNamesOf,
  type OpenWrite,
} from '../intake/conflicts.ts';
import { lockNames, lockWritesShared, tryLockClaim } from '../intake/locks.ts';
import type { Kind, Operation } from '../operation.ts';
import type { OperationsSettings } from '../settings.ts';
import { operationColumns } from '../store.ts';
import { applyTransitions, type Move, type TransitionDeps } from '../transitions.ts';
import { ofRevokedKey } from './expire.ts';
import { isThrottled } from './sends.ts';

/** A queued write that was moved to `sending`, with the request to send. */
export interface QueuedSend {
  id: string;
  /** The number of the send. */
  n: number;
  kind: Kind;
  owner: string;
  keyId: string;
  idempotencyKey: string | null;
  reference: string | null;
  method: string;
  path: string;
  contentType: string | null;
  body: Uint8Array;
  sendDeadlineAt: Instant;
  expiresAt: Instant;
}

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
  deps: TransitionDeps & { settings: OperationsSettings; daemonId: string },
  input: { now: Instant; limit: number; except: readonly Kind[] },
): Promise<QueuedSend[]> {
  const { settings } = deps;
  const { now, limit, except } = input;
  if (!(await tryLockClaim(tx))) return [];
  await lockWritesShared(tx);
  if (await findFreeze(tx)) return [];
  const queue = await listQueue(tx, { now, except, limit: QUEUE_MAX });
  const heads = headsOf(queue, settings, now);
  // Checked once without locks, so that only sendable writes count towards the limit.
  const candidates = (await listSendable(tx, heads, settings, now)).slice(0, limit);
  if (candidates.length === 0) return [];
  const first = candidates.map(({ head }) => head);
  const names = first.flatMap((head) => head.names);
  await lockNames(tx, names);
  const sendable = await listSendable(tx, first, settings, now);
  if (sendable.length === 0 || (await isThrottled(tx, now))) return [];
  const latest = now + settings.queuedSendWithinMs;
  const moves = sendable.map(({ head: { operation }, ambiguous }): Move => {
    const { id, expiresAt } = operation;
    const sendDeadlineAt = Math.min(latest, expiresAt ?? latest);
    const send = { cause: 'send', daemonId: deps.daemonId, sentAt: now, sendDeadlineAt, ambiguous };
    return { id, to: 'sending', before: ['queued'], at: now, ...send };
  });
  const moved = await applyTransitions(tx, moves, deps);
  return listRequests(
    tx,
    moved.map(({ id }) => id),
  );
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
  const open = await listOpenOn(tx, { users, contracts }, OPEN_MAX);
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

/** Listed writes with the same parties, and queued writes that are considered. */
const SAME_PARTIES_MAX = 8;
const DEPTH_MAX = 10_000;

/**
 * Queued writes, and those sent from the queue without an answer yet, oldest first. What waits must
 * not fill the list: left out are those that wait for their retry, with all writes behind them, and
 * all but the first few of writes with the same parties.
 */
export async function listQueue(
  tx: Tx,
  { now, except, limit }: { now: Instant; except: readonly Kind[]; limit: number },
): Promise<Operation[]> {
  return tx.sql<Operation[]>`
    with oldest as materialized (
      select o.id, o.kind, lower(o.from_addr) as payer, lower(o.to_addr) as payee, o.contract_id,
        o.token_id, o.contract_id || ':' || o.token_id as token, o.amount, o.recorded_at,
        o.state = 'queued' and (coalesce(o.retry_at > ${isoText(now)}, false)
          or o.kind = any(${[...except]}::text[])) as held
      from tallyhook.open_operations w join tallyhook.operations o on o.id = w.id
      where w.state in ('queued', 'sending') and o.expires_at is not null
        and not (o.state = 'queued' and (${ofRevokedKey(tx)} or ${mayBeSent(tx.sql)}))
      order by o.recorded_at, o.id limit ${DEPTH_MAX}
    ), held as materialized (
      select payer as name from oldest where held and payer is not null
      union select payee from oldest where held and payee is not null
      union select token from oldest where held and token is not null
    ), ranked as (
      select q.id, row_number() over (partition by q.kind, q.payer, q.payee, q.contract_id,
        q.token_id, q.amount > 0 order by q.recorded_at, q.id) as place
      from oldest q
      where not q.held and coalesce(q.payer, '') not in (select name from held)
        and coalesce(q.payee, '') not in (select name from held)
        and coalesce(q.token, '') not in (select name from held)
    )
    select ${operationColumns(tx.sql)} from ranked r join tallyhook.operations o on o.id = r.id
    where r.place <= ${SAME_PARTIES_MAX}
    order by o.recorded_at, o.id limit ${limit}`;
}

/** Open writes on these accounts (by key) and in these contracts. */
export async function listOpenOn(
  tx: Tx,
  { users, contracts }: { users: readonly string[]; contracts: readonly bigint[] },
  limit: number,
): Promise<Operation[]> {
  const keys = [...users];
  return tx.sql<Operation[]>`
    select ${operationColumns(tx.sql)} from tallyhook.operations o
    where o.state in ('sending', 'unknown') and o.id in (
      select e.operation_id from tallyhook.operation_effects e
      where lower(e.account) = any(${keys}::text[]) and e.unsettled and e.phase = 'open'
      union all
      select w.id from tallyhook.open_operations w
      where w.contract_id = any(${contracts.map(String)}::numeric[])
        and w.state in ('sending', 'unknown'))
    order by o.recorded_at, o.id limit ${limit}`;
}

/** The requests of these operations, which are about to be sent, oldest first. */
async function listRequests(tx: Tx, ids: readonly string[]): Promise<QueuedSend[]> {
  return tx.sql<QueuedSend[]>`
    select o.id, s.n, o.kind, o.owner, o.key_id, o.idempotency_key, o.reference, o.method, o.path,
      o.content_type, o.request_body as body, o.send_deadline_at, o.expires_at
    from tallyhook.operations o cross join lateral (
      select count(*)::int as n from tallyhook.transitions t
      where t.operation_id = o.id and t.deadline_at is not null) s
    where o.id = any(${ids as string[]}::text[]) order by o.recorded_at, o.id`;
}
