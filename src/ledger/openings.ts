/** SQL of the openings of wallets: which exist, and which entries a due one misses. */
import { asJson, type Queryable, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import {
  accountKey,
  accountOfWallet,
  type EffectSettings,
  type Operation,
  walletKeysOf,
} from '../operations/operations.ts';
import {
  BACKDATED_BASES,
  isIncludedInOpenings,
  type MissedEntry,
  movesOf,
  type Opening,
  type OpeningMove,
} from './opening-rule.ts';
import type { PostingRequest } from './posting.ts';

/** The openings of these accounts by account key, posted or not; other accounts are absent. */
export async function openingsOf(
  db: Queryable,
  accounts: readonly string[],
): Promise<Map<string, Opening>> {
  const ids = accounts
    .map(accountKey)
    .flatMap((key) => (key.startsWith('wallet:') ? [key.replace('wallet:', 'opening:')] : []));
  if (ids.length === 0) return new Map();
  const rows = await db.sql<Opening[]>`
    select r.account, r.seen_at, (select min(m.effective_at) from tallyhook.posting_requests m
      where lower(m.account) = lower(r.account) and m.kind = 'opening' and m.problem is null)
      as effective_at
    from tallyhook.posting_requests r
    where r.id = any(${ids}::text[]) and r.seen_at is not null and r.problem is null`;
  return new Map(rows.map((row) => [accountKey(row.account), row]));
}

/**
 * The openings of accounts by key, and those that have to stand earlier because of these entries,
 * with their amounts.
 */
export async function readOpenings(
  tx: Tx,
  accounts: readonly string[],
  entries: readonly { account: string; effectiveAt: Instant }[],
): Promise<{ openings: Map<string, Opening>; moves: (OpeningMove & { amount: bigint })[] }> {
  const openings = await openingsOf(tx, accounts);
  const moves = movesOf(openings, entries);
  const amounts = await openingAmounts(
    tx,
    moves.map(({ account }) => account),
  );
  const amountOf = ({ account }: OpeningMove) => amounts.get(accountKey(account)) ?? 0n;
  return { openings, moves: moves.map((move) => ({ ...move, amount: amountOf(move) })) };
}

/** The sums of the openings of these accounts with their corrections, by account key. */
export async function openingAmounts(
  db: Queryable,
  accounts: readonly string[],
): Promise<Map<string, bigint>> {
  if (accounts.length === 0) return new Map();
  const rows = await db.sql<{ key: string; amount: bigint }[]>`
    select lower(account) as key, sum(amount) as amount from tallyhook.posting_requests
    where kind = 'opening' and problem is null
      and lower(account) = any(${accounts.map(accountKey)}::text[]) group by 1`;
  return new Map(rows.map(({ key, amount }) => [key, amount]));
}

/** When the first entry of each account that a due opening opens took effect. */
export async function listFirstEntries(
  tx: Tx,
  requests: readonly PostingRequest[],
): Promise<{ account: string; effectiveAt: Instant }[]> {
  const accounts = requests.flatMap(({ account, seen }) => (seen ? [accountKey(account)] : []));
  if (accounts.length === 0) return [];
  return tx.sql<{ account: string; effectiveAt: Instant }[]>`
    select k.account, e.effective_at from unnest(${accounts}::text[]) as k(account)
    join tallyhook.accounts a on lower(a.name) = k.account and a.asset = 'service_token'
    cross join lateral (select min(e.effective_at) as effective_at from tallyhook.entries e
      where e.account_id = a.id having count(*) > 0) e`;
}

/**
 * Backdated entries that due openings miss: posted after the opening was computed, and in effect
 * before its observation.
 */
export async function listMissedEntries(
  tx: Tx,
  requests: readonly PostingRequest[],
): Promise<MissedEntry[]> {
  const openings = requests.flatMap(({ id, account, seen }) =>
    seen ? [{ id, account, at: isoText(seen.at), version: seen.version }] : [],
  );
  if (openings.length === 0) return [];
  // `offset 0` keeps each step on its index, also while small tables favour sequential scans.
  return tx.sql<MissedEntry[]>`
    select w.id as "postingRequestId", t.operation_id, t.posting,
      sum(e.amount) as amount
    from jsonb_to_recordset(${asJson(openings)}::jsonb)
      as w(id text, account text, at timestamptz, version bigint)
    cross join lateral (select e.transaction_id, e.amount from tallyhook.entries e
      where e.account_id = (select a.id from tallyhook.accounts a
          where lower(a.name) = lower(w.account) and a.asset = 'service_token')
        and e.version > w.version offset 0) e
    cross join lateral (select t.id, t.operation_id, t.posting from tallyhook.transactions t
      where t.id = e.transaction_id and t.operation_id is not null offset 0) t
    cross join lateral (select o.source, o.effective_basis, o.sent_at, o.effective_at, o.recorded_at
      from tallyhook.operations o where o.id = t.operation_id offset 0) o
    where (t.posting > 1 or o.source = 'report'
        or o.effective_basis = any(${BACKDATED_BASES as string[]}::text[]))
      and coalesce(o.sent_at, o.effective_at, o.recorded_at) < w.at
      and not exists (select from tallyhook.posting_requests c
        where c.id = w.id || ':' || t.operation_id || ':' || t.posting)
    group by w.id, t.id, t.operation_id, t.posting having sum(e.amount) <> 0
    order by t.id`;
}

/** The accounts of the wallets that a write changes once executed. */
function walletAccountsOf(operation: Operation, effectSettings: EffectSettings): string[] {
  return walletKeysOf(operation, effectSettings).map(accountOfWallet);
}

/**
 * The ids of those operations that need no observation to confirm them: every wallet was opened
 * after they took effect, or has no opening yet and will get a later one.
 * @param before operations before this instant are older than any future opening
 */
export async function listIncludedInOpenings(
  db: Queryable,
  operations: readonly Operation[],
  effectSettings: EffectSettings,
  before: Instant,
): Promise<Set<string>> {
  const accounts = operations.flatMap((operation) => walletAccountsOf(operation, effectSettings));
  const openings = await openingsOf(db, accounts);
  const included = operations.filter((operation) =>
    isIncludedInOpenings(operation, walletAccountsOf(operation, effectSettings), openings, before),
  );
  return new Set(included.map(({ id }) => id));
}
