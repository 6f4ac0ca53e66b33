/** SQL of the audit trail. */
import { asJson, type Queryable } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import type { AuditEntry } from './audit.ts';

export async function insertAudit(
  db: Queryable,
  { owner, keyId, action, detail }: Pick<AuditEntry, 'owner' | 'keyId' | 'action' | 'detail'>,
  at: Instant,
): Promise<bigint> {
  const [row] = await db.sql<{ id: bigint }[]>`
    insert into tallyhook.audit (at, owner, key_id, action, detail)
    values (${isoText(at)}, ${owner}, ${keyId}, ${action}, ${asJson(detail)}::jsonb) returning id`;
  return must(row, 'audit entry').id;
}

export async function closeAudit(db: Queryable, id: bigint, result: string): Promise<void> {
  await db.sql`
    update tallyhook.audit set result = ${result} where id = ${id.toString()}::bigint`;
}

/** Deletes some of the entries from before; returns how many. Those of the last year stay. */
export async function pruneAudit(db: Queryable, before: Instant): Promise<number> {
  const [row] = await db.sql<{ removed: number }[]>`
    select tallyhook.prune_audit(${isoText(before)}) as removed`;
  return row?.removed ?? 0;
}

export async function listAudit(
  db: Queryable,
  { before, limit }: { before: bigint | undefined; limit: number },
): Promise<AuditEntry[]> {
  return db.sql<AuditEntry[]>`
    select id, at, owner, key_id, action, detail, result from tallyhook.audit
    where true ${before === undefined ? db.sql`` : db.sql`and id < ${before.toString()}::bigint`}
    order by id desc limit ${limit}`;
}
