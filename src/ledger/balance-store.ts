/**
 * SQL that reads the books: balances now or as of two times, accounts, transactions with entries.
 * It never changes anything.
 */
import type { Queryable } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';

export interface Balance {
  balance: bigint;
  /** The number of entries so far. */
  version: bigint;
}

export interface Account extends Balance {
  id: bigint;
  name: string;
  kind: string;
  asset: string;
  openedAt: Instant;
}

export interface Entry {
  account: string;
  amount: bigint;
  balanceAfter: bigint;
  version: bigint;
}

export interface Transaction {
  id: bigint;
  batchId: bigint;
  kind: string;
  operationId: string | null;
  postingRequestId: string | null;
  reverses: bigint | null;
  reasonType: string | null;
  reference: string | null;
  txAppNo: bigint | null;
  txLogNo: bigint | null;
  requestedBy: string | null;
  effectiveAt: Instant;
  effectiveBasis: string;
  recordedAt: Instant;
  /** In the order of their lines; they sum to zero. */
  entries: Entry[];
}

/** An account of a trial balance: exactly one of debit and credit is not zero, unless both are. */
export interface TrialLine {
  account: string;
  asset: string;
  debit: bigint;
  credit: bigint;
}

/**
 * Balances and versions by the names that were asked, whatever their case. An account that was
 * never opened is absent.
 */
export async function balancesOf(
  db: Queryable,
  names: readonly string[],
): Promise<Map<string, Balance>> {
  if (names.length === 0) return new Map();
  const rows = await db.sql<(Balance & { asked: string })[]>`
    select n.asked, a.balance, a.version
    from unnest(${names as string[]}::text[]) as n(asked)
    join tallyhook.accounts a on lower(a.name) = lower(n.asked) and a.asset = 'service_token'`;
  return new Map(rows.map(({ asked, balance, version }) => [asked, { balance, version }]));
}

/** Accounts in the order in which they were opened, after that id. */
export async function listAccounts(
  db: Queryable,
  page: { after?: bigint | undefined; limit: number },
): Promise<Account[]> {
  return db.sql<Account[]>`
    select id, name, kind, asset, balance, version, opened_at
    from tallyhook.accounts where id > ${(page.after ?? 0n).toString()}::bigint
    order by id limit ${page.limit}`;
}

/** Which transactions: of one account, of one operation, or all. */
export interface TransactionFilter {
  account?: string | undefined;
  operationId?: string | undefined;
  /** Only those before that number: where the last page ended. */
  before?: bigint | undefined;
  limit: number;
}

/** Transactions with their entries, the newest first. */
export async function listTransactions(
  db: Queryable,
  filter: TransactionFilter,
): Promise<Transaction[]> {
  const { sql } = db;
  const before = filter.before?.toString() ?? null;
  const rows = await sql<(Omit<Transaction, 'entries'> & Entry)[]>`
    with page as (
      select t.id from tallyhook.transactions t
      where (${before}::bigint is null or t.id < ${before}::bigint)
        ${filter.operationId ? sql`and t.operation_id = ${filter.operationId}` : sql``}
        ${
          filter.account
            ? sql`and exists (select from tallyhook.entries e
              join tallyhook.accounts a on a.id = e.account_id
              where e.transaction_id = t.id and lower(a.name) = lower(${filter.account}))`
            : sql``
        }
      order by t.id desc limit ${filter.limit}
    )
    select t.id, t.batch_id, t.kind, t.operation_id,
      t.posting_request_id, t.reverses, t.reason_type, t.reference,
      t.tx_app_no, t.tx_log_no, t.requested_by,
      t.effective_at, t.effective_basis,
      t.recorded_at, a.name as account, e.amount,
      e.balance_after, e.version
    from page p
    join tallyhook.transactions t on t.id = p.id
    join tallyhook.entries e on e.transaction_id = t.id
    join tallyhook.accounts a on a.id = e.account_id
    order by t.id desc, e.line`;
  const found = new Map<bigint, Transaction>();
  for (const { account, amount, balanceAfter, version, ...head } of rows) {
    const transaction = found.get(head.id) ?? { ...head, entries: [] };
    transaction.entries.push({ account, amount, balanceAfter, version });
    found.set(head.id, transaction);
  }
  return [...found.values()];
}

/**
 * Every account that had entries, with what they sum to. Debits equal credits.
 * @param asOf only what took effect at or before this instant
 * @param knownAt only what was recorded at or before this instant
 */
export async function trialBalance(
  db: Queryable,
  { asOf, knownAt }: { asOf?: Instant; knownAt?: Instant },
): Promise<TrialLine[]> {
  const at = (instant: Instant | undefined) => (instant === undefined ? null : isoText(instant));
  return db.sql<TrialLine[]>`
    select a.name as account, a.asset, greatest(s.total, 0) as debit,
      greatest(-s.total, 0) as credit
    from (
      select account_id, sum(amount) as total from tallyhook.entries
      where (${at(asOf)}::timestamptz is null or effective_at <= ${at(asOf)}::timestamptz)
        and (${at(knownAt)}::timestamptz is null or recorded_at <= ${at(knownAt)}::timestamptz)
      group by account_id) s
    join tallyhook.accounts a on a.id = s.account_id
    order by a.name`;
}

/** The sum of the postings that are wanted for an account and not yet posted. */
export async function sumPostingRequests(db: Queryable, account: string): Promise<bigint> {
  const rows = await db.sql<{ amount: bigint | null }[]>`
    select sum(amount) as amount from tallyhook.posting_requests
    where posted_at is null and problem is null and lower(account) = lower(${account})`;
  return rows[0]?.amount ?? 0n;
}
