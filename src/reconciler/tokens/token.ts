/** Tokens as they are accepted. */
import type { Queryable, Tx } from '../../db/connect.ts';
import { columnsOf, newValues, rowOf } from '../../db/rows.ts';
import type { Instant } from '../../kernel/clock.ts';
import { tokens } from '../tables.ts';

export type Token = typeof tokens.$inferSelect;

export async function findToken(
  db: Queryable,
  contractId: bigint,
  tokenId: bigint,
): Promise<Token | undefined> {
  const rows = await db.sql<Token[]>`
    select ${columnsOf(db.sql, tokens)}
    from tallyhook.tokens
    where contract_id = ${contractId.toString()}::numeric
      and token_id = ${tokenId.toString()}::numeric`;
  return rows[0];
}

/** When those of these tokens that are known were last observed, by `<contract>:<token>`. */
export async function listObservedAt(
  db: Queryable,
  asked: readonly { contractId: bigint | null; tokenId: bigint | null }[],
): Promise<Map<string, Instant>> {
  const known = asked.filter(({ contractId, tokenId }) => contractId !== null && tokenId !== null);
  if (known.length === 0) return new Map();
  const contracts = known.map(({ contractId }) => String(contractId));
  const ids = known.map(({ tokenId }) => String(tokenId));
  const rows = await db.sql<{ name: string; at: Instant | null }[]>`
    select x.contract_id || ':' || x.token_id as name, (
      select t.observed_at from tallyhook.tokens t
      where t.contract_id = x.contract_id and t.token_id = x.token_id) as at
    from unnest(${contracts}::numeric[], ${ids}::numeric[]) as x(contract_id, token_id)`;
  return new Map(rows.flatMap(({ name, at }) => (at === null ? [] : [[name, at]])));
}

export async function listTokens(
  db: Queryable,
  page: { contractId: bigint; after: bigint | undefined; limit: number },
): Promise<Token[]> {
  const after = page.after?.toString();
  return db.sql<Token[]>`
    select ${columnsOf(db.sql, tokens)}
    from tallyhook.tokens
    where contract_id = ${page.contractId.toString()}::numeric
      ${after ? db.sql`and token_id > ${after}::numeric` : db.sql``}
    order by token_id limit ${page.limit}`;
}

/** Contracts with tokens, in the order of their ids. */
export async function listContracts(db: Queryable, limit: number): Promise<bigint[]> {
  const rows = await db.sql<{ contractId: bigint }[]>`
    with recursive c(contract_id) as (
      (select contract_id from tallyhook.tokens order by contract_id limit 1)
      union all
      select (select t.contract_id from tallyhook.tokens t where t.contract_id > c.contract_id
        order by t.contract_id limit 1)
      from c where c.contract_id is not null)
    select contract_id from c where contract_id is not null limit ${limit}`;
  return rows.map(({ contractId }) => contractId);
}

export async function saveToken({ sql }: Tx, token: Token): Promise<void> {
  await sql`
    insert into tallyhook.tokens ${rowOf(sql, tokens, token)}
    on conflict (contract_id, token_id) do update
      set ${newValues(sql, tokens, 'contract_id', 'token_id')}`;
}
