/** Wallets as they are accepted. */
import type { Queryable, Tx } from '../../db/connect.ts';
import { columnsOf, newValues, rowOf } from '../../db/rows.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import { wallets } from '../tables.ts';

export type Wallet = typeof wallets.$inferSelect;

export async function findWallet(db: Queryable, key: string): Promise<Wallet | undefined> {
  const rows = await db.sql<Wallet[]>`
    select ${columnsOf(db.sql, wallets)}
    from tallyhook.wallets where key = ${key}`;
  return rows[0];
}

export async function listWallets(
  { sql }: Queryable,
  page: {
    after: string;
    limit: number;
    observedBefore?: Instant | undefined;
    /** Only those that have vanished. */
    isVanished?: boolean;
  },
): Promise<Wallet[]> {
  const { after, limit, observedBefore, isVanished = false } = page;
  return sql<Wallet[]>`
    select ${columnsOf(sql, wallets)} from tallyhook.wallets where key > ${after}
      ${observedBefore === undefined ? sql`` : sql`and observed_at < ${isoText(observedBefore)}`}
      ${isVanished ? sql`and vanished_at is not null` : sql``}
    order by key limit ${limit}`;
}

/** Writes the whole row; the first spelling of the address is kept. */
export async function saveWallet({ sql }: Tx, wallet: Wallet): Promise<void> {
  await sql`
    insert into tallyhook.wallets ${rowOf(sql, wallets, wallet)}
    on conflict (key) do update set ${newValues(sql, wallets, 'key', 'addr')}`;
}

export async function walletsByKey(
  db: Queryable,
  keys: readonly string[],
): Promise<Map<string, Wallet>> {
  const rows = await db.sql<Wallet[]>`
    select ${columnsOf(db.sql, wallets)}
    from tallyhook.wallets where key = any(${keys as string[]}::text[])`;
  return new Map(rows.map((row) => [row.key, row]));
}

/** How many wallets have vanished, up to `max`, and since when the first has. */
export async function countVanished(
  { sql }: Queryable,
  max: number,
): Promise<{ count: number; oldestAt: Instant | null }> {
  const rows = await sql<{ count: number; oldestAt: Instant | null }[]>`
    select count(*)::int as count, min(vanished_at) as oldest_at from (
      select vanished_at from tallyhook.wallets where vanished_at is not null
      order by vanished_at limit ${max}) w`;
  return rows[0] ?? { count: 0, oldestAt: null };
}

/** The wallets that have vanished, first those that did first. */
export async function listVanished({ sql }: Queryable, limit: number): Promise<Wallet[]> {
  return sql<Wallet[]>`
    select ${columnsOf(sql, wallets)} from tallyhook.wallets where vanished_at is not null
    order by vanished_at limit ${limit}`;
}

/** The position of one wallet in service tokens, as in `finance_v1.wallet_positions`. */
interface Position {
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

/**
 * The positions of these wallets by key; every wallet has one. They are read in one statement and
 * so in one snapshot. A drift whose amount is not known yet counts as zero.
 */
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

export function stateOf(wallet: Wallet): { balance: string; status: number } {
  const balance = must(wallet.observedBalance, 'observed balance');
  return { balance: decimalText(balance), status: wallet.status ?? 0 };
}
