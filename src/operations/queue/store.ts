/** SQL of the request queue. */
import { asJson, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { mayBeSent } from '../freeze-store.ts';
import { countUsage, usageColumns } from '../intake/usage-store.ts';
import type { Kind, Operation } from '../operation.ts';
import { operationColumns } from '../store.ts';
import { isThrottled } from './send-store.ts';

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
      from tallyhook.operations o
      where o.state in ('queued', 'sending') and o.expires_at is not null and o.settled_at is null
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
      select c.id from tallyhook.operations c
      where c.contract_id = any(${contracts.map(String)}::numeric[])
        and c.state in ('sending', 'unknown'))
    order by o.recorded_at, o.id limit ${limit}`;
}

/**
 * Moves queued writes to `sending`, each with its transition and its send; none while the service
 * asks writes to wait.
 */
export async function sendQueued(
  tx: Tx,
  claims: readonly { id: string; ambiguous: boolean }[],
  send: { at: Instant; deadlineAt: Instant; daemonId: string; epoch: bigint },
): Promise<QueuedSend[]> {
  const at = isoText(send.at);
  const deadlineAt = isoText(send.deadlineAt);
  return tx.sql<QueuedSend[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(claims)}::jsonb) as x(id text, ambiguous boolean)
    ), moved as (
      update tallyhook.operations o set state = 'sending', sent_at = ${at},
        send_deadline_at = least(${deadlineAt}::timestamptz, o.expires_at),
        daemon_id = ${send.daemonId}, ambiguous = x.ambiguous
      from x where o.id = x.id and o.state = 'queued' and not ${isThrottled(tx, send.at)}
      returning ${usageColumns(tx.sql)}, o.id, o.kind, o.owner, o.idempotency_key, o.reference,
        o.method, o.path,
        o.content_type, o.request_body, o.send_deadline_at, o.expires_at, o.recorded_at
    ), t as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause)
      select m.id, 'queued', 'sending', ${at}, 'send' from moved m order by m.id
    ), s as (
      insert into tallyhook.sends (operation_id, n, started_at, deadline_at, daemon_id, epoch,
        after)
      select m.id, (select coalesce(max(p.n), 0) + 1 from tallyhook.sends p
          where p.operation_id = m.id), ${at}, m.send_deadline_at, ${send.daemonId},
        ${send.epoch.toString()}::bigint, 'queued'
      from moved m
      returning operation_id, n
    ), effects as (
      update tallyhook.operation_effects e set phase = 'open'
      from moved m where e.operation_id = m.id
    ), usage as (
      ${countUsage(
        tx.sql,
        tx.sql`
          select m.key_id, 'infinity'::timestamptz as usage_hour, -m.usage as usage from moved m
          union all
          select m.key_id, m.usage_hour, m.usage from moved m`,
      )}
    )
    select m.id, s.n, m.kind, m.owner, m.key_id, m.idempotency_key,
      m.reference, m.method, m.path, m.content_type, m.request_body as body,
      m.send_deadline_at, m.expires_at
    from moved m join s on s.operation_id = m.id order by m.recorded_at, m.id`;
}

/** Whether the key of operation `o` was revoked; its queued writes are not sent any more. */
function ofRevokedKey({ sql }: Tx) {
  return sql`exists (
    select from tallyhook.keys k where k.id = o.key_id and k.revoked_at is not null)`;
}

interface Overdue {
  id: string;
  why: 'expired' | 'key_revoked';
}

/**
 * Queued writes that were not sent and must not be any more, locked; skips those being claimed or
 * cancelled.
 */
export async function lockOverdue(tx: Tx, now: Instant, limit: number): Promise<Overdue[]> {
  return tx.sql<Overdue[]>`
    select o.id,
      case when o.expires_at <= ${isoText(now)} then 'expired' else 'key_revoked' end as why
    from tallyhook.operations o
    where o.state = 'queued' and (o.expires_at <= ${isoText(now)} or ${ofRevokedKey(tx)})
      and not ${mayBeSent(tx.sql)}
    order by o.recorded_at, o.id limit ${limit} for update of o skip locked`;
}

/**
 * Queued writes that may have been sent elsewhere, once a person has released them; locked.
 * `sentBy` is the latest time at which that can have been.
 */
export async function lockMaySent(
  tx: Tx,
  limit: number,
): Promise<{ id: string; recordedAt: Instant; sentBy: Instant }[]> {
  return tx.sql<{ id: string; recordedAt: Instant; sentBy: Instant }[]>`
    select o.id, o.recorded_at, r.sent_by
    from (select max(released_at) as sent_by from tallyhook.freezes
      where cause <> 'ordered' and released_at is not null) r
    join tallyhook.operations o on o.state = 'queued' and o.recorded_at <= r.sent_by
    where ${mayBeSent(tx.sql)} and not exists (
      select from tallyhook.freezes f where f.released_at is null and f.cause <> 'ordered')
    order by o.recorded_at, o.id limit ${limit} for update of o skip locked`;
}

/**
 * Those of these unconfirmed intents that were recorded, locked. Writes that may queue are
 * excluded: their callers may know them as queued, or they may have been claimed.
 */
export async function lockUnconfirmed(
  tx: Tx,
  ids: readonly string[],
  daemonId: string,
): Promise<string[]> {
  const rows = await tx.sql<{ id: string }[]>`
    select o.id from tallyhook.operations o
    where o.id = any(${[...ids]}::text[]) and o.state = 'sending'
      and o.daemon_id = ${daemonId} and o.expires_at is null
    order by o.id for update`;
  return rows.map((row) => row.id);
}

/**
 * Those of these operations that are queued again or have a later send, so that a conclusion of the
 * earlier send does not apply. A send by another daemon counts as later, because clocks differ. All
 * are locked until the end of the transaction. The list of ids keeps a plan that was made without
 * statistics from reading all operations.
 */
export async function lockSentLater(
  tx: Tx,
  moves: readonly { id: string; at: Instant; daemonId?: string | null }[],
): Promise<Set<string>> {
  const rows = moves.map(({ id, at, daemonId }) => ({ id, at: isoText(at), by: daemonId }));
  const later = await tx.sql<{ id: string; later: boolean }[]>`
    select o.id, o.state = 'queued'
      or o.state = 'sending' and (o.sent_at > x.at or o.daemon_id <> x.by) as later
    from tallyhook.operations o
    join jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, at timestamptz, "by" text)
      on x.id = o.id
    where o.id = any(${rows.map(({ id }) => id)}::text[])
    order by o.id for update of o`;
  return new Set(later.flatMap((row) => (row.later ? [row.id] : [])));
}
