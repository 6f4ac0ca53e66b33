/**
 * Advisory locks of operations, held until the end of the transaction. Several are taken in one
 * order, so that transactions cannot deadlock.
 */
import type { Tx } from '../../db/connect.ts';

/** First halves of the lock keys. */
const WRITES = 7_240_201;
const NAMES = 7_240_202;
const CLAIM = 7_240_203;

/** Taken by every transaction that commits an intent; waits while `lockWrites` is held. */
export async function lockWritesShared(tx: Tx): Promise<void> {
  await tx.sql`select pg_advisory_xact_lock_shared(${WRITES}::int, 0)`;
}

/** Waits until no intent is being committed and blocks further ones. */
export async function lockWrites(tx: Tx): Promise<void> {
  await tx.sql`select pg_advisory_xact_lock(${WRITES}::int, 0)`;
}

/** Locks names: wallets, tokens, keys, transaction numbers. */
export async function lockNames(tx: Tx, names: Iterable<string>): Promise<void> {
  await tx.sql`
    select pg_advisory_xact_lock(${NAMES}::int, s.hash) from (
      select distinct hashtext(name) as hash from unnest(${[...names]}::text[]) name
      order by hash offset 0) s`;
}

/** False while another transaction claims queued writes. */
export async function tryLockClaim(tx: Tx): Promise<boolean> {
  const rows = await tx.sql<{ granted: boolean }[]>`
    select pg_try_advisory_xact_lock(${CLAIM}::int, 0) as granted`;
  return rows[0]?.granted === true;
}

/** The name to lock before an operation gets this transaction number, of any app. */
export function txNumberLock(txLogNo: bigint): string {
  return `tx ${txLogNo}`;
}
