/** Operations: open, overdue and quarantined ones, and those that differ from the ledger. */
import type { Tx } from '../../db/connect.ts';
import { isoText } from '../../kernel/clock.ts';
import { type FindingRow, firstOfEachKind } from '../findings.ts';
import { overdueBefore, type ReportParams } from '../params.ts';
import { comparedTransactions, entriesOf } from './entries.ts';

/**
 * When operation `o` happened: when it took effect, else when it was sent, else recorded. The clock
 * of reports: what was reported late belongs to the period in which it happened.
 */
export function happenedAt({ tx }: ReportParams) {
  return tx.sql`coalesce(o.effective_at, o.sent_at, o.recorded_at)`;
}

/** Operations without an outcome: breaks once they are overdue, open items before. */
export async function listOpenOutcomes(params: ReportParams): Promise<FindingRow[]> {
  const { limits } = params;
  return params.tx.sql<FindingRow[]>`
    with found as (
      select case when o.state = 'undecided' then 'outcome_undecided'
          when coalesce(o.send_deadline_at, o.recorded_at)
            < ${overdueBefore(params, limits.quiescenceMs)}
            then 'outcome_unknown' else 'write_in_flight' end as kind,
        o.id as subject, o.amount, ${happenedAt(params)} as since,
        jsonb_build_object('kind', o.kind, 'state', o.state, 'error', o.error_code,
          'from', o.from_addr, 'to', o.to_addr, 'reference', o.reference,
          'ambiguous', o.ambiguous) as evidence
      from tallyhook.open_operations w join tallyhook.operations o on o.id = w.id
      where w.state in ('sending', 'unknown', 'undecided')
        and ${happenedAt(params)} < ${params.to}
    )
    ${firstOfEachKind(params)}`;
}

/** What is not posted, or posted and not executed: operations, requests, holders of tokens. */
export async function listUnposted(params: ReportParams): Promise<FindingRow[]> {
  const { limits } = params;
  return params.tx.sql<FindingRow[]>`
    with due as (
      select o.id, o.kind, o.state, o.amount, o.tx_app_no, o.tx_log_no, d.quarantine_reason,
        ${happenedAt(params)} as since, p.times as postings
      from tallyhook.due_postings d join tallyhook.operations o on o.id = d.operation_id
      cross join lateral (select coalesce(max(x.posting), 0) as times from (
        select t.posting from tallyhook.transactions t where t.operation_id = o.id
        union all
        select m.posting from tallyhook.nft_movements m where m.operation_id = o.id) x) p
      where o.in_ledger <> (p.times % 2 = 1)
        and ${happenedAt(params)} < ${params.to}
    ), waiting as (
      select id, amount, since,
        jsonb_build_object('kind', kind, 'state', state, 'postings', postings) as evidence
      from due where quarantine_reason is null
      union all
      select id, amount, requested_at, jsonb_build_object('kind', kind, 'account', account)
      from tallyhook.posting_requests
      where posted_at is null and problem is null and effective_at < ${params.to}
      union all
      select id::text, null, requested_at, ${holderEvidence(params)}
      from tallyhook.observed_holders where problem is null and observed_at < ${params.to}
    ), found as (
      select case when since < ${overdueBefore(params, limits.overdueMs)} then 'posting_overdue'
        else 'posting_due' end as kind, id as subject, amount, since, evidence
      from waiting
      union all
      select 'posting_quarantined', id, amount, since,
        jsonb_build_object('kind', kind, 'state', state, 'problem', quarantine_reason,
          'tx_app_no', tx_app_no::text, 'tx_log_no', tx_log_no::text)
      from due where quarantine_reason is not null
      union all
      select 'posting_quarantined', id, amount, requested_at,
        jsonb_build_object('kind', kind, 'account', account, 'problem', problem)
      from tallyhook.posting_requests
      where problem is not null and posted_at is null and effective_at < ${params.to}
      union all
      select 'posting_quarantined', id::text, null, requested_at,
        ${holderEvidence(params)} || jsonb_build_object('problem', problem)
      from tallyhook.observed_holders where problem is not null and observed_at < ${params.to}
    )
    ${firstOfEachKind(params)}`;
}

function holderEvidence({ tx }: ReportParams) {
  return tx.sql`jsonb_build_object('kind', 'observed_holder',
    'token', 'token:' || contract_id || ':' || token_id, 'owner', owner)`;
}

/** Executed operations of unknown kind in the period. */
export async function listUnmapped(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    select 'write_not_mapped' as kind, o.id as subject, o.amount, o.happened_at as since,
      null as assignee, jsonb_build_object('method', o.method, 'path', o.path) as evidence,
      (count(*) over ())::int as total
    from tallyhook.operations o
    where o.kind = 'other' and o.outcome = 'executed'
      and o.happened_at >= ${params.from} and o.happened_at < ${params.to}
    order by o.happened_at, o.id limit ${params.limits.listMax}`;
}

/**
 * Transactions of `comparedTransactions` that differ from their entries, also later ones, or took
 * effect in the period or before and differ from their operation. The
 * entries of a transaction are compared as one number, the sum of amount × hash of account, which
 * is equal for different entries with a probability of 2^-64.
 */
export async function listPostingsThatDiffer(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    with named as materialized (
      select id, hashtextextended(lower(name), 0)::numeric as sign from tallyhook.accounts
    ), chosen as materialized (${comparedTransactions(params)}
    ), posted as (
      select t.id as transaction_id, count(*) as entries, sum(e.amount) as total,
        sum(e.amount) filter (where e.amount > 0) as moved, sum(e.amount * n.sign) as sign
      from chosen t ${entriesOf(params.tx)} join named n on n.id = e.account_id
      group by t.id
    ), compared as (
      select t.id, t.operation_id, t.posting, t.effective_at, p.moved, p.entries, p.total,
        case when p.transaction_id is null or p.total <> 0 or p.entries <> t.entry_count
            then 'transaction_unbalanced'
          when t.operation_id is not null and o.id is null
            then 'posting_without_operation'
          when o.posted and t.posting = o.last and not o.in_ledger and not o.due
            then 'posted_too_often'
          when o.posted and t.posting = o.last and o.in_ledger
            and (p.sign is distinct from o.sign or not o.fits) then 'posted_differently'
        end as kind, o.paid
      from chosen t
      left join posted p on p.transaction_id = t.id
      left join lateral (
        select o.id, o.in_ledger, l.last, l.last % 2 = 1 as posted,
          exists (select from tallyhook.due_postings d where d.operation_id = o.id) as due,
          e.sign, e.paid, e.fits
        from tallyhook.operations o
        cross join lateral (select max(x.posting) as last from tallyhook.transactions x
          where x.operation_id = o.id) l
        cross join lateral (
          -- The write's own fields must still match its effects; if its accounts share a wallet, it
          -- has fewer effects and is left out.
          select sum(f.amount * hashtextextended(lower(f.account), 0)::numeric) as sign,
            -sum(least(f.amount, 0)) as paid,
            count(*) <> case when o.fee_amount > 0 then 3 else 2 end
              or -sum(least(f.amount, 0)) in (o.amount, o.amount + coalesce(o.fee_amount, 0))
              and (o.kind = 'receive_from'
                or bool_or(lower(f.account) = 'wallet:' || lower(o.to_addr)))
              and (o.kind = 'give'
                or bool_or(lower(f.account) = 'wallet:' || lower(o.from_addr))) as fits
          from tallyhook.operation_effects f where f.operation_id = o.id) e
        where o.id = t.operation_id) o on true
    )
    select kind, case when operation_id is null then 'transaction:' || id else operation_id end
        as subject, moved as amount, effective_at as since, null as assignee,
      jsonb_build_object('transaction', id, 'posting', posting, 'moved', moved::text,
        'expected', paid::text, 'entries', entries, 'sum', total::text) as evidence,
      (count(*) over (partition by kind))::int as total
    from compared
    where kind is not null and (kind <> 'posted_differently' or effective_at < ${params.to})
    order by kind, id limit ${params.limits.listMax}`;
}

/** Reversals that do not negate their transaction. Reversals are few, so each one is compared. */
export async function listReversalsThatDiffer(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    select 'reversal_differs' as kind, 'transaction:' || t.id as subject, null::numeric as amount,
      t.effective_at as since, null as assignee,
      jsonb_build_object('reverses', t.reverses, 'operation', t.operation_id) as evidence,
      (count(*) over ())::int as total
    from tallyhook.transactions t
    where t.reverses is not null and exists (
      select from tallyhook.entries e where e.transaction_id in (t.id, t.reverses)
      group by e.account_id having sum(e.amount) <> 0)
    order by t.id limit ${params.limits.listMax}`;
}

/**
 * Operations that the ledger has to hold and does not, and for which no posting is due. With a day
 * end, each operation recorded in the period or since the newest day end is compared. Without one,
 * all are, unless the totals are equal and no operation has a posting too many.
 */
export async function listMissingPostings(
  params: ReportParams,
  surplus: boolean,
): Promise<FindingRow[]> {
  const { tx, from, to, days } = params;
  if (!days.newest && !surplus && (await isTotalEqual(tx))) return [];
  const compared = days.newest
    ? tx.sql`and (o.recorded_at >= ${isoText(days.newest.at)}
        or o.recorded_at >= ${from} and o.recorded_at < ${to})`
    : tx.sql``;
  return tx.sql<FindingRow[]>`
    select 'posting_missing' as kind, o.id as subject, o.amount, o.effective_at as since,
      null as assignee, jsonb_build_object('kind', o.kind, 'state', o.state,
        'postings', p.last) as evidence, (count(*) over ())::int as total
    from tallyhook.operations o
    cross join lateral (
      select coalesce(greatest(
        (select max(t.posting) from tallyhook.transactions t where t.operation_id = o.id),
        (select max(m.posting) from tallyhook.nft_movements m where m.operation_id = o.id)), 0)
        as last offset 0) p
    where o.in_ledger ${compared} and p.last % 2 = 0
      and not exists (select from tallyhook.due_postings d where d.operation_id = o.id)
    order by o.recorded_at, o.id limit ${params.limits.listMax}`;
}

/** Whether there are as many postings as operations that need one. */
async function isTotalEqual({ sql }: Tx): Promise<boolean> {
  const sums = await sql<{ equal: boolean }[]>`
    select (select count(*) from tallyhook.operations where in_ledger)
      = (select coalesce(sum(2 * (posting % 2) - 1), 0) from tallyhook.transactions
        where operation_id is not null)
      + (select coalesce(sum(2 * (posting % 2) - 1), 0) from tallyhook.nft_movements
        where operation_id is not null)
      + (select count(*) filter (where o.in_ledger) - count(*) filter (where not o.in_ledger)
        from tallyhook.due_postings d join tallyhook.operations o on o.id = d.operation_id)
        as equal`;
  return sums[0]?.equal ?? false;
}
