/**
 * SQL of the lines behind the totals of a report: the transactions that took effect in its period,
 * and what every account held before. Only what was posted up to its cut-off, so that the lines of
 * a report stay the same.
 */
import type { Sql, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { type DayEnd, findDayEnd } from '../../ledger/ledger.ts';
import { entriesOf } from './entries-store.ts';

/** A transaction. */
export interface ReportLine {
  transaction: bigint;
  /** Of the write, also for its reversal; of other postings opening, booking or reversal. */
  kind: string;
  reasonType: string | null;
  /** What it counts in the movements: 1, for a reversal -1; 0 if it is not of a write. */
  operations: number;
  /** Requested by the write, or what another posting moves; negative for a reversal. */
  amount: bigint;
  /** Requested by the write. */
  fees: bigint;
  operationId: string | null;
  reference: string | null;
  txAppNo: bigint | null;
  txLogNo: bigint | null;
  effectiveAt: Instant;
  effectiveBasis: string;
  recordedAt: Instant;
  reverses: bigint | null;
  entries: { account: string; amount: bigint }[];
}

/** The period of a report, and the last transaction that it knows. */
export interface LinesOf {
  from: Instant;
  /** Exclusive. */
  to: Instant;
  lastTransaction: bigint;
}

export interface LineFilter {
  kind?: string | undefined;
  /** Null: those without a reason. */
  reasonType?: string | null | undefined;
  account?: string | undefined;
}

export interface LinePosition {
  at: Instant;
  transaction: bigint;
}

export async function countLines({ sql }: Tx, of: LinesOf): Promise<number> {
  const rows = await sql<{ total: number }[]>`
    select count(*)::int as total from tallyhook.transactions t
    where t.effective_at >= ${isoText(of.from)} and t.effective_at < ${isoText(of.to)}
      and t.id <= ${String(of.lastTransaction)}::bigint`;
  return rows[0]?.total ?? 0;
}

/** In the order in which they took effect. */
export async function listLines(
  { sql }: Tx,
  of: LinesOf,
  filter: LineFilter,
  { after, limit }: { after?: LinePosition | undefined; limit: number },
): Promise<ReportLine[]> {
  const begin = isoText(after?.at ?? of.from);
  const rows = await sql<
    (Omit<ReportLine, 'entries'> & { accounts: string[]; changes: bigint[] })[]
  >`
    with page as (
      select t.id, coalesce(o.kind, t.kind) as kind, t.reason_type, t.posting, t.operation_id,
        t.reference, coalesce(t.tx_app_no, o.tx_app_no) as tx_app_no,
        coalesce(t.tx_log_no, o.tx_log_no) as tx_log_no, t.effective_at, t.effective_basis,
        t.recorded_at, t.reverses, o.amount, o.fee_amount
      from tallyhook.transactions t
      left join lateral (
        select w.kind, w.amount, w.fee_amount, w.tx_app_no, w.tx_log_no
        from tallyhook.operations w where w.id = t.operation_id offset 0) o on true
      where t.effective_at >= ${begin} and t.effective_at < ${isoText(of.to)}
        and t.id <= ${String(of.lastTransaction)}::bigint
        ${after ? isAfter(sql, after) : sql``} ${matches(sql, filter)}
      order by t.effective_at, t.id limit ${limit}
    )
    select t.id as transaction, t.kind, t.reason_type, t.operation_id, t.reference, t.tx_app_no,
      t.tx_log_no, t.effective_at, t.effective_basis, t.recorded_at, t.reverses,
      case when t.amount is null then 0 else 2 * (t.posting % 2) - 1 end as operations,
      coalesce((2 * (t.posting % 2) - 1) * t.amount,
        case when t.reverses is null then e.moved else -e.moved end) as amount,
      coalesce((2 * (t.posting % 2) - 1) * t.fee_amount, 0) as fees, e.accounts, e.changes
    from page t
    cross join lateral (
      select sum(x.amount) filter (where x.amount > 0) as moved,
        array_agg(a.name order by x.line) as accounts,
        array_agg(x.amount order by x.line) as changes
      from (select f.line, f.account_id, f.amount from tallyhook.entries f
        where f.transaction_id = t.id offset 0) x
      cross join lateral (select b.name from tallyhook.accounts b
        where b.id = x.account_id offset 0) a) e
    order by t.effective_at, t.id`;
  return rows.map(({ accounts, changes, ...line }) => ({
    ...line,
    entries: accounts.map((name, i) => ({ account: name, amount: changes[i] ?? 0n })),
  }));
}

function isAfter(sql: Sql, { at, transaction }: LinePosition) {
  return sql`and (t.effective_at, t.id) > (${isoText(at)}, ${String(transaction)}::bigint)`;
}

function matches(sql: Sql, { kind, reasonType: reason, account }: LineFilter) {
  return sql`
    ${kind === undefined ? sql`` : sql`and coalesce(o.kind, t.kind) = ${kind}`}
    ${reason === undefined ? sql`` : sql`and t.reason_type is not distinct from ${reason}`}
    ${account === undefined ? sql`` : sql`and exists (${entryOf(sql, account)})`}`;
}

/** An entry of the transaction `t` on an account. */
function entryOf(sql: Sql, account: string) {
  return sql`select from tallyhook.entries e where e.transaction_id = t.id
    and e.account_id = (select a.id from tallyhook.accounts a
      where lower(a.name) = lower(${account}) and a.asset = 'service_token')`;
}

/** What accounts held before the period, by name, without those that held nothing. */
export async function listOpenings(
  tx: Tx,
  of: LinesOf,
  limit: number,
): Promise<{ account: string; amount: bigint }[]> {
  const { sql } = tx;
  const from = isoText(of.from);
  const day = await findDayEnd(tx, from);
  const kept = day && day.lastTransaction <= of.lastTransaction ? day : undefined;
  return sql<{ account: string; amount: bigint }[]>`
    select a.name as account, s.amount
    from (
      select x.account_id, sum(x.amount) as amount from (
        ${kept ? keptBalances(tx, kept) : sql``}
        select e.account_id, e.amount from tallyhook.transactions t ${entriesOf(tx)}
        where t.effective_at < ${from} and t.id <= ${String(of.lastTransaction)}::bigint
          ${kept ? notKept(tx, kept) : sql``}) x
      group by x.account_id) s
    join tallyhook.accounts a on a.id = s.account_id
    where s.amount <> 0 order by a.name limit ${limit}`;
}

function keptBalances({ sql }: Tx, { at }: DayEnd) {
  return sql`
    (select distinct on (k.account_id) k.account_id, k.balance as amount
    from tallyhook.day_balances k where k.at <= ${isoText(at)}
    order by k.account_id, k.at desc)
    union all`;
}

function notKept({ sql }: Tx, { at, lastTransaction }: DayEnd) {
  return sql`and (t.effective_at >= ${isoText(at)}
    or t.id > ${String(lastTransaction)}::bigint
      and t.recorded_at - t.effective_at > interval '1 hour')`;
}
