/**
 * SQL of unknown mints: what operations and observations say about the tokens of a scan. Rows are
 * looked up in scalar subqueries: a join planned while a table was small would scan it all later.
 */
import { asJson, type Queryable } from '../../db/connect.ts';
import { txHashKey } from '../../kernel/addresses.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { ListedToken } from './mint-rule.ts';

/** What is known about one token besides the scan. */
export interface TokenKnown {
  tokenId: bigint;
  /** The operations that made it, by number or hash. */
  claimedBy: string[];
  /** The operations with the token's newest hash. */
  hashOf: string[];
  /** When it was first observed, or first named by an operation. */
  firstKnownAt: Instant | null;
  /** Owners and extra data that operations, except those not executed, gave it. */
  owners: string[];
  data: string[];
}

const SCANS_SEARCHED_MAX = 20;

export async function knownOf(
  db: Queryable,
  contractId: bigint,
  tokens: readonly { tokenId: bigint; hash: string | null }[],
): Promise<Map<bigint, TokenKnown>> {
  if (tokens.length === 0) return new Map();
  const contract = contractId.toString();
  const input = tokens.map(({ tokenId, hash }) => ({
    id: tokenId.toString(),
    hash: hash && txHashKey(hash),
  }));
  const rows = await db.sql<TokenKnown[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(input)}::jsonb) as x(id numeric, hash text)
    ), scans as (
      select started_at, record from tallyhook.observations
      where target like ${`scan:${contract}:%`} and kind = 'scan' and result = 'seen'
      order by started_at desc limit ${SCANS_SEARCHED_MAX}
    )
    select x.id as token_id,
      (select coalesce(jsonb_agg(o.id), '[]'::jsonb) from (
          select p.id, p.kind, p.outcome, p.contract_id from tallyhook.operations p
          where p.contract_id = ${contract}::numeric and p.token_id = x.id
          union
          select p.id, p.kind, p.outcome, p.contract_id from tallyhook.operations p
          where lower(p.tx_hash) = nullif(x.hash, '') offset 0) o
        where o.kind in ('mint', 'mint_sequential') and o.contract_id = ${contract}::numeric
          and o.outcome <> 'not_executed') as claimed_by,
      (select coalesce(jsonb_agg(o.id), '[]'::jsonb) from tallyhook.operations o
        where lower(o.tx_hash) = nullif(x.hash, '')) as hash_of,
      least(
        (select min(l.started_at) from tallyhook.observations l
          where l.target = ${`token:${contract}:`} || x.id and l.result = 'seen'),
        (select min(o.recorded_at) from tallyhook.operations o
          where o.contract_id = ${contract}::numeric and o.token_id = x.id
            and o.outcome <> 'not_executed'),
        (select min(s.started_at) from scans s
          where s.record->'tokens' @> jsonb_build_array(jsonb_build_object('tokenId', x.id)))
      ) as first_known_at,
      (select coalesce(jsonb_agg(o.to_addr), '[]'::jsonb) from tallyhook.operations o
        where o.kind = 'transfer_from' and o.outcome <> 'not_executed'
          and o.contract_id = ${contract}::numeric and o.token_id = x.id) as owners,
      (select coalesce(jsonb_agg(o.extra_data), '[]'::jsonb) from tallyhook.operations o
        where o.kind = 'set_extra_data' and o.outcome <> 'not_executed'
          and o.contract_id = ${contract}::numeric and o.token_id = x.id) as data
    from x`;
  return new Map(rows.map((row) => [row.tokenId, row]));
}

/** With more tokens of one URI and unknown origin a mint stays unclear. */
export const HELD_MAX = 100;

/** Observed tokens with one of these URIs that no known mint made, absent ones included. */
export async function listHeld(
  db: Queryable,
  contractId: bigint,
  uris: readonly string[],
): Promise<ListedToken[]> {
  if (uris.length === 0) return [];
  return db.sql<ListedToken[]>`
    select h.token_id, h.owner, h.creator, h.uri, h.metadata, h.extra_data, h.status, h.locked,
      h.last_tx_hash, coalesce(h.created_text, '') as "createdText",
      coalesce(h.owned_text, '') as "ownedText"
    from unnest(${uris as string[]}::text[]) as u(uri) cross join lateral (
      select t.token_id, t.owner, t.creator, t.uri, t.metadata, t.extra_data, t.status, t.locked,
        t.last_tx_hash, t.created_text, t.owned_text
      from tallyhook.tokens t
      where t.contract_id = ${contractId.toString()}::numeric and t.uri = u.uri
        and hashtextextended(t.uri, 0) = hashtextextended(u.uri, 0)
        and (select o.id from tallyhook.operations o
          where o.kind in ('mint', 'mint_sequential') and o.outcome <> 'not_executed'
            and o.contract_id = t.contract_id and o.token_id = t.token_id
          limit 1) is null
      order by t.token_id limit ${HELD_MAX}) h`;
}

/**
 * When the last known burn since then was recorded that took a token that no known mint made and
 * that was never observed; undefined without one.
 */
export async function lastBurnUnseen(
  db: Queryable,
  contractId: bigint,
  since: Instant,
): Promise<Instant | undefined> {
  const contract = contractId.toString();
  const rows = await db.sql<{ at: Instant | null }[]>`
    select max(b.recorded_at) as at from (
      select contract_id, token_id, outcome, recorded_at from tallyhook.operations
      where kind = 'burn' and recorded_at >= ${isoText(since)} offset 0) b
    where b.contract_id = ${contract}::numeric and b.token_id is not null
      and b.outcome <> 'not_executed'
      and (select o.id from tallyhook.operations o
        where o.kind in ('mint', 'mint_sequential') and o.outcome <> 'not_executed'
          and o.contract_id = b.contract_id and o.token_id = b.token_id limit 1) is null
      and (select t.token_id from tallyhook.tokens t
        where t.contract_id = b.contract_id and t.token_id = b.token_id and t.uri is not null)
        is null`;
  return rows[0]?.at ?? undefined;
}

/** Whether a sequential mint with an open outcome may have made a token of this URI. */
export async function hasOpenMint(
  db: Queryable,
  contractId: bigint,
  uri: string,
): Promise<boolean> {
  const rows = await db.sql`
    select 1 as one from tallyhook.operations
    where contract_id = ${contractId.toString()}::numeric and token_id is null
      and state in ('sending', 'unknown') and kind = 'mint_sequential'
      and coalesce(token_uri, '') = ${uri} limit 1`;
  return rows.length > 0;
}

/** Sequential mints that were sent, not refused, and whose token is not known; oldest first. */
export async function listUnnumbered(
  db: Queryable,
  contractId: bigint,
  limit: number,
): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`
    select id from tallyhook.operations
    where id = any(array(select o.id from tallyhook.operations o
        where o.contract_id = ${contractId.toString()}::numeric and o.token_id is null))
      and kind = 'mint_sequential' and outcome <> 'not_executed'
      and state not in ('recorded', 'queued', 'cancelled')
    order by recorded_at limit ${limit}`;
  return rows.map(({ id }) => id);
}
