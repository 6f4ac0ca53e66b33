/** Accounts with their balances, transactions with their entries, and the trial balance. */
import type { Queryable, Sql } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { account, transaction, trialLine } from '../resources/ledger/ledger.ts';
import type { Row } from '../resources/resource.ts';

type Account = Row<typeof account> & { id: bigint };

type Entry = Row<typeof transaction>['entries'][number];

export interface Transaction extends Omit<Row<typeof transaction>, 'entries'> {
  postingRequestId: string | null;
  /** Of its write; 0 without one. */
  fee: bigint;
  /** In the order of their lines; they sum to zero. */
  entries: Entry[];
}

/** Accounts in the order in which they were opened, after the given id. */
export async function listAccounts(
  db: Queryable,
  page: { after?: bigint | undefined; limit: number },
): Promise<Account[]> {
  return db.sql<Account[]>`
    select id, name as account, kind, asset, balance, version as entries, opened_at
    from tallyhook.accounts where id > ${(page.after ?? 0n).toString()}::bigint
    order by id limit ${page.limit}`;
}

/** Which transactions: of one account, of one operation, or all. */
interface TransactionFilter {
  account?: string | undefined;
  operationId?: string | undefined;
  /** Continue before this id. */
  before?: bigint | undefined;
  limit: number;
}

/** Transactions with their entries, the newest first. */
export async function listTransactions(
  db: Queryable,
  filter: TransactionFilter,
): Promise<Transaction[]> {
  const { sql } = db;
  const { account, operationId } = filter;
  const before = filter.before?.toString();
  const earlier = (id: ReturnType<Sql>) => (before ? sql`and ${id} < ${before}::bigint` : sql``);
  // `offset 0` keeps each step on its index, also with a plan made while the tables were small.
  const those = operationId
    ? sql`(select id from tallyhook.transactions where operation_id = ${operationId} offset 0)`
    : sql`tallyhook.transactions`;
  const rows = await sql<(Omit<Transaction, 'entries'> & Entry)[]>`
    with page as (
      ${
        account
          ? sql`
            select e.transaction_id as id from tallyhook.entries e
            where e.account_id = (select a.id from tallyhook.accounts a
                where lower(a.name) = lower(${account}) and a.asset = 'service_token')
              ${operationId ? sql`and e.transaction_id in (select id from ${those} t)` : sql``}
              ${earlier(sql`e.transaction_id`)}
            order by e.version desc limit ${filter.limit}`
          : sql`
            select t.id from ${those} t
            where true ${earlier(sql`t.id`)}
            order by t.id desc limit ${filter.limit}`
      }
    )
    select t.id, t.batch_id, t.kind, t.operation_id, b.drift_id, b.reason, b.decided_by,
      t.posting_request_id, t.reverses, t.reason_type, t.reference,
      coalesce(t.tx_app_no, o.tx_app_no) as tx_app_no,
      coalesce(t.tx_log_no, o.tx_log_no) as tx_log_no, t.requested_by,
      t.effective_at, t.effective_basis,
      t.recorded_at, coalesce(o.fee_amount, 0) as fee, a.name as account, e.amount,
      e.balance_after
    from page p
    cross join lateral (
      select x.id, x.batch_id, x.kind, x.operation_id, x.posting_request_id, x.reverses,
        x.reason_type, x.reference, x.tx_app_no, x.tx_log_no, x.requested_by, x.effective_at,
        x.effective_basis, x.recorded_at
      from tallyhook.transactions x where x.id = p.id offset 0) t
    cross join lateral (
      select f.line, f.account_id, f.amount, f.balance_after
      from tallyhook.entries f where f.transaction_id = p.id offset 0) e
    join tallyhook.accounts a on a.id = e.account_id
    -- A number may become known after the posting.
    left join lateral (
      select p.tx_app_no, p.tx_log_no, p.fee_amount from tallyhook.operations p
      where p.id = t.operation_id offset 0) o on true
    left join lateral (
      select k.drift_id, k.reason, k.decided_by from tallyhook.bookings k
      where k.posting_request_id = t.posting_request_id offset 0) b on true
    order by t.id desc, e.line`;
  const found = new Map<bigint, Transaction>();
  for (const { account, amount, balanceAfter, ...head } of rows) {
    const transaction = found.get(head.id) ?? { ...head, entries: [] };
    transaction.entries.push({ account, amount, balanceAfter });
    found.set(head.id, transaction);
  }
  return [...found.values()];
}

/** Exactly one of debit and credit is not zero, unless both are. */
type TrialLine = Row<typeof trialLine>;

/** A page of a trial balance, with the totals of the whole. */
interface TrialPage {
  debit: bigint;
  credit: bigint;
  lines: TrialLine[];
}

/**
 * Every account that had entries, by name. Debits equal credits. Of everything until now it shows
 * the kept balances, which the verification compares with the entries: their sum takes a second
 * for two million.
 * @param asOf only what took effect before this instant
 * @param knownAt only what was recorded at or before this instant
 */
export async function trialBalancePage(
  db: Queryable,
  { asOf, knownAt }: { asOf?: Instant | undefined; knownAt?: Instant | undefined },
  page: { after?: string | undefined; limit: number },
): Promise<TrialPage> {
  const { sql } = db;
  const at = (instant: Instant) => sql`${isoText(instant)}::timestamptz`;
  const isNow = asOf === undefined && knownAt === undefined;
  const totals = isNow
    ? sql`select id as account_id, balance as total from tallyhook.accounts where version > 0`
    : sql`
        select account_id, sum(amount) as total from tallyhook.entries where true
          ${asOf === undefined ? sql`` : sql`and effective_at < ${at(asOf)}`}
          ${knownAt === undefined ? sql`` : sql`and recorded_at <= ${at(knownAt)}`}
        group by account_id`;
  const rows = await sql<(Partial<TrialLine> & { debits: bigint; credits: bigint })[]>`
    with line as (
      select a.name as account, a.asset, greatest(s.total, 0) as debit,
        greatest(-s.total, 0) as credit
      from (${totals}) s join tallyhook.accounts a on a.id = s.account_id
    ), page as (
      select account, asset, debit, credit from line
      where ${page.after ?? null}::text is null or account collate "C" > ${page.after ?? null}
      order by account collate "C" limit ${page.limit}
    )
    select t.debits, t.credits, p.account, p.asset, p.debit, p.credit
    from (select coalesce(sum(debit), 0) as debits, coalesce(sum(credit), 0) as credits from line) t
    left join page p on true
    order by p.account collate "C"`;
  return {
    debit: rows[0]?.debits ?? 0n,
    credit: rows[0]?.credits ?? 0n,
    lines: rows.flatMap(({ account, asset, debit, credit }) =>
      account != null && asset != null && debit != null && credit != null
        ? [{ account, asset, debit, credit }]
        : [],
    ),
  };
}
