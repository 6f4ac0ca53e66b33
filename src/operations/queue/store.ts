/** SQL of writes whose callers chose to wait. */
import { asJson, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { countUsage, usageColumns } from '../intake/usage-store.ts';
import type { Kind, Operation } from '../operation.ts';
import { operationColumns } from '../store.ts';

/** A queued write that was just moved to `sending`: everything that a sender needs. */
export interface QueuedSend {
  id: string;
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

/** Writes that are listed of those with the same parties, and how many are looked at for that. */
const LIKE_MAX = 8;
const DEPTH_MAX = 10_000;

/**
 * What waits, and what left the queue and has no answer yet, oldest first. Of writes with the same
 * parties only the first few: the others stand behind them, and must not hide those of others.
 */
export async function listQueue(tx: Tx, limit: number): Promise<Operation[]> {
  return tx.sql<Operation[]>`
    with oldest as (
      select o.id, o.kind, o.from_key, o.to_key, o.contract_id, o.token_id, o.amount, o.recorded_at
      from tallyhook.operations o
      where o.state in ('queued', 'sending') and o.expires_at is not null and o.settled_at is null
        and not (o.state = 'queued' and ${ofRevokedKey(tx)})
      order by o.recorded_at, o.id limit ${DEPTH_MAX}
    ), ranked as (
      select q.id, row_number() over (partition by q.kind, q.from_key, q.to_key, q.contract_id,
        q.token_id, q.amount > 0 order by q.recorded_at, q.id) as place
      from oldest q
    )
    select ${operationColumns(tx.sql)} from ranked r join tallyhook.operations o on o.id = r.id
    where r.place <= ${LIKE_MAX}
    order by o.recorded_at, o.id limit ${limit}`;
}

/** Open writes on these accounts (keys) of users' wallets and in these contracts. */
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
      where e.account_key = any(${keys}::text[]) and e.phase = 'open'
      union all
      select c.id from tallyhook.operations c
      where c.contract_id = any(${contracts.map(String)}::numeric[])
        and c.state in ('sending', 'unknown'))
    order by o.recorded_at, o.id limit ${limit}`;
}

/** The wallets on which new writes wait now, lower case. */
export async function listHeldWallets(tx: Tx, now: Instant): Promise<Set<string>> {
  const rows = await tx.sql<{ key: string }[]>`
    select wallet_key as key from tallyhook.holds where until > ${isoText(now)}`;
  return new Set(rows.map((row) => row.key));
}

/** Moves queued writes to `sending`, each with its transition and its send. */
export async function sendQueued(
  tx: Tx,
  claims: readonly { id: string; ambiguous: boolean }[],
  given: { at: Instant; deadlineAt: Instant; daemonId: string; epoch: bigint },
): Promise<QueuedSend[]> {
  const at = isoText(given.at);
  const deadlineAt = isoText(given.deadlineAt);
  return tx.sql<QueuedSend[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(claims)}::jsonb) as x(id text, ambiguous boolean)
    ), moved as (
      update tallyhook.operations o set state = 'sending', sent_at = ${at},
        send_deadline_at = least(${deadlineAt}::timestamptz, o.expires_at),
        daemon_id = ${given.daemonId}, ambiguous = x.ambiguous
      from x where o.id = x.id and o.state = 'queued'
      returning ${usageColumns(tx.sql)}, o.id, o.kind, o.owner, o.idempotency_key, o.reference,
        o.method, o.path,
        o.content_type, o.request_body, o.send_deadline_at, o.expires_at, o.recorded_at
    ), t as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, daemon_id)
      select m.id, 'queued', 'sending', ${at}, 'send', ${given.daemonId} from moved m order by m.id
    ), s as (
      insert into tallyhook.sends (operation_id, n, started_at, deadline_at, daemon_id, epoch,
        after)
      select m.id, (select coalesce(max(p.n), 0) + 1 from tallyhook.sends p
          where p.operation_id = m.id), ${at}, m.send_deadline_at, ${given.daemonId},
        ${given.epoch.toString()}::bigint, 'queued'
      from moved m
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
    select m.id, m.kind, m.owner, m.key_id, m.idempotency_key,
      m.reference, m.method, m.path, m.content_type, m.request_body as body,
      m.send_deadline_at, m.expires_at
    from moved m order by m.recorded_at, m.id`;
}

/** Whether the key of the operation `o` was revoked: whoever revokes it means what waits, too. */
function ofRevokedKey({ sql }: Tx) {
  return sql`exists (
    select from tallyhook.keys k where k.id = o.key_id and k.revoked_at is not null)`;
}

/** A queued write that is not to leave any more. */
export interface Over {
  id: string;
  why: 'expired' | 'key_revoked';
}

/** Those that are over, locked; none that is being claimed or cancelled now. */
export async function lockOver(tx: Tx, now: Instant, limit: number): Promise<Over[]> {
  return tx.sql<Over[]>`
    select o.id,
      case when o.expires_at <= ${isoText(now)} then 'expired' else 'key_revoked' end as why
    from tallyhook.operations o
    where o.state = 'queued' and (o.expires_at <= ${isoText(now)} or ${ofRevokedKey(tx)})
    order by o.recorded_at, o.id limit ${limit} for update of o skip locked`;
}

/**
 * Those of these intents that were recorded after all, locked. What may wait in the queue is never
 * among them: it may have been told as queued, or claimed.
 */
export async function lockUnsent(
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
 * Which of these wait for their next send, or began it after that instant or at another daemon,
 * whose clock may be a little behind: what is said of an earlier send is not said of them. Locked
 * to the end of the transaction.
 */
export async function lockSentLater(
  tx: Tx,
  said: readonly { id: string; at: Instant; daemonId?: string | null }[],
): Promise<Set<string>> {
  const rows = said.map(({ id, at, daemonId }) => ({ id, at: isoText(at), by: daemonId }));
  const later = await tx.sql<{ id: string; later: boolean }[]>`
    select o.id, o.state = 'queued'
      or o.state = 'sending' and (o.sent_at > x.at or o.daemon_id <> x.by) as later
    from tallyhook.operations o
    join jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, at timestamptz, "by" text)
      on x.id = o.id
    order by o.id for update of o`;
  return new Set(later.flatMap((row) => (row.later ? [row.id] : [])));
}
