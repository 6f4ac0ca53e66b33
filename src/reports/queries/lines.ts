/**
 * The lines behind the totals of a stored report: the transactions that took effect in its period,
 * and what every account held before. Only what was posted up to its cut-off, so that the lines of
 * a report stay the same.
 */
import { daysOf } from '../../db/clock/calendar.ts';
import type { Sql, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { type DayEnd, findDayEnd } from '../../ledger/ledger.ts';
import type { Report } from '../../resources/reports/content.ts';
import type { ReportLine } from '../../resources/reports/report.ts';
import { entriesOf } from './entries.ts';

/** Which lines a format takes: none, as many as a spreadsheet holds well, or all with openings. */
export type LinesNeeded = 'none' | 'some' | 'all';

export interface LineLimits {
  /** Lines of a spreadsheet. */
  linesMax: number;
  /** Lines and openings of a journal. */
  journalMax: number;
}

export interface ReportLines {
  /** In the order in which they took effect. */
  listed: ReportLine[];
  total: number;
  /** What accounts held before the period; only with all lines. */
  openings: { account: string; amount: bigint }[];
  days: LineDays;
}

/** Days of the zone of the report, such as 2026-12-01; only with all lines. */
interface LineDays {
  /** Of the period. */
  first: string;
  last: string;
  /** On which each listed line took effect. */
  of: string[];
}

const NO_DAYS: LineDays = { first: '', last: '', of: [] };
export const NO_LINES: ReportLines = { listed: [], total: 0, openings: [], days: NO_DAYS };

const PAGE = 5_000;

export function linesOf({ content, periodFrom, periodTo }: Report): LinesOf {
  const lastTransaction = BigInt(content.cut_off.transactions);
  return { from: periodFrom, to: periodTo, lastTransaction };
}

/** @throws Failure `conflict` when there are too many for a format that needs all */
export async function readLines(
  tx: Tx,
  report: Report,
  needed: LinesNeeded,
  { linesMax, journalMax }: LineLimits,
): Promise<ReportLines> {
  if (needed === 'none') return NO_LINES;
  const of = linesOf(report);
  const total = await countLines(tx, of);
  const openings = needed === 'all' ? await listOpenings(tx, of, journalMax + 1) : [];
  if (needed === 'all' && total + openings.length > journalMax)
    throw new Failure(
      'conflict',
      `the period has ${total} transactions and ${openings.length} opening balances, of which ` +
        `this format takes ${journalMax}; choose a shorter period, or export the whole ledger: ` +
        'npx tallyhook export ledger --format hledger',
    );
  const listed: ReportLine[] = [];
  const bound = Math.min(total, needed === 'some' ? linesMax : journalMax);
  while (listed.length < bound) {
    const last = listed.at(-1);
    const after = last && { at: last.effectiveAt, transaction: last.transactionId };
    const limit = Math.min(PAGE, bound - listed.length);
    const page = await listLines(tx, of, {}, { after, limit });
    if (page.length === 0) break;
    listed.push(...page);
  }
  const days = needed === 'all' ? await readDays(tx, report, listed) : NO_DAYS;
  return { listed, total, openings, days };
}

async function readDays(
  tx: Tx,
  { content, periodFrom, periodTo }: Report,
  listed: readonly ReportLine[],
): Promise<LineDays> {
  const instants = [periodFrom, periodTo - 1, ...listed.map(({ effectiveAt }) => effectiveAt)];
  const [first = '', last = '', ...of] = await daysOf(tx, instants, content.time_zone);
  return { first, last, of };
}

/** The period of a report, and the last transaction that it knows. */
interface LinesOf {
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

async function countLines({ sql }: Tx, of: LinesOf): Promise<number> {
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
        t.posting_request_id,
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
    select t.id as transaction_id, t.kind, t.reason_type, t.operation_id, t.reference, t.tx_app_no,
      t.tx_log_no, t.effective_at, t.effective_basis, t.recorded_at, t.reverses,
      case when t.amount is null then 0 else 2 * (t.posting % 2) - 1 end as operations,
      coalesce((2 * (t.posting % 2) - 1) * t.amount,
        case when t.reverses is null then e.moved else -e.moved end) as amount,
      coalesce((2 * (t.posting % 2) - 1) * t.fee_amount, 0) as fees, e.accounts, e.changes,
      b.drift_id, b.reason, b.decided_by
    from page t
    left join lateral (
      select k.drift_id, k.reason, k.decided_by from tallyhook.bookings k
      where k.posting_request_id = t.posting_request_id offset 0) b on true
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
async function listOpenings(
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
