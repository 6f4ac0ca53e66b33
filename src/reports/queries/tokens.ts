/** NFT operations and tokens: their settlement, and the supply of each contract. */
import type { supply } from '../../resources/reports/content.ts';
import type { Row } from '../../resources/resource.ts';
import { type FindingRow, firstOfEachKind } from '../findings.ts';
import { overdueBefore, type ReportParams } from '../params.ts';

/** Executed NFT operations without settlement, and settled ones without an observed token. */
export async function listTokenWrites(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    with found as (
      select case when o.state = 'settled' then 'token_never_observed'
          when coalesce(o.answered_at, o.recorded_at)
            < ${overdueBefore(params, params.limits.staleMs)}
            then 'nft_write_without_end' else 'nft_write_pending' end as kind,
        o.id as subject, null::numeric as amount, o.happened_at as since,
        jsonb_build_object('kind', o.kind, 'state', o.state, 'tx_hash', o.tx_hash,
          'token', 'token:' || o.contract_id || ':' || o.token_id,
          'observed_status', t.status) as evidence
      from tallyhook.operations o
      left join tallyhook.tokens t on t.contract_id = o.contract_id and t.token_id = o.token_id
      where o.kind in ('mint', 'mint_sequential', 'burn', 'transfer_from', 'set_extra_data')
        and (o.state in ('accepted', 'executed') and o.settled_at is null
          or o.state = 'settled' and t.token_id is null)
        and o.happened_at < ${params.to}
    )
    ${firstOfEachKind(params)}`;
}

interface WriteCounts {
  settled: number;
  failed: number;
  pending: number;
}

/** NFT operations with a hash that happened in the period, by their present state. */
export async function countTokenWrites(params: ReportParams): Promise<WriteCounts> {
  const rows = await params.tx.sql<WriteCounts[]>`
    select (count(*) filter (where o.state = 'settled'))::int as settled,
      (count(*) filter (where o.state = 'failed'))::int as failed,
      (count(*) filter (where o.state not in ('settled', 'failed')))::int as pending
    from tallyhook.operations o
    where o.kind <> 'other' and o.tx_hash is not null
      and o.happened_at >= ${params.from} and o.happened_at < ${params.to}`;
  return rows[0] ?? { settled: 0, failed: 0, pending: 0 };
}

interface SupplyRow extends Row<typeof supply> {
  total: number;
}

/**
 * Supply per contract at the end of the period: tokens in the ledger and tokens held. A difference
 * between the two of now counts when it began before that end.
 */
export async function listSupply(params: ReportParams): Promise<SupplyRow[]> {
  return params.tx.sql<SupplyRow[]>`
    with both_sides as (${bothSides(params)}), at_end as (
      select contract_id, opening, minted, burned, is_booked,
        case when since < ${params.to} then held - net else 0 end as more
      from both_sides where first_moved_at < ${params.to} or since < ${params.to}
    )
    select contract_id, sum(opening)::int as opening, sum(minted)::int as minted,
      sum(burned)::int as burned,
      coalesce(sum(more) filter (where more > 0 and not is_booked), 0)::int as found,
      coalesce(sum(-more) filter (where more < 0), 0)::int as missing,
      coalesce(sum(more) filter (where more > 0 and is_booked), 0)::int as surplus,
      sum(opening + minted - burned + more)::int as held, (count(*) over ())::int as total
    from at_end group by contract_id order by contract_id limit ${params.limits.listMax}`;
}

/**
 * Observed tokens that differ from the journal; those that it does not know are counted per
 * contract. A difference may still end by itself while the holder waits to be in the journal, or a
 * posting is due.
 */
export async function listTokensThatDiffer(params: ReportParams): Promise<FindingRow[]> {
  return params.tx.sql<FindingRow[]>`
    with both_sides as (${bothSides(params)}), differing as (
      select contract_id, token_id, net, since, owner, booked_owner, last_tx_hash, differs_since,
        case when net > held then 'nft_missing'
          when net < held then 'nft_surplus' else 'nft_owner_differs' end as kind
      from both_sides
      where since < ${params.to} and (net > held and is_observed or held > net and is_booked
        or net = held and held = 1 and lower(owner) <> lower(booked_owner))
    ), found as (
      select case when d.differs_since is not null or ${isDue(params)} then 'nft_change_pending'
          else d.kind end as kind,
        'token:' || d.contract_id || ':' || d.token_id as subject, null::numeric as amount, d.since,
        jsonb_build_object('owner', d.owner, 'booked_owner', d.booked_owner,
          'last_tx_hash', d.last_tx_hash, 'booked', d.net) as evidence
      from differing d
      union all
      select 'nft_not_booked', 'contract:' || contract_id, null, min(since),
        jsonb_build_object('tokens', count(*), 'first', min(token_id)::text)
      from both_sides where held = 1 and not is_booked and since < ${params.to}
      group by contract_id
    )
    ${firstOfEachKind(params)}`;
}

/** Tokens of the journal beside those that the service shows, and since when they may differ. */
function bothSides(params: ReportParams) {
  return params.tx.sql`
    select coalesce(b.contract_id, t.contract_id) as contract_id,
      coalesce(b.token_id, t.token_id) as token_id, b.contract_id is not null as is_booked,
      coalesce(b.opening, 0) as opening, coalesce(b.minted, 0) as minted,
      coalesce(b.burned, 0) as burned, coalesce(b.net, 0) as net, b.first_moved_at,
      b.owner as booked_owner, t.owner, t.last_tx_hash, t.differs_since,
      coalesce(t.differs_since, t.absent_since,
        case when t.token_id is null then b.first_moved_at else b.moved_at end, t.observed_at)
        as since,
      t.token_id is not null as is_observed,
      (coalesce(t.presence, 'absent') = 'present')::int as held
    from (${bookedTokens(params)}) b
    full join tallyhook.tokens t on t.contract_id = b.contract_id and t.token_id = b.token_id`;
}

/** Whether something about the token of row d waits to be in the journal. */
function isDue({ tx }: ReportParams) {
  return tx.sql`(exists (select from tallyhook.observed_holders h
      where h.contract_id = d.contract_id and h.token_id = d.token_id and h.problem is null)
    or exists (select from tallyhook.operations o
      join tallyhook.due_postings p on p.operation_id = o.id and p.quarantine_reason is null
      where o.contract_id = d.contract_id and o.token_id = d.token_id))`;
}

/** What stands in the journal, by token: counts until the end of the period, the rest of now. */
function bookedTokens({ tx, to }: ReportParams) {
  return tx.sql`
    select m.contract_id, m.token_id, max(m.effective_at) as moved_at,
      min(m.effective_at) as first_moved_at,
      (array_agg(m.to_addr order by m.effective_at desc, m.id desc))[1] as owner,
      count(*) filter (where m.kind = 'opening' and m.effective_at < ${to}) as opening,
      count(*) filter (where m.kind = 'mint' and m.effective_at < ${to}) as minted,
      count(*) filter (where m.kind = 'burn' and m.effective_at < ${to}) as burned,
      count(*) filter (where m.kind in ('opening', 'mint'))
        - count(*) filter (where m.kind = 'burn') as net
    from tallyhook.standing_movements() m where m.kind <> 'data_change'
    group by m.contract_id, m.token_id`;
}
