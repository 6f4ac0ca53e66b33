/** Why a wallet holds what it holds: its roll-forward, its last observation and its drifts. */
import type { Db, Tx } from '../db/connect.ts';
import { addressKey } from '../kernel/addresses.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { explanation } from '../resources/ledger/wallet.ts';
import type { Row } from '../resources/resource.ts';

type Explained = Row<typeof explanation>;

interface WalletPeriod {
  addr: string;
  from: Instant;
  /** Exclusive. */
  to: Instant;
}

/** Explains one wallet in one snapshot. */
export function explainWallet(db: Db, period: WalletPeriod): Promise<Explained> {
  return db.begin(
    async (tx) => ({
      ...period,
      opening: await balanceBefore(tx, period.addr, period.from),
      movements: await listMovements(tx, period),
      closing: await balanceBefore(tx, period.addr, period.to),
      observed: await lastObservation(tx, period.addr),
      drifts: await listDriftsOf(tx, period),
    }),
    { snapshot: true },
  );
}

/** The ledger balance of a wallet before an instant; null while it is not known. */
async function balanceBefore(tx: Tx, addr: string, at: Instant): Promise<bigint | null> {
  const rows = await tx.sql<{ balance: bigint | null }[]>`
    select case when k.known_from < ${isoText(at)} then coalesce((
        select sum(e.amount) from tallyhook.entries e
        join tallyhook.accounts a on a.id = e.account_id
        where lower(a.name) = k.account_key and a.asset = 'service_token'
          and e.effective_at < ${isoText(at)}), 0) end as balance
    from (select lower(account) as account_key, min(effective_at) as known_from
      from tallyhook.posting_requests
      where kind = 'opening' and posted_at is not null
        and lower(account) = ${`wallet:${addressKey(addr)}`} group by 1) k`;
  return rows[0]?.balance ?? null;
}

async function listMovements(
  tx: Tx,
  { addr, from, to }: WalletPeriod,
): Promise<Explained['movements']> {
  return tx.sql<Explained['movements'][number][]>`
    select t.kind, t.reason_type, count(*)::int as entries,
      coalesce(sum(e.amount) filter (where e.amount > 0), 0) as up,
      coalesce(sum(e.amount) filter (where e.amount < 0), 0) as down
    from tallyhook.accounts a
    join tallyhook.entries e on e.account_id = a.id
    join tallyhook.transactions t on t.id = e.transaction_id
    where lower(a.name) = ${`wallet:${addressKey(addr)}`} and a.asset = 'service_token'
      and e.effective_at >= ${isoText(from)} and e.effective_at < ${isoText(to)}
    group by 1, 2 order by 1, 2`;
}

const DRIFTS_MAX = 200;

/** Oldest first. */
async function listDriftsOf(
  tx: Tx,
  { addr, from, to }: WalletPeriod,
): Promise<Explained['drifts']> {
  return tx.sql<Explained['drifts'][number][]>`
    select id, addr, amount, amount_min, amount_max, state, cause, window_from, window_to,
      closed_at
    from tallyhook.drifts
    where wallet_key = ${addressKey(addr)}
      and coalesce(window_from, window_to) < ${isoText(to)}
      and (closed_at is null or closed_at >= ${isoText(from)})
    order by window_to, id limit ${DRIFTS_MAX}`;
}

/** The last observation, and the ledger at it; null for a wallet that was never observed. */
async function lastObservation(tx: Tx, addr: string): Promise<Explained['observed']> {
  const rows = await tx.sql<NonNullable<Explained['observed']>[]>`
    select observed_at as at, observed_balance as balance, ledger_at_observation as ledger, verdict
    from tallyhook.wallets where key = ${addressKey(addr)} and observed_at is not null`;
  return rows[0] ?? null;
}
