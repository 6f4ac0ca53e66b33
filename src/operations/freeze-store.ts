/** SQL of freezes: when all writes stop. */
import type { Queryable, Sql, Tx } from '../db/connect.ts';
import { must } from '../kernel/assert.ts';
import { type Instant, isoText } from '../kernel/clock.ts';

export interface FreezeOrder {
  by: string;
  reason: string;
}

export interface Freeze {
  id: bigint;
  frozenAt: Instant;
  frozenBy: string;
  reason: string;
  releasedAt: Instant | null;
  releasedBy: string | null;
  releaseReason: string | null;
}

function columns(sql: Sql) {
  return sql`id, frozen_at, frozen_by, reason,
    released_at, released_by, release_reason`;
}

/** The current freeze, if any. */
export async function findFreeze(db: Queryable): Promise<Freeze | undefined> {
  const rows = await db.sql<Freeze[]>`
    select ${columns(db.sql)}
    from tallyhook.freezes where released_at is null order by id limit 1`;
  return rows[0];
}

export async function insertFreeze(tx: Tx, order: FreezeOrder, at: Instant): Promise<Freeze> {
  const rows = await tx.sql<Freeze[]>`
    insert into tallyhook.freezes (frozen_at, frozen_by, reason)
    values (${isoText(at)}, ${order.by}, ${order.reason})
    returning ${columns(tx.sql)}`;
  return must(rows[0], 'freeze row');
}

/** Ends the current freeze; undefined if writes are not frozen. */
export async function releaseFreeze(
  tx: Tx,
  order: FreezeOrder,
  at: Instant,
): Promise<Freeze | undefined> {
  const rows = await tx.sql<Freeze[]>`
    update tallyhook.freezes set released_at = ${isoText(at)}, released_by = ${order.by},
      release_reason = ${order.reason}
    where released_at is null
    returning ${columns(tx.sql)}`;
  return rows[0];
}
