/** SQL of tokens and of candidates for the outcome of unknown operations. */
import { asJson, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { candidates, tokens } from './tables.ts';

export type Token = typeof tokens.$inferSelect;

function tokenColumns(sql: Sql) {
  return sql`contract_id, token_id, owner, creator, uri, metadata, extra_data, status, locked,
    last_tx_hash, created_text, owned_text, observed_at, presence, absent_since,
    recorded_owner, differs_since, differs_after`;
}

export async function findToken(
  db: Queryable,
  contractId: bigint,
  tokenId: bigint,
): Promise<Token | undefined> {
  const rows = await db.sql<Token[]>`
    select ${tokenColumns(db.sql)}
    from tallyhook.tokens
    where contract_id = ${contractId.toString()}::numeric
      and token_id = ${tokenId.toString()}::numeric`;
  return rows[0];
}

/** When those of these tokens that are known were last observed, by `<contract>:<token>`. */
export async function listObservedAt(
  db: Queryable,
  tokens: readonly { contractId: bigint | null; tokenId: bigint | null }[],
): Promise<Map<string, Instant>> {
  const known = tokens.filter(({ contractId, tokenId }) => contractId !== null && tokenId !== null);
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
    select ${tokenColumns(db.sql)}
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

export async function saveToken(tx: Tx, token: Token): Promise<void> {
  await tx.sql`
    insert into tallyhook.tokens (contract_id, token_id, owner, creator, uri, metadata, extra_data,
      status, locked, last_tx_hash, created_text, owned_text, observed_at, presence, absent_since,
      recorded_owner, differs_since, differs_after)
    values (${token.contractId.toString()}::numeric, ${token.tokenId.toString()}::numeric,
      ${token.owner}, ${token.creator}, ${token.uri}, ${token.metadata}, ${token.extraData},
        ${token.status},
      ${token.locked}, ${token.lastTxHash}, ${token.createdText}, ${token.ownedText},
      ${isoText(token.observedAt)}, ${token.presence},
      ${isoOrNull(token.absentSince)}, ${token.recordedOwner}, ${isoOrNull(token.differsSince)},
      ${isoOrNull(token.differsAfter)})
    on conflict (contract_id, token_id) do update set owner = excluded.owner,
      creator = excluded.creator, uri = excluded.uri, metadata = excluded.metadata,
        extra_data = excluded.extra_data,
      status = excluded.status, locked = excluded.locked, last_tx_hash = excluded.last_tx_hash,
      created_text = excluded.created_text, owned_text = excluded.owned_text,
      observed_at = excluded.observed_at, presence = excluded.presence,
      absent_since = excluded.absent_since, recorded_owner = excluded.recorded_owner,
      differs_since = excluded.differs_since, differs_after = excluded.differs_after`;
}

function isoOrNull(at: Instant | null): string | null {
  return at === null ? null : isoText(at);
}

/** A finding about an unknown operation that a later observation has to confirm. */
export type Candidate = typeof candidates.$inferSelect;

export async function findCandidate(
  db: Queryable,
  operationId: string,
): Promise<Candidate | undefined> {
  const rows = await db.sql<Candidate[]>`
    select operation_id, outcome, basis, evidence, seen_at, observation_started_at
    from tallyhook.candidates where operation_id = ${operationId}`;
  return rows[0];
}

export async function saveCandidate(tx: Tx, candidate: Candidate): Promise<void> {
  await tx.sql`
    insert into tallyhook.candidates (operation_id, outcome, basis, evidence, seen_at,
      observation_started_at)
    values (${candidate.operationId}, ${candidate.outcome}, ${candidate.basis},
      ${asJson(candidate.evidence)}::jsonb, ${isoText(candidate.seenAt)},
      ${isoText(candidate.observationStartedAt)})
    on conflict (operation_id) do update set outcome = excluded.outcome, basis = excluded.basis,
      evidence = excluded.evidence, seen_at = excluded.seen_at,
      observation_started_at = excluded.observation_started_at`;
}

/** Deletes candidates of operations that an answer or a person has resolved meanwhile. */
export async function dropResolvedCandidates(db: Queryable): Promise<void> {
  await db.sql`
    delete from tallyhook.candidates c where (
      select o.state = 'unknown' from tallyhook.operations o
      where o.id = c.operation_id) is not true`;
}

export async function dropCandidate(tx: Tx, operationId: string): Promise<void> {
  await tx.sql`delete from tallyhook.candidates where operation_id = ${operationId}`;
}
