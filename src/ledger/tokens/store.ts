/** SQL of the journal of tokens: its standing movements, and the observed holders that it lacks. */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Movement } from './journal.ts';
import {
  type DueHolder,
  type Journals,
  type ObservedHolder,
  type TokenRef,
  tokenKey,
} from './token-work.ts';

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

export async function insertHolder(
  { sql }: Tx,
  holder: ObservedHolder,
  requestedAt: Instant,
): Promise<void> {
  const { contractId, tokenId, owner, isNew, txHash, notBefore, observedAt } = holder;
  await sql`
    insert into tallyhook.observed_holders (contract_id, token_id, owner, is_new, tx_hash,
      not_before, observed_at, requested_at)
    values (${contractId.toString()}::numeric, ${tokenId.toString()}::numeric, ${owner}, ${isNew},
      ${txHash}, ${notBefore === null ? null : isoText(notBefore)}, ${isoText(observedAt)},
      ${isoText(requestedAt)})`;
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

export async function quarantineHolder({ sql }: Tx, id: string, problem: string): Promise<void> {
  await sql`
    update tallyhook.observed_holders set problem = ${problem} where id = ${id}::bigint`;
}

export async function releaseHolder({ sql }: Tx, id: string): Promise<string | undefined> {
  if (!/^\d{1,18}$/.test(id)) return undefined;
  const rows = await sql<{ problem: string }[]>`
    update tallyhook.observed_holders h set problem = null
    from (select id, problem from tallyhook.observed_holders
      where id = ${id}::bigint and problem is not null for update) q
    where h.id = q.id returning q.problem`;
  return rows[0]?.problem;
}
