/**
 * How the statements of the queue are planned. The planner takes a batch for a large part of the
 * table and reads all of it, however long it has grown; with these settings every row is found by
 * its index, so that the cost follows the batch. They hold for one transaction.
 */
import type { Tx } from '../../db/connect.ts';

/** To be called before the first statement on deliveries in a transaction. */
export async function planByIndex({ sql }: Tx): Promise<void> {
  await sql`
    select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
      set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
      set_config('enable_sort', 'off', true)`;
}

/**
 * As `planByIndex`, for claims, whose commit need not reach the disk: a claim that a crash of the
 * database forgets is made again, and the delivery repeats with the same id.
 */
export async function planClaims(tx: Tx): Promise<void> {
  await Promise.all([tx.sql`set local synchronous_commit = off`, planByIndex(tx)]);
}
