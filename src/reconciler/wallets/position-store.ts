/**
 * SQL of positions: ledger balance, open operations and drifts of wallets, read in one statement
 * and so in one snapshot. The view `effects` holds the effects of each operation.
 */
import type { Queryable } from '../../db/connect.ts';

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
      select lower(e.account) as name,
        sum(case when e.in_books and e.postings % 2 = 0 then e.amount
          when not e.in_books and e.postings % 2 = 1 then -e.amount else 0 end) as unposted,
        sum(case when e.state = 'sending' then e.amount else 0 end) as in_flight,
        sum(case when e.state in ('unknown', 'undecided') then e.amount else 0 end) as unknown,
        sum(case when e.state in ('sending', 'unknown', 'undecided')
          then greatest(e.amount, 0) else 0 end) as open_up,
        sum(case when e.state in ('sending', 'unknown', 'undecided')
          then least(e.amount, 0) else 0 end) as open_down
      from tallyhook.effects e
      where (e.settled_at is null and e.state in ('sending', 'unknown')
          or e.in_books <> (e.postings % 2 = 1) and e.quarantine_reason is null
          or e.state = 'undecided' or e.quarantine_reason is not null)
        and lower(e.account) = any(${names}::text[])
      group by 1
    ), wanted as (
      select lower(account) as name, sum(amount) as amount from tallyhook.posting_requests
      where posted_at is null and problem is null group by 1
    ), drifting as (
      select 'wallet:' || wallet_key as name, sum(amount) as amount from tallyhook.drifts
      where closed_at is null and wallet_key = any(${keys as string[]}::text[]) group by 1
    )
    select substr(k.name, 8) as key, coalesce(a.balance, 0) as ledger_balance,
      coalesce(p.unposted, 0) + coalesce(w.amount, 0) as unposted,
      coalesce(p.in_flight, 0) as in_flight, coalesce(p.unknown, 0) as unknown,
      coalesce(p.open_up, 0) as open_up, coalesce(p.open_down, 0) as open_down,
      coalesce(d.amount, 0) as drift
    from unnest(${names}::text[]) as k(name)
    left join tallyhook.accounts a on lower(a.name) = k.name and a.asset = 'service_token'
    left join pending p on p.name = k.name
    left join wanted w on w.name = k.name
    left join drifting d on d.name = k.name`;
  return new Map(rows.map((row) => [row.key, row]));
}

export async function countOpenDrifts(
  db: Queryable,
): Promise<{ open: number; unassigned: number }> {
  const rows = await db.sql<{ open: number; unassigned: number }[]>`
    select count(*)::int as open, (count(*) filter (where assignee is null))::int as unassigned
    from tallyhook.drifts where closed_at is null`;
  return rows[0] ?? { open: 0, unassigned: 0 };
}
