/** SQL of the evidence that no batch has yet. A trigger moves it, to any batch that is written. */
import type { Queryable, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';

/** How many rows of evidence wait, up to 2,001 inserting statements of one row at least. */
export async function countUnchained({ sql }: Queryable): Promise<number> {
  const rows = await sql<{ found: number }[]>`
    select coalesce(sum(cardinality(row_ids)), 0)::int as found
    from (select row_ids from tallyhook.unchained_rows order by id limit 2001) u`;
  return rows[0]?.found ?? 0;
}

/** A batch without postings, which takes what evidence waits when it commits. */
export async function insertBareBatch(
  { sql }: Tx,
  last: { batchId: bigint; recordedAt: Instant },
  now: Instant,
): Promise<void> {
  await sql`
    insert into tallyhook.batches (id, recorded_at, transactions, entries)
    values (${String(last.batchId + 1n)}::bigint,
      ${isoText(Math.max(now, last.recordedAt + 1))}::timestamptz, 0, 0)`;
}
