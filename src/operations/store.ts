/** SQL that reads operations, their effects and their transitions. */
import type { Queryable, Sql } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import type { Effect } from './effects.ts';
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
    o.answered_at, o.effective_at,
    o.effective_basis, o.settled_at,
    o.expires_at, o.ambiguous, o.in_ledger`;
}

/** The stored answer of the service, for a replay. */
export interface StoredAnswer {
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
    where operation_id = any(${ids as string[]}::text[]) order by operation_id, line`;
  return Map.groupBy(rows, ({ operationId }) => operationId);
}

/** The operation that holds this idempotency key of this owner. */
export async function findByIdempotencyKey(
  db: Queryable,
  owner: string,
  key: string,
): Promise<KeyedOperation | undefined> {
  type Row = Operation & { fingerprint: string } & {
    [P in keyof StoredAnswer as `answer${Capitalize<P>}`]: StoredAnswer[P];
  };
  const rows = await db.sql<Row[]>`
    select ${operationColumns(db.sql)}, o.fingerprint, o.answer_status, o.answer_headers,
      o.answer_body
    from tallyhook.operations o
    where o.owner = ${owner} and o.idempotency_key = ${key} and o.key_held`;
  const row = rows[0];
  if (!row) return undefined;
  const { fingerprint, answerStatus, answerHeaders, answerBody, ...operation } = row;
  return {
    operation,
    fingerprint,
    answer: { status: answerStatus, headers: answerHeaders, body: answerBody },
  };
}

export interface Transition {
  fromState: string | null;
  toState: string;
  at: Instant;
  cause: string;
  evidence: Json;
}

export async function listTransitions(db: Queryable, operationId: string): Promise<Transition[]> {
  return db.sql<Transition[]>`
    select from_state, to_state, at, cause, evidence from tallyhook.transitions
    where operation_id = ${operationId} order by id limit 1000`;
}

/** `sending` operations past their deadline, with a dead daemon or later than the grace period. */
export async function listAbandoned(
  db: Queryable,
  now: Instant,
  graceMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`
    select o.id from tallyhook.operations o
    left join tallyhook.daemons d on d.id = o.daemon_id
    where o.settled_at is null and o.state = 'sending' and o.send_deadline_at < ${isoText(now)}
      and (d.id is null or d.alive_until < ${isoText(now)}
        or o.send_deadline_at < ${isoText(now - graceMs)})
    order by o.send_deadline_at limit ${limit}`;
  return rows.map((row) => row.id);
}

/** Those of these names that still block: ids of open operations, and `hold:<wallet>`. */
export async function listBlocking(
  db: Queryable,
  names: readonly string[],
  now: Instant,
): Promise<Set<string>> {
  const rows = await db.sql<{ name: string }[]>`
    select o.id as name from tallyhook.operations o
    where o.id = any(${names as string[]}::text[]) and o.state in ('sending', 'unknown')
    union all
    select 'hold:' || h.wallet_key from tallyhook.holds h
    where 'hold:' || h.wallet_key = any(${names as string[]}::text[])
      and h.until > ${isoText(now)}`;
  return new Set(rows.map((row) => row.name));
}

/** Operations that change a set of wallets: by address, by operator number, or by kind. */
export interface Touching {
  /** Lower-case addresses. */
  keys: readonly string[];
  /** Operator numbers whose wallet is among them. */
  operationNos: readonly bigint[];
  /** True when the collection wallet is among them: every receive_from changes it. */
  collection: boolean;
  /** True when the fee wallet is among them: every write with a fee changes it. */
  fees: boolean;
}

/**
 * Token writes on these wallets that an observation has to consider: open, due for posting (`due`),
 * executed and not settled, or in effect since `since`. Oldest first.
 */
export async function listTouching(
  db: Queryable,
  touching: Touching,
  options: { since: Instant; due: readonly string[]; limit: number },
): Promise<Operation[]> {
  const { sql } = db;
  const { since, due, limit } = options;
  return sql<Operation[]>`
    select ${operationColumns(sql)} from tallyhook.operations o
    where o.kind in ('give', 'receive_from', 'transfer')
      and ${touches(sql, touching)}
      and (o.outcome = 'open' or o.id = any(${due as string[]}::text[])
        or (o.in_ledger and o.settled_at is null)
        or o.answered_at >= ${isoText(since)} or o.effective_at >= ${isoText(since)})
      and o.state not in ('recorded', 'queued', 'cancelled')
    order by o.recorded_at limit ${limit}`;
}

function touches(sql: Sql, { keys, operationNos, collection, fees }: Touching) {
  const addrs = keys as string[];
  // Conditions that do not apply are left out, so that the others can use indexes.
  const operators =
    operationNos.length > 0
      ? sql`or o.operation_no = any(${operationNos.map(String)}::numeric[])`
      : sql``;
  return sql`(o.from_key = any(${addrs}::text[]) or o.to_key = any(${addrs}::text[]) ${operators}
    ${collection ? sql`or o.kind = 'receive_from'` : sql``}
    ${fees ? sql`or o.fee_amount > 0` : sql``})`;
}

/** Operations whose outcome is unknown, oldest first. */
export async function listUnknown(db: Queryable, limit: number): Promise<Operation[]> {
  return db.sql<Operation[]>`
    select ${operationColumns(db.sql)} from tallyhook.operations o
    where o.settled_at is null and o.state = 'unknown'
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

export interface OperationFilter {
  state?: string | undefined;
  kind?: string | undefined;
  addr?: string | undefined;
  contractId?: bigint | undefined;
  tokenId?: bigint | undefined;
  txLogNo?: bigint | undefined;
  txHash?: string | undefined;
  idempotencyKey?: string | undefined;
  reference?: string | undefined;
  since?: Instant | undefined;
  until?: Instant | undefined;
  /** Continue after this id (ids sort by time), newest first. */
  before?: string | undefined;
  limit: number;
}

export async function listOperations(db: Queryable, f: OperationFilter): Promise<Operation[]> {
  const { sql } = db;
  const key = f.addr?.toLowerCase();
  const contract = f.contractId?.toString();
  return sql<Operation[]>`
    select ${operationColumns(sql)} from tallyhook.operations o
    where true
      ${f.before ? sql`and o.id < ${f.before}` : sql``}
      ${f.state ? sql`and o.state = ${f.state}` : sql``}
      ${f.kind ? sql`and o.kind = ${f.kind}` : sql``}
      ${key ? sql`and (o.from_key = ${key} or o.to_key = ${key})` : sql``}
      ${contract ? sql`and o.contract_id = ${contract}::numeric` : sql``}
      ${f.tokenId !== undefined ? sql`and o.token_id = ${f.tokenId.toString()}::numeric` : sql``}
      ${f.txLogNo !== undefined ? sql`and o.tx_log_no = ${f.txLogNo.toString()}::numeric` : sql``}
      ${f.txHash ? sql`and o.tx_hash = ${f.txHash}` : sql``}
      ${f.idempotencyKey ? sql`and o.idempotency_key = ${f.idempotencyKey}` : sql``}
      ${f.reference ? sql`and o.reference = ${f.reference}` : sql``}
      ${f.since !== undefined ? sql`and o.recorded_at >= ${isoText(f.since)}` : sql``}
      ${f.until !== undefined ? sql`and o.recorded_at < ${isoText(f.until)}` : sql``}
    order by o.id desc limit ${f.limit}`;
}

/** The number of operations in each state that is not final. */
export async function countOpen(db: Queryable): Promise<{ state: string; count: number }[]> {
  return db.sql<{ state: string; count: number }[]>`
    select state, count(*)::int as count from tallyhook.operations
    where settled_at is null and state in ('recorded', 'sending', 'queued', 'accepted', 'unknown',
      'executed')
    group by state
    union all
    select 'undecided', count(*)::int from tallyhook.operations where state = 'undecided'`;
}
