/** The ledger: cut-off, completeness of batches, sums per account, movements, prior lines. */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { DayEnd } from '../../ledger/ledger.ts';
import type {
  movement,
  ownAccount,
  priorLine,
  reconciliation,
} from '../../resources/reports/content.ts';
import type { Row } from '../../resources/resource.ts';
import type { FindingRow } from '../findings.ts';
import type { ReportParams } from '../params.ts';
import { entriesAfter, entriesOf, keptBalance, lateTransactions } from './entries.ts';

export type CutOff = Row<typeof reconciliation>['cutOff'] & {
  /** True if the numbers of batches and transactions have no gap. */
  gapless: boolean;
};

/** Counts only what came after the newest day end; the rest is counted there. */
export async function readCutOff(tx: Tx, newest: DayEnd | undefined): Promise<CutOff> {
  const batch = String(newest?.lastBatch ?? 0n);
  const transaction = String(newest?.lastTransaction ?? 0n);
  const rows = await tx.sql<CutOff[]>`
    select b.known_at, b.batch, ${transaction}::bigint + t.transactions as transactions,
      ${String(newest?.entries ?? 0n)}::bigint + b.entries as entries,
      b.batch = ${batch}::bigint + b.batches
        and t.last = ${transaction}::bigint + t.transactions as gapless,
      (select encode(c.head, 'hex') || ':' || c.batch_id from tallyhook.chain c
        where c.batch_id = b.batch) as chain_head
    from (select coalesce(max(recorded_at), (select max(recorded_at) from tallyhook.batches))
          as known_at, coalesce(max(id), ${batch}::bigint) as batch, count(*) as batches,
        coalesce(sum(entries), 0)::bigint as entries
      from tallyhook.batches where id > ${batch}::bigint) b
    cross join (select count(*) as transactions, coalesce(max(id), ${transaction}::bigint) as last
      from tallyhook.transactions where id > ${transaction}::bigint) t`;
  const [row] = rows;
  return (
    row ?? {
      knownAt: null,
      batch: 0n,
      transactions: 0n,
      entries: 0n,
      gapless: true,
      chainHead: null,
    }
  );
}

/** Batches since the newest day end whose counts differ from their rows. */
export async function listIncompleteBatches(params: ReportParams): Promise<FindingRow[]> {
  const { newest } = params.days;
  return params.tx.sql<FindingRow[]>`
    select 'batch_incomplete' as kind, 'batch:' || b.id as subject, null::numeric as amount,
      b.recorded_at as since, null as assignee,
      jsonb_build_object('transactions', b.transactions, 'found_transactions', coalesce(t.found, 0),
        'entries', b.entries, 'found_entries', coalesce(t.entries, 0)) as evidence,
      (count(*) over ())::int as total
    from tallyhook.batches b
    left join (select batch_id, count(*) as found, sum(entry_count) as entries
      from tallyhook.transactions where id > ${String(newest?.lastTransaction ?? 0n)}::bigint
      group by batch_id) t on t.batch_id = b.id
    where b.id > ${String(newest?.lastBatch ?? 0n)}::bigint
      and (b.transactions <> coalesce(t.found, 0) or b.entries <> coalesce(t.entries, 0))
    order by b.id limit ${params.limits.listMax}`;
}

/** Sums of a kind of account, or of one account. */
export interface SumsRow extends Row<typeof ownAccount> {
  /** `own`: an operator, fees or collection account, or its wallet. `off`: wrong balance. */
  part: 'kind' | 'own' | 'off';
  /** As of the end of the period. */
  debit: bigint;
  credit: bigint;
  /** Sum of all entries, later ones too. */
  whole: bigint;
  /** Of the balances of wallets that are compared with observations, what the closing lacks. */
  afterPeriod: bigint;
  since: Instant | null;
  evidence: string;
  total: number;
}

/**
 * The roll-forward of the period per kind of account and per own account, and every account whose
 * balance differs from its entries. A reversal counts as a negative movement on the side of the
 * entry that it negates, so gross movements exclude reversed ones. Openings count with their
 * corrections as one movement.
 *
 * Opening, closing and the present balance each continue the newest day balance before them, so a
 * wrong day balance shows as a roll-forward or an account that is off.
 */
export async function listSums(params: ReportParams): Promise<SumsRow[]> {
  const { tx, from, to, lateSince, days, limits } = params;
  return tx.sql<SumsRow[]>`
    with before as (
      select account_id, sum(amount) as amount
      from (${entriesAfter(tx, days.from, from)}) x group by account_id
    ), until as (
      select account_id, sum(amount) as amount, count(*) as entries
      from (${entriesAfter(tx, days.to, to)}) x group by account_id
    ), whole as (
      select account_id, sum(amount) as amount, count(*) as entries
      from (${entriesAfter(tx, days.newest)}) x group by account_id
    ), prior as (
      select e.account_id, sum(e.amount) as amount
      from (${lateTransactions(tx, from, lateSince)}) t ${entriesOf(tx)} group by e.account_id
    ), flow as (${flowOf(params)}), own_wallets as (${ownWallets(tx)}), account as (
      select a.id, a.name, a.kind, a.opened_at, h.name is not null as observed,
        h.name is not null or a.kind in ('operator', 'fees', 'collection') as own, a.balance,
        a.version, l.version as last, l.balance_after, w.account_id is not null as changed,
        v.key is not null as compared, coalesce(v.opened_at < ${to}, false) as opened,
        coalesce(k_to.entries, 0) + coalesce(u.entries, 0) > 0 as known,
        coalesce(k_whole.entries, 0) + coalesce(w.entries, 0) as entries,
        coalesce(k_whole.balance, 0) + coalesce(w.amount, 0) as total,
        coalesce(k_from.balance, 0) + coalesce(b.amount, 0) as opening,
        coalesce(p.amount, 0) as prior_period,
        coalesce(k_to.balance, 0) + coalesce(u.amount, 0) as closing,
        coalesce(f.incoming, 0) + greatest(coalesce(f.opened, 0), 0) as incoming,
        coalesce(f.fees, 0) as fees,
        coalesce(f.outgoing, 0) - coalesce(f.fees, 0) - least(coalesce(f.opened, 0), 0) as outgoing
      from tallyhook.accounts a
      left join before b on b.account_id = a.id
      left join until u on u.account_id = a.id
      left join whole w on w.account_id = a.id
      left join prior p on p.account_id = a.id
      left join flow f on f.account_id = a.id
      left join own_wallets h on h.name = lower(a.name)
      left join tallyhook.wallets v on a.kind = 'wallet' and v.key = substr(lower(a.name), 8)
        and v.opened_at is not null and v.observed_balance is not null
      ${keptBalance(tx, days.newest, { name: 'k_whole' })}
      ${keptBalance(tx, days.to, { name: 'k_to', later: 'k_whole' })}
      ${keptBalance(tx, days.from, { name: 'k_from', later: 'k_to' })}
      left join lateral (select e.version, e.balance_after from tallyhook.entries e
        where e.account_id = a.id and w.account_id is not null order by e.version desc limit 1) l
        on true
    )
    select 'kind' as part, kind as name, (count(*) filter (where known))::int as accounts,
      false as observed,
      sum(opening) as opening, sum(prior_period) as prior_period, sum(incoming) as incoming,
      sum(outgoing) as outgoing, sum(fees) as fees, sum(closing) as closing,
      sum(greatest(closing, 0)) as debit, sum(greatest(-closing, 0)) as credit, sum(total) as whole,
      coalesce(sum(balance - closing) filter (where compared and (known or opened)), 0)
        as after_period,
      null::timestamptz as since, null as evidence, 0 as total
    from account group by kind
    union all
    (select 'own', name, 1, observed, opening, prior_period, incoming, outgoing, fees, closing,
      0, 0, 0, 0, null, null, (count(*) over ())::int
    from account where own and known order by name limit ${limits.listMax})
    union all
    (select 'off', name, 1, observed, opening, prior_period, incoming, outgoing, fees, closing,
      balance - total, 0, 0, 0, opened_at,
      format('balance %s, sum %s, last entry %s, version %s of %s entries', balance, total,
        case when changed then balance_after else total end, version, entries),
      (count(*) over ())::int
    from account
    where balance <> total or version <> entries
      or changed and (last <> version or balance <> balance_after)
    order by name limit ${limits.listMax})
    order by part, name`;
}

/** Gross movements of the period per account. */
function flowOf({ tx, from, to }: ReportParams) {
  return tx.sql`
    select e.account_id,
      sum(case when t.reverses is null then greatest(e.amount, 0) else least(e.amount, 0) end)
        filter (where t.kind <> 'opening' and (e.amount > 0) = (t.reverses is null)) as incoming,
      sum(-e.amount) filter (where t.kind <> 'opening'
        and (e.amount > 0) <> (t.reverses is null)) as outgoing,
      sum(e.amount) filter (where t.kind = 'opening') as opened,
      sum(case when t.reverses is null then o.fee_amount else -o.fee_amount end)
        filter (where (e.amount > 0) <> (t.reverses is null) and o.fee_amount > 0) as fees
    from tallyhook.transactions t
    ${entriesOf(tx)}
    left join lateral (select w.fee_amount from tallyhook.operations w
      where w.id = t.operation_id offset 0) o on true
    where t.effective_at >= ${from} and t.effective_at < ${to}
    group by e.account_id`;
}

/** The wallets that the settings of the ledger name, and those that two owners mapped. */
function ownWallets({ sql }: Tx) {
  return sql`
    select lower('wallet:' || w.addr) as name from tallyhook.installation i
    cross join lateral (
      select value as addr from jsonb_each_text(coalesce(i.value::jsonb -> 'operators', '{}'))
      union select addr from tallyhook.mapped_operators
      union select i.value::jsonb ->> 'fees' union select i.value::jsonb ->> 'collection') w
    where i.name = 'ledger_settings' and w.addr is not null`;
}

/**
 * The begin of the period before: of whole days of the zone the calendar month, year or days
 * before, else just as long. Never before 1970, when no write can have been: RFC 3339 has no years
 * below 0.
 */
export async function findBeginBefore(params: ReportParams, timeZone: string): Promise<Instant> {
  const { tx, from, to } = params;
  const rows = await tx.sql<{ at: Instant }[]>`
    select greatest(case
        when tallyhook.day_begin(first, ${timeZone}) <> ${from}
          or tallyhook.day_begin(last, ${timeZone}) <> ${to}
          then ${from}::timestamptz - (${to}::timestamptz - ${from}::timestamptz)
        else tallyhook.day_begin((case
          when first + interval '1 year' = last then first - interval '1 year'
          when first + interval '1 month' = last then first - interval '1 month'
          else first - (last - first) * interval '1 day' end)::date, ${timeZone}) end,
      least(${from}::timestamptz, 'epoch')) as at
    from (select tallyhook.day_of(${from}::timestamptz, ${timeZone}) as first,
      tallyhook.day_of(${to}::timestamptz, ${timeZone}) as last) x`;
  return must(rows[0], 'begin of the period before').at;
}

/** Posted operations by kind and reason, of the period and of the one before. */
export async function listMovements(
  params: ReportParams,
  beginBefore: string,
): Promise<MovementRow[]> {
  const { tx, from, to, limits } = params;
  const { sql } = tx;
  return sql<MovementRow[]>`
    select kind, reason_type, ${sumsOf(tx, false)}, ${sumsOf(tx, true)},
      (count(*) over ())::int as total,
      coalesce(sum(sum(fees) filter (where not x.earlier)) over (), 0) as all_fees,
      coalesce(sum(sum(fees) filter (where x.earlier)) over (), 0) as all_before_fees
    from (
      select false as earlier, m.* from tallyhook.movements(${from}, ${to}) m
      union all
      select true, m.* from tallyhook.movements(${beginBefore}, ${from}) m) x
    group by kind, reason_type order by kind, reason_type nulls first
    limit ${limits.listMax}`;
}

function sumsOf({ sql }: Tx, earlier: boolean) {
  const sum = (column: string) =>
    sql`coalesce(sum(x.${sql(column)}) filter (where x.earlier = ${earlier}), 0)`;
  const name = (column: string) => sql(earlier ? `before_${column}` : column);
  return sql`${sum('operations')}::int as ${name('operations')},
    ${sum('amount')} as ${name('amount')}, ${sum('fees')} as ${name('fees')}`;
}

interface MovementRow extends Omit<Row<typeof movement>, 'before'> {
  beforeOperations: number;
  beforeAmount: bigint;
  beforeFees: bigint;
  total: number;
  allFees: bigint;
  allBeforeFees: bigint;
}

/** Entries in a closed period that were recorded after its cut-off, in the order of recording. */
export async function listPriorLines(params: ReportParams): Promise<PriorRow[]> {
  const { tx, closed, limits } = params;
  if (!closed) return [];
  return tx.sql<PriorRow[]>`
    select t.id as transaction, a.name as account, e.amount, t.kind, t.reason_type,
      t.operation_id, t.effective_at, t.recorded_at, (count(*) over ())::int as total
    from (${lateTransactions(tx, closed.to, closed.recordedSince)}) t
    ${entriesOf(tx)}
    join tallyhook.accounts a on a.id = e.account_id
    order by t.id, e.line limit ${limits.listMax}`;
}

interface PriorRow extends Row<typeof priorLine> {
  total: number;
}
