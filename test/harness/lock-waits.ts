/**
 * Statements that wait for locks. The server has the databases of other tests too, whose waits
 * `pg_locks` shows beside the own ones.
 */
import type { Queryable } from '../../src/db/connect.ts';
import { until } from './until.ts';

/** What is waited for, by the name that Postgres gives to the wait. */
type LockWait = 'advisory' | 'relation' | 'transactionid';

/**
 * How many statements of this database wait for a lock of that kind, or of any.
 * @param db outside of a transaction, which sees its activity as it first was
 */
export async function lockWaits({ sql }: Queryable, wait?: LockWait): Promise<number> {
  const rows = await sql`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
      and ${wait === undefined ? sql`true` : sql`wait_event = ${wait}`}`;
  return rows.length;
}

/** Waits until just so many do. @throws Error when they do not in time */
export async function untilLockWaits(
  db: Queryable,
  { count = 1, wait, everyMs = 20 }: { count?: number; wait?: LockWait; everyMs?: number } = {},
): Promise<void> {
  const isSo = async () => (await lockWaits(db, wait)) === count || undefined;
  if (!(await until(isSo, { everyMs })))
    throw new Error(`${await lockWaits(db, wait)} statements wait for a lock, not ${count}`);
}
