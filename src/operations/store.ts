/** SQL of operations, as later stages read them, and of their effects. */
import { asJson, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import type { Effect } from './effects/effects.ts';
import type { FeeMode } from './effects/fee-rule.ts';
import type { Operation } from './operation.ts';

/** The columns of `Operation`, of `tallyhook.operations o`. */
export function operationColumns(sql: Sql) {
  return sql`o.id, o.kind, o.state, o.outcome, o.source, o.owner,
    o.idempotency_key,
    o.reference, o.from_addr, o.to_addr,
    o.operation_no, o.contract_id, o.token_id,
    o.amount, o.fee_amount, o.reason_type,
    o.token_uri, o.meta_data, o.extra_data,
    o.tx_app_no, o.tx_log_no, o.tx_hash,
    o.error_class, o.error_status, o.error_code,
    o.error_message, o.pre_image, o.evidence,
    o.recorded_at, o.sent_at, o.send_deadline_at,
    o.answer_status, o.answered_at, o.effective_at,
    o.effective_basis, o.settled_at,
    o.expires_at, o.ambiguous, o.in_ledger, o.event_seq`;
}

/** The stored answer of the service, for a replay. */
interface StoredAnswer {
  status: number | null;
  headers: Json;
  body: Uint8Array | null;
}

/** An operation with what an idempotent repeat needs. */
export interface KeyedOperation {
  operation: Operation;
  fingerprint: string;
  answer: StoredAnswer;
}

export async function findOperation(db: Queryable, id: string): Promise<Operation | undefined> {
  const rows = await db.sql<Operation[]>`
    select ${operationColumns(db.sql)} from tallyhook.operations o where o.id = ${id}`;
  return rows[0];
}

export async function findOperations(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, Operation>> {
  const rows = await db.sql<Operation[]>`
    select ${operationColumns(db.sql)} from tallyhook.operations o
    where o.id = any(${ids as string[]}::text[])`;
  return new Map(rows.map((row) => [row.id, row]));
}

/** Effects by operation id; operations that cannot be posted are absent. */
export async function listEffects(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, Effect[]>> {
  const rows = await db.sql<(Effect & { operationId: string })[]>`
    select operation_id, account, amount from tallyhook.operation_effects
    where operation_id = any(${ids as string[]}::text[]) and amount <> 0
    order by operation_id, line`;
  return Map.groupBy(rows, ({ operationId }) => operationId);
}

/** The operation that holds this idempotency key of this owner. */
export async function findByIdempotencyKey(
  db: Queryable,
  owner: string,
  key: string,
): Promise<KeyedOperation | undefined> {
  type Row = Operation & {
    fingerprint: string;
    answerHeaders: StoredAnswer['headers'];
    answerBody: StoredAnswer['body'];
  };
  const rows = await db.sql<Row[]>`
    select ${operationColumns(db.sql)}, o.fingerprint, o.answer_headers, o.answer_body
    from tallyhook.operations o
    where o.owner = ${owner} and o.idempotency_key = ${key} and o.key_held`;
  const row = rows[0];
  if (!row) return undefined;
  const { fingerprint, answerHeaders, answerBody, ...operation } = row;
  return {
    operation,
    fingerprint,
    answer: { status: operation.answerStatus, headers: answerHeaders, body: answerBody },
  };
}

/** Those of these writes whose outcome is still open. */
export async function listOpen(db: Queryable, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db.sql<{ id: string }[]>`
    select o.id from tallyhook.operations o
    where o.id = any(${ids as string[]}::text[]) and o.state in ('sending', 'unknown')`;
  return new Set(rows.map(({ id }) => id));
}

/** Operations whose outcome is unknown, oldest first, after one of them. */
export async function listUnknown(
  db: Queryable,
  after: Pick<Operation, 'recordedAt' | 'id'> | undefined,
  limit: number,
): Promise<Operation[]> {
  const { sql } = db;
  const next = after
    ? sql`and (w.recorded_at, w.id) > (${isoText(after.recordedAt)}::timestamptz, ${after.id})`
    : sql``;
  return sql<Operation[]>`
    select ${operationColumns(sql)} from tallyhook.open_operations w
    join tallyhook.operations o on o.id = w.id
    where w.state = 'unknown' ${next}
    order by o.recorded_at, o.id limit ${limit}`;
}

/**
 * Token writes with an unknown outcome on these wallets (lower case), oldest first. Wallets with
 * more than `openMax` open writes are left out.
 */
export async function listUnknownOn(
  db: Queryable,
  keys: readonly string[],
  { openMax, limit }: { openMax: number; limit: number },
): Promise<Operation[]> {
  if (keys.length === 0) return [];
  return db.sql<Operation[]>`
    select ${operationColumns(db.sql)} from tallyhook.operations o
    -- An array is read once: without statistics, a join read it again for each unknown operation.
    where o.state = 'unknown' and o.id = any(array(
      select l.operation_id from unnest(${keys.map((key) => `wallet:${key}`)}::text[]) k(account)
      cross join lateral (select f.operation_id, count(*) over () as open from (
        select e.operation_id from tallyhook.operation_effects e
        where lower(e.account) = k.account and e.unsettled
          and e.phase in ('open', 'undecided')
        limit ${openMax + 1}) f) l
      where l.open <= ${openMax}))
    order by o.recorded_at, o.id limit ${limit}`;
}

/**
 * Operations recorded since then that evidence or people called not executed, with exactly this
 * effect on a wallet (lower case).
 */
export async function listNotExecuted(
  db: Queryable,
  effect: { key: string; amount: bigint },
  since: Instant,
  limit: number,
): Promise<Operation[]> {
  // Postgres 15 does not use the partial index without its condition in full.
  return db.sql<Operation[]>`
    select ${operationColumns(db.sql)} from tallyhook.operation_effects e
    join tallyhook.operations o on o.id = e.operation_id
    where lower(e.account) = ${`wallet:${effect.key}`}
      and e.unsettled is not null and not e.unsettled
      and e.amount = ${effect.amount.toString()}::numeric
      and e.phase = 'not_executed' and o.state = 'not_executed'
      and o.recorded_at >= ${isoText(since)}
    order by o.recorded_at limit ${limit}`;
}

/** NFT writes on this token, newest first. */
export async function listForToken(
  db: Queryable,
  contractId: bigint,
  tokenId: bigint,
  limit: number,
): Promise<Operation[]> {
  return db.sql<Operation[]>`
    select ${operationColumns(db.sql)} from tallyhook.operations o
    where o.contract_id = ${contractId.toString()}::numeric and o.token_id =
      ${tokenId.toString()}::numeric
    order by o.recorded_at desc limit ${limit}`;
}

/** A write with a fee, and the rule by which its effects were computed. */
export interface WriteWithFee extends Operation {
  feeMode: FeeMode;
}

/** Writes with a fee, locked so that their states do not change before the end of `tx`. */
export async function lockWithFees(tx: Tx, ids: readonly string[]): Promise<WriteWithFee[]> {
  return tx.sql<WriteWithFee[]>`
    select ${operationColumns(tx.sql)}, o.fee_mode from tallyhook.operations o
    where o.id = any(${ids as string[]}::text[]) and o.fee_mode is not null
    order by o.id for no key update`;
}

/** Operations, locked so that their states do not change before the end of `tx`. */
export async function lockOperations(tx: Tx, ids: readonly string[]): Promise<Operation[]> {
  return tx.sql<Operation[]>`
    select ${operationColumns(tx.sql)} from tallyhook.operations o
    where o.id = any(${ids as string[]}::text[]) order by o.id for no key update`;
}

/**
 * Unsettled gives that were recorded for an operator without a wallet and sent since then, in the
 * order of their ids. What is about to be posted is left out until it is posted, and what was taken
 * back as long as it is: no observation of the wallet counted it.
 */
export async function listUnsettledGives(
  db: Queryable,
  operatorNo: string,
  { since, after }: { since: Instant; after: string },
  limit: number,
): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`
    select o.id from tallyhook.operation_effects e
    join tallyhook.operations o on o.id = e.operation_id
    where lower(e.account) = ${`operator:${operatorNo}`} and e.unsettled
      and e.phase <> 'taken_back' and e.operation_id > ${after} and o.kind = 'give'
      and coalesce(o.sent_at, o.effective_at, o.recorded_at) >= ${isoText(since)}
      and not exists (select from tallyhook.due_postings d
        where d.operation_id = o.id and d.quarantine_reason is null)
    order by o.id limit ${limit}`;
  return rows.map(({ id }) => id);
}

/** The lines of these writes on one account are on another one. */
export async function renameAccount(
  tx: Tx,
  ids: readonly string[],
  { from, to }: { from: string; to: string },
): Promise<void> {
  await tx.sql`
    update tallyhook.operation_effects set account = ${to}
    where operation_id = any(${ids as string[]}::text[]) and account = ${from}`;
}

/** The lines of writes as they are stored, by operation id, zeros included. */
export async function listLines(
  tx: Tx,
  ids: readonly string[],
): Promise<Map<string, (Effect & { line: number })[]>> {
  const rows = await tx.sql<(Effect & { operationId: string; line: number })[]>`
    select operation_id, line, account, amount from tallyhook.operation_effects
    where operation_id = any(${ids as string[]}::text[]) order by operation_id, line`;
  return Map.groupBy(rows, ({ operationId }) => operationId);
}

/** Stores the effects of writes under another rule; lines keep their accounts. */
export async function changeFees(
  tx: Tx,
  writes: readonly { id: string; feeMode: FeeMode; amounts: readonly bigint[] }[],
): Promise<void> {
  if (writes.length === 0) return;
  await tx.sql`
    with x as (
      select * from jsonb_to_recordset(${asJson(writes)}::jsonb)
        as x(id text, "feeMode" text, amounts jsonb)
    ), marked as (
      update tallyhook.operations o set fee_mode = x."feeMode" from x where o.id = x.id
    )
    update tallyhook.operation_effects e set amount = a.amount::numeric
    from x cross join jsonb_array_elements_text(x.amounts) with ordinality as a(amount, line)
    where e.operation_id = x.id and e.line = a.line and e.amount <> a.amount::numeric`;
}
