/**
 * SQL of positions: ledger balance, open operations and drifts of wallets, read in one statement
 * and so in one snapshot. A drift whose amount is not known yet counts as zero.
 */
import type { Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';

/** The position of one wallet in service tokens, as in `finance_v1.wallet_positions`. */
export interface Position {
  key: string;
  ledgerBalance: bigint;
  /** Executed operations and posting requests that are not posted yet. */
  unposted: bigint;
  inFlight: bigint;
  unknown: bigint;
  /** The sums of open operations that increase the balance, and of those that decrease it. */
  openUp: bigint;
  openDown: bigint;
  drift: bigint;
}

/** The positions of these wallets by key; every wallet has one. */
export async function positionsOf(
  db: Queryable,
  keys: readonly string[],
): Promise<Map<string, Position>> {
  const names = keys.map((key) => `wallet:${key}`);
  const rows = await db.sql<Position[]>`
    with pending as (
      select account_key as name, unposted, in_flight, unknown, open_up, open_down
      from tallyhook.pending_effects where account_key = any(${names}::text[])
    ), drifting as (
      select 'wallet:' || wallet_key as name, sum(amount) as amount from tallyhook.drifts
      where closed_at is null and wallet_key = any(${keys as string[]}::text[]) group by 1
    )
    select substr(k.name, 8) as key, coalesce(a.balance, 0) as ledger_balance,
      coalesce(p.unposted, 0) as unposted,
      coalesce(p.in_flight, 0) as in_flight, coalesce(p.unknown, 0) as unknown,
      coalesce(p.open_up, 0) as open_up, coalesce(p.open_down, 0) as open_down,
      coalesce(d.amount, 0) as drift
    from unnest(${names}::text[]) as k(name)
    left join tallyhook.accounts a on lower(a.name) = k.name and a.asset = 'service_token'
    left join pending p on p.name = k.name
    left join drifting d on d.name = k.name`;
  return new Map(rows.map((row) => [row.key, row]));
}

/** The number of wallets whose newest processed observation began before then, up to `max`. */
export async function countStaleWallets(
  db: Queryable,
  before: Instant,
  max: number,
): Promise<number> {
  const rows = await db.sql<{ count: number }[]>`
    select count(*)::int as count from (
      select from tallyhook.wallets where observed_at < ${isoText(before)} limit ${max}) w`;
  return rows[0]?.count ?? 0;
}
