/** SQL of the ledger: cut-off, completeness of batches, sums per account, movements. */
import type { Instant } from '../../kernel/clock.ts';
import type { FindingRow } from '../findings.ts';
import type { ReportParams } from '../params.ts';

export interface CutOff {
  knownAt: Instant | null;
  batch: bigint;
  transactions: bigint;
  entries: bigint;
  /** True if the numbers of batches and transactions have no gap. */
  gapless: boolean;
  /** `<head>:<batches>` of the hash chain. */
  chainHead: string | null;
}

export async function readCutOff({ tx }: Pick<ReportParams, 'tx'>): Promise<CutOff> {
  const rows = await tx.sql<CutOff[]>`
    select b.known_at, b.batch, t.transactions, b.entries,
      b.batch = b.batches and t.last = t.transactions as gapless,
      (select encode(c.head, 'hex') || ':' || c.batch_id from tallyhook.chain c
        where c.batch_id = b.batch) as chain_head
    from (select max(recorded_at) as known_at, coalesce(max(id), 0) as batch, count(*) as batches,
        coalesce(sum(entries), 0)::bigint as entries from tallyhook.batches) b
    cross join (select count(*) as transactions, coalesce(max(id), 0) as last
      from tallyhook.transactions) t`;
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

/** Batches whose counts differ from their rows. */
export async function listIncompleteBatches(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    select 'batch_incomplete' as kind, 'batch:' || b.id as subject, null::numeric as amount,
      b.recorded_at as since, null as assignee,
      jsonb_build_object('transactions', b.transactions, 'found_transactions', coalesce(t.found, 0),
        'entries', b.entries, 'found_entries', coalesce(t.entries, 0)) as evidence,
      (count(*) over ())::int as total
    from tallyhook.batches b
    left join (select batch_id, count(*) as found, sum(entry_count) as entries
      from tallyhook.transactions group by batch_id) t on t.batch_id = b.id
    where b.transactions <> coalesce(t.found, 0) or b.entries <> coalesce(t.entries, 0)
    order by b.id limit ${params.limits.listMax}`;
}

/** Sums of a kind of account, or of one account. */
export interface SumsRow {
  /** `own`: an operator, fees or collection account, or its wallet. `off`: wrong balance. */
  part: 'kind' | 'own' | 'off';
  name: string;
  accounts: number;
  observed: boolean;
  opening: bigint;
  priorPeriod: bigint;
  incoming: bigint;
  outgoing: bigint;
  fees: bigint;
  closing: bigint;
  /** As of the end of the period. */
  debit: bigint;
  credit: bigint;
  /** Sum of all entries, later ones too. */
  whole: bigint;
  since: Instant | null;
  evidence: string;
  total: number;
}

/**
 * The roll-forward of the period per kind of account and per own account, and every account whose
 * balance differs from its entries, in one pass. A reversal counts as a negative movement on the
 * side of the entry that it negates, so gross movements exclude reversed ones. Openings count with
 * their corrections as one movement.
 */
export async function listSums(params: ReportParams): Promise<SumsRow[]> {
  const { from, to, lateSince, limits } = params;
  return params.tx.sql<SumsRow[]>`
    with standing as (
      select account_id, count(*) as entries, max(version) as last, sum(amount) as total,
        coalesce(sum(amount) filter (where effective_at < ${from}), 0) as opening,
        coalesce(sum(amount) filter (where effective_at < ${from}
          and recorded_at >= ${lateSince}), 0) as prior_period,
        coalesce(sum(amount) filter (where effective_at < ${to}), 0) as closing
      from tallyhook.entries group by account_id
    ), flow as (
      select e.account_id,
        sum(case when t.reverses is null then greatest(e.amount, 0) else least(e.amount, 0) end)
          filter (where t.kind <> 'opening' and (e.amount > 0) = (t.reverses is null)) as incoming,
        sum(-e.amount) filter (where t.kind <> 'opening'
          and (e.amount > 0) <> (t.reverses is null)) as outgoing,
        sum(e.amount) filter (where t.kind = 'opening') as opened,
        sum(case when t.reverses is null then o.fee_amount else -o.fee_amount end)
          filter (where (e.amount > 0) <> (t.reverses is null) and o.fee_amount > 0) as fees
      from tallyhook.transactions t
      join tallyhook.entries e on e.transaction_id = t.id
      left join tallyhook.operations o on o.id = t.operation_id
      where t.effective_at >= ${from} and t.effective_at < ${to}
      group by e.account_id
    ), own_wallets as (
      select lower('wallet:' || w.addr) as name from tallyhook.installation i
      cross join lateral (
        select value as addr from jsonb_each_text(coalesce(i.value::jsonb -> 'operators', '{}'))
        union select i.value::jsonb ->> 'fees' union select i.value::jsonb ->> 'collection') w
      where i.name = 'ledger_settings' and w.addr is not null
    ), account as (
      select a.id, a.name, a.kind, a.opened_at, h.name is not null as observed,
        h.name is not null or a.kind in ('operator', 'fees', 'collection') as own, a.balance,
        a.version, coalesce(s.entries, 0) as entries, (
          select e.balance_after from tallyhook.entries e
          where e.account_id = a.id and e.version = a.version) as balance_after,
        coalesce(s.last, 0) as last,
        coalesce(s.total, 0) as total, coalesce(s.opening, 0) as opening,
        coalesce(s.prior_period, 0) as prior_period, coalesce(s.closing, 0) as closing,
        coalesce(f.incoming, 0) + greatest(coalesce(f.opened, 0), 0) as incoming,
        coalesce(f.fees, 0) as fees,
        coalesce(f.outgoing, 0) - coalesce(f.fees, 0) - least(coalesce(f.opened, 0), 0) as outgoing
      from tallyhook.accounts a
      left join standing s on s.account_id = a.id
      left join flow f on f.account_id = a.id
      left join own_wallets h on h.name = lower(a.name)
    )
    select 'kind' as part, kind as name, count(*)::int as accounts, false as observed,
      sum(opening) as opening, sum(prior_period) as prior_period, sum(incoming) as incoming,
      sum(outgoing) as outgoing, sum(fees) as fees, sum(closing) as closing,
      sum(greatest(closing, 0)) as debit, sum(greatest(-closing, 0)) as credit, sum(total) as whole,
      null::timestamptz as since, null as evidence, 0 as total
    from account group by kind
    union all
    (select 'own', name, 1, observed, opening, prior_period, incoming, outgoing, fees, closing,
      0, 0, 0, null, null, (count(*) over ())::int
    from account where own order by name limit ${limits.listMax})
    union all
    (select 'off', name, 1, observed, opening, prior_period, incoming, outgoing, fees, closing,
      balance - total, 0, 0, opened_at,
      format('balance %s, sum %s, last entry %s, version %s of %s entries', balance, total,
        coalesce(balance_after, 0), version, entries), (count(*) over ())::int
    from account
    where balance <> total or version <> entries or last <> entries
      or balance <> coalesce(balance_after, 0)
    order by name limit ${limits.listMax})
    order by part, name`;
}

/** Posted operations of the period by kind and reason. */
export async function listMovements(params: ReportParams): Promise<MovementRow[]> {
  return params.tx.sql<MovementRow[]>`
    select kind, reason_type, sum(operations)::int as operations, sum(amount) as amount,
      sum(fees) as fees, (count(*) over ())::int as total, sum(sum(fees)) over () as all_fees
    from finance_v1.movements_daily(${params.from}, ${params.to}, 'UTC')
    group by kind, reason_type order by kind, reason_type nulls first
    limit ${params.limits.listMax}`;
}

interface MovementRow {
  kind: string;
  reasonType: string | null;
  operations: number;
  amount: bigint;
  fees: bigint;
  total: number;
  allFees: bigint;
}
