/** What tests read of the ledger: balances of accounts, and the head of the hash chain. */
import type { Queryable } from '../../src/db/connect.ts';

/** Balances and numbers of entries of accounts, by the given names; without those never opened. */
export async function balancesOf(
  db: Queryable,
  names: readonly string[],
): Promise<Map<string, { balance: bigint; version: bigint }>> {
  if (names.length === 0) return new Map();
  const rows = await db.sql<{ given: string; balance: bigint; version: bigint }[]>`
    select n.given, a.balance, a.version
    from unnest(${names as string[]}::text[]) as n(given)
    join tallyhook.accounts a on lower(a.name) = lower(n.given) and a.asset = 'service_token'`;
  return new Map(rows.map(({ given, balance, version }) => [given, { balance, version }]));
}

/** The last head with its count, in the form of `--anchor`; undefined before the first batch. */
export async function readChainHead(db: Queryable): Promise<string | undefined> {
  const rows = await db.sql<{ head: string }[]>`
    select encode(head, 'hex') || ':' || batch_id as head
    from tallyhook.chain order by batch_id desc limit 1`;
  return rows[0]?.head;
}
