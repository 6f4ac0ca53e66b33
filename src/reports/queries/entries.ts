/**
 * Fragments of SQL that read entries by the time at which they took effect, without those that day
 * balances keep already. An inner `offset 0` looks entries up by transaction; without it the
 * planner may read all entries of the history.
 */
import type { Tx } from '../../db/connect.ts';
import { isoText } from '../../kernel/clock.ts';
import type { DayEnd } from '../../ledger/ledger.ts';
import type { ReportParams } from '../params.ts';

function columns({ sql }: Tx) {
  return sql`id, kind, reason_type, operation_id, posting, reverses, effective_at, recorded_at,
    entry_count`;
}

/** Entries of the transactions `t` before this join. */
export function entriesOf({ sql }: Tx) {
  return sql`cross join lateral (
    select e.line, e.account_id, e.amount, e.version from tallyhook.entries e
    where e.transaction_id = t.id offset 0) e`;
}

/**
 * Entries that a day end does not keep, as account_id, amount and version: all without one.
 * @param before only those that took effect before this instant
 */
export function entriesAfter(tx: Tx, after: DayEnd | undefined, before?: string) {
  const { sql } = tx;
  const bound = before === undefined ? sql`` : sql`and t.effective_at < ${before}`;
  if (!after)
    return sql`select t.account_id, t.amount, t.version from tallyhook.entries t
      where true ${bound}`;
  const at = isoText(after.at);
  return sql`
    select e.account_id, e.amount, e.version from tallyhook.transactions t ${entriesOf(tx)}
    where t.effective_at >= ${at} ${bound}
    union all
    select e.account_id, e.amount, e.version from tallyhook.transactions t ${entriesOf(tx)}
    where t.id > ${String(after.lastTransaction)}::bigint and t.effective_at < ${at}
      and t.recorded_at - t.effective_at > interval '1 hour'`;
}

/**
 * Joins the kept balance of account `a` as `name`, with columns at, balance and entries. Most
 * accounts do not change between two day ends, so one look at the index answers for both.
 * @param later the name of a later one, which is joined before
 */
export function keptBalance(
  { sql }: Tx,
  day: DayEnd | undefined,
  { name, later }: { name: string; later?: string },
) {
  const columns = (of: string) => sql`${sql(of)}.at, ${sql(of)}.balance, ${sql(of)}.entries`;
  const none = sql`select null::timestamptz as at, null::numeric as balance, null::bigint as entries
    where false`;
  if (!day) return sql`left join lateral (${none}) ${sql(name)} on true`;
  const at = isoText(day.at);
  const read = (condition = sql``) => sql`(select ${columns('k')} from tallyhook.day_balances k
    where k.account_id = a.id and k.at <= ${at} ${condition} order by k.at desc limit 1)`;
  const kept = later
    ? sql`select ${columns(later)} where ${sql(later)}.at <= ${at}
        union all ${read(sql`and ${sql(later)}.at > ${at}`)}`
    : read();
  return sql`left join lateral (${kept}) ${sql(name)} on true`;
}

/**
 * Transactions that took effect before an instant and were recorded at or after another one. Those
 * that were recorded within an hour are found by when they took effect, the others by their number.
 */
export function lateTransactions(tx: Tx, before: string, recordedSince: string) {
  const { sql } = tx;
  return sql`
    select ${columns(tx)} from tallyhook.transactions
    where effective_at >= ${recordedSince}::timestamptz - interval '1 hour'
      and effective_at < ${before} and recorded_at >= ${recordedSince}
      and recorded_at - effective_at <= interval '1 hour'
    union all
    select ${columns(tx)} from tallyhook.transactions
    where id > coalesce((select c.last_transaction
        from tallyhook.batches b join tallyhook.chain c on c.batch_id = b.id
        where b.recorded_at < ${recordedSince} order by b.recorded_at desc limit 1), 0)
      and effective_at < ${before} and recorded_at >= ${recordedSince}
      and recorded_at - effective_at > interval '1 hour'`;
}

/**
 * Transactions that a report compares with their operations: those of its period, and those since
 * the newest day end. Older ones are compared by the reports of their own periods.
 */
export function comparedTransactions({ tx, from, to, days }: ReportParams) {
  const { sql } = tx;
  if (!days.newest) return sql`select ${columns(tx)} from tallyhook.transactions`;
  const last = String(days.newest.lastTransaction);
  return sql`
    select ${columns(tx)} from tallyhook.transactions where id > ${last}::bigint
    union all
    select ${columns(tx)} from tallyhook.transactions
    where effective_at >= ${from} and effective_at < ${to} and id <= ${last}::bigint`;
}
