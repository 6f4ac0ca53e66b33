/**
 * Advisory locks of operations. All are held to the end of a transaction, and several are
 * taken in one order, so that two transactions never wait for each other.
 */
import type { Tx } from '../../db/connect.ts';

/** First halves of the keys: what may stop everything, and what tells single writes apart. */
const STOP = 7_240_201;
const APART = 7_240_202;
const CLAIM = 7_240_203;

/** Held by every transaction that commits an intent: none commits once `lockStop` was granted. */
export async function lockWritesShared(tx: Tx): Promise<void> {
  await tx.sql`select pg_advisory_xact_lock_shared(${STOP}::int, 0)`;
}

/** Waits for the intents that are being committed, and keeps others out. */
export async function lockWrites(tx: Tx): Promise<void> {
  await tx.sql`select pg_advisory_xact_lock(${STOP}::int, 0)`;
}

/** One transaction at a time for each of these names: wallets, tokens, keys, numbers. */
export async function lockNames(tx: Tx, names: Iterable<string>): Promise<void> {
  await tx.sql`
    select pg_advisory_xact_lock(${APART}::int, s.hash) from (
      select distinct hashtext(name) as hash from unnest(${[...names]}::text[]) name
      order by hash offset 0) s`;
}

/** Whether this transaction is the one that claims queued writes now. */
export async function tryLockClaim(tx: Tx): Promise<boolean> {
  const rows = await tx.sql<{ mine: boolean }[]>`
    select pg_try_advisory_xact_lock(${CLAIM}::int, 0) as mine`;
  return rows[0]?.mine === true;
}

/** The name of a transaction number of the service, under which its operations are told apart. */
export function txNumberLock(txAppNo: bigint, txLogNo: bigint): string {
  return `tx ${txAppNo}/${txLogNo}`;
}
