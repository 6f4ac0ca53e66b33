/**
 * Freezes: when all writes stop, and what may have happened elsewhere after the backup
 * from which this database was restored.
 */
import { asJson, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import type { freeze } from '../resources/admin/status.ts';
import type { Row } from '../resources/resource.ts';
import { lockWrites } from './intake/locks.ts';

export interface FreezeOrder {
  by: string;
  reason: string;
}

/** Why writes stop; see the table. */
export type FreezeCause = 'ordered' | 'restored' | 'failover';

export interface Freeze extends Row<typeof freeze> {
  id: bigint;
  cause: FreezeCause;
}

function columns(sql: Sql) {
  return sql`id, cause, frozen_at, frozen_by, reason,
    released_at, released_by, release_reason`;
}

/** The current freeze of all writes, if any. */
export function findFreeze(db: Queryable): Promise<Freeze | undefined> {
  return findCurrent(db, ['restored', 'ordered']);
}

/** The first unreleased freeze with one of these causes. */
export async function findCurrent(
  db: Queryable,
  causes: readonly FreezeCause[],
): Promise<Freeze | undefined> {
  const rows = await db.sql<Freeze[]>`
    select ${columns(db.sql)}
    from tallyhook.freezes where released_at is null and cause = any(${[...causes]}::text[])
    order by cause = 'ordered', id limit 1`;
  return rows[0];
}

export async function insertFreeze(
  tx: Tx,
  order: FreezeOrder & { cause: FreezeCause },
  at: Instant,
): Promise<Freeze> {
  const rows = await tx.sql<Freeze[]>`
    insert into tallyhook.freezes (frozen_at, frozen_by, reason, cause)
    values (${isoText(at)}, ${order.by}, ${order.reason}, ${order.cause})
    returning ${columns(tx.sql)}`;
  return must(rows[0], 'freeze row');
}

/**
 * Stops writes for this cause; `failover` stops only what was queued before. Returns the current
 * freeze of that cause, which may be an earlier one.
 */
export async function freezeWrites(
  tx: Tx,
  order: FreezeOrder,
  cause: FreezeCause,
  at: Instant,
): Promise<Freeze> {
  await lockWrites(tx);
  // Each failover may have cost other writes.
  const current = cause === 'failover' ? undefined : await findCurrent(tx, [cause]);
  return current ?? insertFreeze(tx, { ...order, cause }, at);
}

/** Releases the freeze that a person ordered. Returns it, or undefined if none is in force. */
export async function releaseFreeze(
  tx: Tx,
  order: FreezeOrder,
  at: Instant,
): Promise<Freeze | undefined> {
  const rows = await tx.sql<Freeze[]>`
    update tallyhook.freezes set released_at = ${isoText(at)}, released_by = ${order.by},
      release_reason = ${order.reason}
    where released_at is null and cause = 'ordered'
    returning ${columns(tx.sql)}`;
  return rows[0];
}

/** Releases the freezes that a restore or failover caused. Returns one; undefined if none. */
export async function releaseRestored(
  tx: Tx,
  order: FreezeOrder & { sendQueued: boolean },
  at: Instant,
): Promise<Freeze | undefined> {
  const rows = await tx.sql<Freeze[]>`
    update tallyhook.freezes set released_at = ${isoText(at)}, released_by = ${order.by},
      release_reason = ${order.reason}, send_queued = ${order.sendQueued}
    where released_at is null and cause <> 'ordered'
    returning ${columns(tx.sql)}`;
  return rows[0];
}

/**
 * When this database was last found restored, copied or failed over: writes from before may be
 * unknown to it. Undefined if it never was.
 */
export async function findLastRestore(db: Queryable): Promise<Instant | undefined> {
  const rows = await db.sql<{ at: Instant | null }[]>`
    select max(frozen_at) as at from tallyhook.freezes where cause <> 'ordered'`;
  return rows[0]?.at ?? undefined;
}

/** A write that was made after the backup; its operation, if known, may be in the backup too. */
export interface UsedSinceBackup {
  key: string | null;
  operationId: string | null;
}

/**
 * Stores what was used after the backup, but for writes that ended in this database or were never
 * queued in it; returns how many names are new.
 */
export async function insertUsedSinceBackup(
  db: Queryable,
  used: readonly UsedSinceBackup[],
  at: Instant,
): Promise<number> {
  const rows = await db.sql`
    insert into tallyhook.used_since_backup (name, recorded_at)
    select distinct n.name, ${isoText(at)}::timestamptz
    from jsonb_to_recordset(${asJson(used)}::jsonb) as x(key text, "operationId" text)
    left join tallyhook.operations o on o.id = x."operationId"
    cross join lateral (values (x.key), (x."operationId")) as n(name)
    where n.name is not null and (o.id is null or o.state = 'queued')
    on conflict (name) do nothing returning 1 as one`;
  return rows.length;
}

/**
 * Whether operation `o`, which is queued, may have been sent elsewhere after the backup or before
 * the failover, so that it is not sent from here.
 */
export function mayBeSent(sql: Sql) {
  return sql`exists (
    select from tallyhook.freezes f
    where f.cause <> 'ordered' and o.recorded_at <= f.frozen_at
      and (f.released_at is null or not f.send_queued or exists (
        select from tallyhook.used_since_backup s where s.name in (o.id, o.idempotency_key))))`;
}

/** Whether this operation is queued and may have been sent elsewhere. */
export async function isMaybeSent(db: Queryable, id: string): Promise<boolean> {
  const rows = await db.sql`
    select 1 as one from tallyhook.operations o
    where o.id = ${id} and o.state = 'queued' and ${mayBeSent(db.sql)}`;
  return rows.length > 0;
}

/** Whether there is any queued write. */
export async function hasQueued(db: Queryable): Promise<boolean> {
  const rows = await db.sql`
    select 1 as one from tallyhook.open_operations where state = 'queued' limit 1`;
  return rows.length > 0;
}
