/**
 * Balances kept at the ends of days, so that a report reads its period and not the history. A day
 * end has a place in time and in the order of recording: it keeps what took effect before it, as
 * far as it was recorded when it was made. What is recorded later and took effect before is read
 * beside it. Kept rows never change; `verify` proves them from the entries.
 */
import type { Db, Queryable, Tx } from '../db/connect.ts';
import { rowOf } from '../db/rows.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { dayEnds } from './tables.ts';

/** A day of a large installation has some ten million entries. */
const DEADLINE_MS = 600_000;

/**
 * Makes the next day end that is due, if any; does nothing while another daemon makes one.
 * @param timeZone in which days begin
 * @returns whether one was made, so that the next may be due as well
 */
export function keepDayEnd(db: Db, now: Instant, timeZone: string): Promise<boolean> {
  return db.begin(
    async (tx) => {
      if (!(await lockDayEnds(tx))) return false;
      const last = await findDayEnd(tx);
      const next = await findDueDayEnd(tx, last, timeZone);
      if (next) await insertDayEnd(tx, last, next, now);
      return next !== undefined;
    },
    { snapshot: true, deadlineMs: DEADLINE_MS },
  );
}

/** How far the postings went when a day end was made. */
export type DayEnd = Omit<typeof dayEnds.$inferSelect, 'madeAt'>;

/** The newest one at or before an instant, or of all. */
export async function findDayEnd(
  { sql }: Pick<Queryable, 'sql'>,
  until?: string,
): Promise<DayEnd | undefined> {
  const rows = await sql<DayEnd[]>`
    select at, last_batch, last_transaction, entries from tallyhook.day_ends
    ${until === undefined ? sql`` : sql`where at <= ${until}`} order by at desc limit 1`;
  return rows[0];
}

/** Locks day ends until the transaction ends; false when already locked. */
async function lockDayEnds({ sql }: Tx): Promise<boolean> {
  const rows = await sql<{ locked: boolean }[]>`
    select pg_try_advisory_xact_lock(hashtextextended('tallyhook day ends', 0)) as locked`;
  return rows[0]?.locked ?? false;
}

/**
 * The next day end that is due: of the first day after the last one in which something took effect,
 * once a batch was recorded an hour after it. Times of batches rise strictly, so what is recorded
 * from then on and took effect before is at least an hour late: the index `transactions_late` has
 * it.
 */
async function findDueDayEnd(
  { sql }: Tx,
  last: DayEnd | undefined,
  timeZone: string,
): Promise<DayEnd | undefined> {
  const since = last ? isoText(last.at) : '-infinity';
  const rows = await sql<DayEnd[]>`
    with head as (
      select b.id, b.recorded_at, c.last_transaction from tallyhook.batches b
      join tallyhook.chain c on c.batch_id = b.id order by b.id desc limit 1
    ), day as (
      select tallyhook.day_begin(tallyhook.day_of(t.effective_at, ${timeZone}) + 1, ${timeZone})
        as at
      from tallyhook.transactions t where t.effective_at >= ${since}
      order by t.effective_at limit 1
    )
    select d.at, h.id as last_batch, h.last_transaction, ${String(last?.entries ?? 0n)}::bigint
      + (select coalesce(sum(b.entries), 0)::bigint from tallyhook.batches b
        where b.id > ${String(last?.lastBatch ?? 0n)}::bigint and b.id <= h.id) as entries
    from head h cross join day d where h.recorded_at >= d.at + interval '1 hour'`;
  return rows[0];
}

/** Stores a day end with the balances that differ from those of the one before. */
async function insertDayEnd(
  { sql }: Tx,
  last: DayEnd | undefined,
  next: DayEnd,
  madeAt: Instant,
): Promise<void> {
  const at = isoText(next.at);
  const since = last ? isoText(last.at) : '-infinity';
  const known = String(last?.lastTransaction ?? 0n);
  const upTo = String(next.lastTransaction);
  await sql`insert into tallyhook.day_ends ${rowOf(sql, dayEnds, { ...next, madeAt })}`;
  await sql`
    with changed as (
      select e.account_id, sum(e.amount) as amount, count(*) as entries
      from (
        select id from tallyhook.transactions
        where effective_at >= ${since} and effective_at < ${at} and id <= ${upTo}::bigint
        union all
        select id from tallyhook.transactions
        where id > ${known}::bigint and id <= ${upTo}::bigint and effective_at < ${since}
          and recorded_at - effective_at > interval '1 hour'
      ) t
      cross join lateral (select account_id, amount from tallyhook.entries
        where transaction_id = t.id offset 0) e
      group by e.account_id
    )
    insert into tallyhook.day_balances (account_id, at, balance, entries)
    select c.account_id, ${at}, c.amount + coalesce(b.balance, 0),
      c.entries + coalesce(b.entries, 0)
    from changed c
    left join lateral (select balance, entries from tallyhook.day_balances
      where account_id = c.account_id and at < ${at} order by at desc limit 1) b on true`;
}

/** Kept balances and day ends named in a verification at most. */
const OFF_MAX = 101;

/**
 * Day ends, and their balances, that do not follow from the entries. Each entry is placed at the
 * first day end that includes it, so every kept balance is compared, in one pass.
 */
export async function listDayEndsOff({ sql }: Tx): Promise<{ row: string; text: string }[]> {
  const ends = await sql<{ at: Instant }[]>`
    select d.at from (
      select at, last_batch, last_transaction, entries, lag(last_batch, 1, 0::bigint) over w
        as batch_before, lag(entries, 1, 0::bigint) over w as entries_before
      from tallyhook.day_ends window w as (order by at)) d
    left join tallyhook.batches b on b.id = d.last_batch
    left join tallyhook.chain c on c.batch_id = d.last_batch
    where c.last_transaction is distinct from d.last_transaction
      or b.recorded_at < d.at + interval '1 hour'
      or d.entries - d.entries_before <> (select coalesce(sum(x.entries), 0)
        from tallyhook.batches x where x.id > d.batch_before and x.id <= d.last_batch)
    order by d.at limit ${OFF_MAX}`;
  const balances = await sql<{ name: string; at: Instant; kept: bigint | null; sum: bigint }[]>`
    with placed as (
      select t.id, (select d.at from tallyhook.day_ends d
        where d.at > t.effective_at and d.last_transaction >= t.id order by d.at limit 1) as at
      from tallyhook.transactions t
    ), changed as (
      select e.account_id, p.at, sum(e.amount) as amount, count(*) as entries
      from placed p join tallyhook.entries e on e.transaction_id = p.id
      where p.at is not null group by e.account_id, p.at
    ), summed as (
      select account_id, at, sum(amount) over w as balance, (sum(entries) over w)::bigint as entries
      from changed window w as (partition by account_id order by at)
    )
    select coalesce(a.name, account_id::text) as name, at, k.balance as kept, s.balance as sum
    from summed s full join tallyhook.day_balances k using (account_id, at)
    left join tallyhook.accounts a on a.id = account_id
    where (s.balance, s.entries) is distinct from (k.balance, k.entries)
    order by at, name limit ${OFF_MAX}`;
  return [
    ...ends.map(({ at }) => ({
      row: `day end ${isoText(at)}`,
      text: 'does not continue the batches',
    })),
    ...balances.map(({ name, at, kept, sum }) => ({
      row: `account ${name}`,
      text:
        `has ${kept ?? 'no balance'} kept as of ${isoText(at)}, but its entries sum to ` +
        `${sum ?? 'none'}`,
    })),
  ];
}
