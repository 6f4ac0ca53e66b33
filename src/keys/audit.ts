/**
 * The audit trail: who changed what through the API, and when. An entry is committed before its
 * action, so that none is missing, and closed after it.
 */
import { asJson, type Db, type Queryable } from '../db/connect.ts';
import { type Clock, type Instant, isoText } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import type { auditEntry } from '../resources/admin/audit-entry.ts';
import type { Row } from '../resources/resource.ts';

export type AuditEntry = Row<typeof auditEntry>;

export interface Audit {
  begin(
    entry: Pick<AuditEntry, 'owner' | 'keyId' | 'clientAddress' | 'action' | 'detail'>,
  ): Promise<bigint>;
  end(id: bigint, result: string): Promise<void>;
  /** Newest first. */
  list(page: { before: bigint | undefined; limit: number }): Promise<AuditEntry[]>;
}

export function makeAudit({ db, clock }: { db: Db; clock: Clock }): Audit {
  return {
    async begin({ owner, keyId, clientAddress, action, detail }) {
      const at = isoText(clock.now());
      const [row] = await db.sql<{ id: bigint }[]>`
        insert into tallyhook.audit (at, owner, key_id, client_address, action, detail)
        values (${at}, ${owner}, ${keyId}, ${clientAddress}, ${action}, ${asJson(detail)}::jsonb)
        returning id`;
      return must(row, 'audit entry').id;
    },
    async end(id, result) {
      await db.sql`
        update tallyhook.audit set result = ${result} where id = ${id.toString()}::bigint`;
    },
    async list({ before, limit }) {
      const { sql } = db;
      return sql<AuditEntry[]>`
        select id::text as n, at, owner, key_id, client_address, action, detail, result
        from tallyhook.audit
        where true ${before === undefined ? sql`` : sql`and id < ${before.toString()}::bigint`}
        order by id desc limit ${limit}`;
    },
  };
}

/** Deletes some of the entries from before; returns how many. Those of the last year stay. */
export async function pruneAudit(db: Queryable, before: Instant): Promise<number> {
  const [row] = await db.sql<{ removed: number }[]>`
    select tallyhook.prune_audit(${isoText(before)}) as removed`;
  return row?.removed ?? 0;
}
