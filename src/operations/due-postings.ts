/**
 * Due postings: the operations whose posting or reversal the ledger has to make. A row is written
 * in the transaction that changes the operation's state, and removed in the one that posts it.
 */
import { asJson, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';

/** An operation whose posting or reversal became due. */
interface DuePosting {
  operationId: string;
  dueAt: Instant;
  /** Why the ledger must not post it; null if it may. */
  quarantineReason: string | null;
}

/** An earlier quarantine reason is kept. */
export async function addDuePostings(tx: Tx, due: readonly DuePosting[]): Promise<void> {
  if (due.length === 0) return;
  const rows = due.map((one) => ({ ...one, dueAt: isoText(one.dueAt) }));
  await tx.sql`
    insert into tallyhook.due_postings as d (operation_id, due_at, quarantine_reason,
      quarantined_at)
    select "operationId", "dueAt", "quarantineReason",
      case when "quarantineReason" is not null then "dueAt" end
    from jsonb_to_recordset(${asJson(rows)}::jsonb)
      as x("operationId" text, "dueAt" timestamptz, "quarantineReason" text)
    order by "operationId"
    on conflict (operation_id) do update
      set quarantine_reason = coalesce(d.quarantine_reason, excluded.quarantine_reason),
        quarantined_at = coalesce(d.quarantined_at, excluded.quarantined_at)`;
}

/**
 * The oldest operations whose posting or reversal is due. Their rows are locked, so a change of
 * state that makes another posting due waits for this transaction.
 */
export async function lockDuePostings(tx: Tx, limit: number): Promise<string[]> {
  const rows = await tx.sql<{ operationId: string }[]>`
    select operation_id from tallyhook.due_postings
    where quarantine_reason is null order by due_at, operation_id limit ${limit} for update`;
  return rows.map(({ operationId }) => operationId);
}

/** Removes those that were made. */
export async function removeDuePostings(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.sql`
    delete from tallyhook.due_postings where operation_id = any(${ids as string[]}::text[])`;
}

export async function quarantineDuePosting(
  { sql }: Tx,
  id: string,
  reason: string,
  at: Instant,
): Promise<void> {
  await sql`
    update tallyhook.due_postings set quarantine_reason = ${reason},
      quarantined_at = ${isoText(at)}
    where operation_id = ${id}`;
}

/** Returns why it was quarantined; its `quarantined_at` stays. */
export async function releaseDuePosting({ sql }: Tx, id: string): Promise<{ problem: string }[]> {
  return sql<{ problem: string }[]>`
    update tallyhook.due_postings d set quarantine_reason = null
    from (select operation_id, quarantine_reason from tallyhook.due_postings
      where operation_id = ${id} and quarantine_reason is not null for update) q
    where d.operation_id = q.operation_id returning q.quarantine_reason as problem`;
}
