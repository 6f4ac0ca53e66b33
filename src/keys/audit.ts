/**
 * The audit trail: who changed what through the API, and when. An entry is committed before its
 * action, so that none is missing, and closed after it.
 */

import { BOUNDS, groupCommit } from '../db/access/group-commit.ts';
import { asJson, type Db, type Queryable, type Tx } from '../db/connect.ts';
import { type Clock, type Instant, isoText } from '../kernel/clock.ts';
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

type Begun = Parameters<Audit['begin']>[0] & { at: Instant };

/** Entries that begin, or end, at the same time share a commit. */
export function makeAudit({ db, clock }: { db: Db; clock: Clock }): Audit {
  const begun = groupCommit<Begun, bigint>(
    (entries) => db.single((q) => insertEntries(q, entries)),
    BOUNDS,
  );
  const ended = groupCommit<Ended, unknown>(async (entries) => {
    await db.single((q) => endEntries(q, entries));
    return entries;
  }, BOUNDS);
  return {
    begin: (entry) => begun.add({ ...entry, at: clock.now() }),
    async end(id, result) {
      await ended.add({ id, result });
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

/** Records what a daemon did by itself, in the transaction of that. */
export async function recordDone(
  tx: Tx,
  entry: Omit<Parameters<Audit['begin']>[0], 'clientAddress'>,
  now: Instant,
): Promise<void> {
  const ids = await insertEntries(tx, [{ ...entry, clientAddress: null, at: now }]);
  await endEntries(
    tx,
    ids.map((id) => ({ id, result: 'done' })),
  );
}

/** Returns their ids, which ascend in the order of the entries. */
async function insertEntries({ sql }: Queryable, entries: readonly Begun[]): Promise<bigint[]> {
  const rows = entries.map((entry, n) => ({ ...entry, n, at: isoText(entry.at) }));
  const inserted = await sql<{ id: bigint }[]>`
    insert into tallyhook.audit (at, owner, key_id, client_address, action, detail)
    select at, owner, "keyId", "clientAddress", action, detail
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(n int, at timestamptz, owner text,
      "keyId" text, "clientAddress" text, action text, detail jsonb)
    order by n
    returning id`;
  return inserted.map(({ id }) => id);
}

interface Ended {
  id: bigint;
  result: string;
}

async function endEntries({ sql }: Queryable, entries: readonly Ended[]): Promise<void> {
  const ids = entries.map(({ id }) => id.toString());
  const results = entries.map(({ result }) => result);
  await sql`
    update tallyhook.audit a set result = x.result
    from unnest(${ids}::bigint[], ${results}::text[]) as x(id, result)
    where a.id = x.id and a.id = any(${ids}::bigint[])`;
}

/** Deletes some of the entries from before; returns how many. Those of the last year stay. */
export async function pruneAudit(db: Queryable, before: Instant): Promise<number> {
  const [row] = await db.sql<{ removed: number }[]>`
    select tallyhook.prune_audit(${isoText(before)}) as removed`;
  return row?.removed ?? 0;
}
