/** Movements of tokens as recorded, and the observed holders that the journal lacks. */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { rowOf } from '../../db/rows.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { tokenMovement } from '../../resources/ledger/token.ts';
import type { Row } from '../../resources/resource.ts';
import { observedHolders } from '../tables.ts';
import {
  type DueHolder,
  type Journals,
  type Movement,
  type ObservedHolder,
  type TokenRef,
  tokenKey,
} from './journal.ts';

/** The standing movements of these tokens, each in the order of time. */
export async function readJournals(
  { sql }: Queryable,
  tokens: readonly TokenRef[],
): Promise<Journals> {
  if (tokens.length === 0) return new Map();
  const rows = await sql<(Movement & TokenRef)[]>`
    select x."contractId", x."tokenId", m.id, m.kind, m.from_addr, m.to_addr, m.tx_hash,
      m.operation_id, m.posting, m.not_before, m.effective_at, m.effective_basis
    from jsonb_to_recordset(${asJson(tokens)}::jsonb) as x("contractId" numeric,
      "tokenId" numeric)
    cross join lateral (
      select n.id, n.kind, n.from_addr, n.to_addr, n.tx_hash, n.operation_id, n.posting,
        n.not_before, n.effective_at, n.effective_basis
      from tallyhook.nft_movements n
      where n.contract_id = x."contractId" and n.token_id = x."tokenId" and n.kind <> 'reversal'
        and (select r.id from tallyhook.nft_movements r where r.reverses = n.id) is null
      offset 0) m
    order by m.effective_at, m.id`;
  const journals = new Map<string, Movement[]>();
  for (const { contractId, tokenId, ...movement } of rows) {
    const key = tokenKey({ contractId, tokenId });
    const journal = journals.get(key);
    if (journal) journal.push(movement);
    else journals.set(key, [movement]);
  }
  return journals;
}

/**
 * Has the journal show this holder of a token, inside the caller's transaction: what no operation
 * explains becomes a movement made elsewhere. To be called when no operation can change the holder
 * any more, with every change in its order.
 * @param requestedAt the present
 */
export async function recordHolder(
  { sql }: Tx,
  holder: ObservedHolder,
  requestedAt: Instant,
): Promise<void> {
  await sql`
    insert into tallyhook.observed_holders
    ${rowOf(sql, observedHolders, { ...holder, requestedAt })}`;
}

/**
 * Observed holders in their order; those of a token with a due posting wait for it.
 * @param posted the operations whose postings are made before
 */
export async function listDueHolders(
  { sql }: Tx,
  posted: readonly string[],
  limit: number,
): Promise<DueHolder[]> {
  return sql<DueHolder[]>`
    select h.id, h.contract_id, h.token_id, h.owner, h.is_new, h.tx_hash, h.not_before,
      h.observed_at
    from tallyhook.observed_holders h
    where h.problem is null and (
      select o.id from tallyhook.operations o
      where o.contract_id = h.contract_id and o.token_id = h.token_id
        and (select d.operation_id from tallyhook.due_postings d
          where d.operation_id = o.id and d.quarantine_reason is null
            and d.operation_id <> all(${posted as string[]}::text[])) is not null
      limit 1) is null
    order by h.id limit ${limit}`;
}

export async function deleteHolders({ sql }: Tx, ids: readonly bigint[]): Promise<void> {
  if (ids.length === 0) return;
  await sql`
    delete from tallyhook.observed_holders where id = any(${ids.map(String)}::bigint[])`;
}

/** A movement of an NFT, as recorded. */
type ShownMovement = Row<typeof tokenMovement>;

/** Movements of one token before the given id, the newest first. */
export async function listMovements(
  db: Queryable,
  token: { contractId: bigint; tokenId: bigint },
  page: { before?: bigint | undefined; limit: number },
): Promise<ShownMovement[]> {
  const { sql } = db;
  const { before } = page;
  return sql<ShownMovement[]>`
    select m.id as seq, m.kind, coalesce(m.from_addr, f.addr) as from_addr, m.to_addr,
      coalesce(m.tx_hash, (select o.tx_hash from tallyhook.operations o
        where o.id = m.operation_id)) as tx_hash,
      m.operation_id, m.reverses, m.not_before, m.effective_at, m.effective_basis, m.recorded_at
    from tallyhook.nft_movements m left join tallyhook.burned_from f on f.id = m.id
    where m.contract_id = ${token.contractId.toString()}::numeric
      and m.token_id = ${token.tokenId.toString()}::numeric
      ${before === undefined ? sql`` : sql`and m.id < ${before.toString()}::bigint`}
    order by m.id desc limit ${page.limit}`;
}

/** The newest movements of tokens that one operation caused, the newest first. */
export async function listMovementsOf(
  { sql }: Queryable,
  operationId: string,
  limit: number,
): Promise<Pick<ShownMovement, 'kind' | 'fromAddr' | 'toAddr' | 'recordedAt'>[]> {
  return sql<ShownMovement[]>`
    select m.kind, coalesce(m.from_addr, f.addr) as from_addr, m.to_addr, m.recorded_at
    from tallyhook.nft_movements m left join tallyhook.burned_from f on f.id = m.id
    where m.operation_id = ${operationId} order by m.posting desc limit ${limit}`;
}
