/**
 * SQL of the one writer: what is due, and one batch written by one statement. The guards of the
 * database run at the end of that statement, when accounts, transactions and entries all stand.
 */
import { asJson, type Queryable, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Operation } from '../operations/operations.ts';
import type { Batch } from './batch.ts';
import type { Standing } from './plan.ts';
import type { PostingRequest } from './wanted.ts';

/** The last batch and the last transaction, from which the next ones are counted. */
export interface Head {
  batchId: bigint;
  recordedAt: Instant;
  transactionId: bigint;
}

/** How many rows wait to be posted, counted up to `max`. */
export async function countDue(db: Queryable, max: number): Promise<number> {
  const rows = await db.sql<{ due: number }[]>`
    select (select count(*) from (select from tallyhook.operations
        where in_books <> (postings % 2 = 1) and quarantine_reason is null
        order by recorded_at limit ${max}) o)::int
      + (select count(*) from (select from tallyhook.posting_requests
        where posted_at is null and problem is null
        order by requested_at limit ${max}) w)::int as due`;
  return rows[0]?.due ?? 0;
}

/** The head of the books; zeros before the first batch. */
export async function readHead(tx: Tx): Promise<Head> {
  const rows = await tx.sql<Record<keyof Head, bigint>[]>`
    select coalesce((select max(id) from tallyhook.batches), 0) as "batchId",
      coalesce((select max(id) from tallyhook.transactions), 0) as "transactionId",
      (coalesce((select extract(epoch from max(recorded_at)) from tallyhook.batches), 0)
        * 1000)::bigint as "recordedAt"`;
  const { batchId = 0n, transactionId = 0n, recordedAt = 0n } = rows[0] ?? {};
  return { batchId, transactionId, recordedAt: Number(recordedAt) };
}

/** Wanted postings that wait, oldest first; a reversal waits for what it takes back. */
export async function listPostingRequestsDue(tx: Tx, limit: number): Promise<PostingRequest[]> {
  const rows = await tx.sql<
    (PostingRequest & { seenAt: Instant | null; seenVersion: bigint | null })[]
  >`
    select id, kind, account, counter, amount, effective_at,
      effective_basis, requested_by, reason, reverses,
      seen_at, seen_version
    from tallyhook.posting_requests w
    where posted_at is null and problem is null and (reverses is null or not exists (
      select from tallyhook.posting_requests r
      where r.id = w.reverses and r.posted_at is null and r.problem is null))
    order by requested_at, id limit ${limit}`;
  return rows.map(({ seenAt, seenVersion, ...wanted }) => ({
    ...wanted,
    seen: seenAt === null ? null : { at: seenAt, version: seenVersion ?? 0n },
  }));
}

/** The transactions that the reversals among this work take back, with their legs. */
export async function listStanding(
  tx: Tx,
  operations: readonly Operation[],
  wanted: readonly PostingRequest[],
): Promise<Standing[]> {
  const postings = operations
    .filter(({ inBooks }) => !inBooks)
    .map(({ id, postings }) => ({ id, posting: postings }));
  const ids = wanted.flatMap(({ reverses }) => reverses ?? []);
  if (postings.length + ids.length === 0) return [];
  const rows = await tx.sql<StandingRow[]>`
    select t.id, t.operation_id, t.posting_request_id, t.effective_at, t.effective_basis, a.name, e.amount
    from tallyhook.transactions t
    join tallyhook.entries e on e.transaction_id = t.id
    join tallyhook.accounts a on a.id = e.account_id
    where t.posting_request_id = any(${ids}::text[]) or t.id in (
      select r.id from jsonb_to_recordset(${asJson(postings)}::jsonb) as x(id text, posting int)
      join tallyhook.transactions r on r.operation_id = x.id and r.posting = x.posting)
    order by t.id, e.line`;
  return foldStanding(rows);
}

interface StandingRow {
  id: bigint;
  operationId: string | null;
  postingRequestId: string | null;
  effectiveAt: Instant;
  effectiveBasis: string;
  name: string;
  amount: bigint;
}

/** One row per entry becomes one item per transaction. */
function foldStanding(rows: readonly StandingRow[]): Standing[] {
  const found = new Map<bigint, Standing>();
  for (const row of rows) {
    const posted = found.get(row.id) ?? {
      transactionId: row.id,
      operationId: row.operationId,
      postingRequestId: row.postingRequestId,
      effectiveAt: row.effectiveAt,
      effectiveBasis: row.effectiveBasis,
      effects: [],
    };
    posted.effects.push({ account: row.name, amount: row.amount });
    found.set(row.id, posted);
  }
  return [...found.values()];
}

/** Writes one batch whole: its row, transactions, token movements, accounts and entries. */
export async function insertBatch(
  tx: Tx,
  batch: Batch,
  head: { batchId: bigint; recordedAt: Instant },
): Promise<void> {
  const { transactions, entries, accounts, movements } = batch;
  const id = head.batchId.toString();
  const at = isoText(head.recordedAt);
  await tx.sql`
    with head as (
      insert into tallyhook.batches (id, recorded_at, transactions, entries)
      values (${id}::bigint, ${at}::timestamptz, ${transactions.length}, ${entries.length})
    ), posted as (
      insert into tallyhook.transactions (id, batch_id, kind, operation_id, posting, posting_request_id,
        reverses, reason_type, reference, tx_app_no, tx_log_no, requested_by, effective_at,
        effective_basis, recorded_at, entry_count)
      select "id", ${id}::bigint, "kind", "operationId", "posting", "postingRequestId", "reverses",
        "reasonType", "reference", "txAppNo", "txLogNo", "requestedBy", "effectiveAt",
        "effectiveBasis", ${at}::timestamptz, "entryCount"
      from jsonb_to_recordset(${asJson(transactions.map(dated))}::jsonb) as x("id" bigint,
        "kind" text, "operationId" text, "posting" int, "postingRequestId" text, "reverses" bigint,
        "reasonType" text, "reference" text, "txAppNo" numeric, "txLogNo" numeric,
        "requestedBy" text, "effectiveAt" timestamptz, "effectiveBasis" text, "entryCount" smallint)
    ), moved as (
      insert into tallyhook.nft_movements (batch_id, kind, contract_id, token_id, from_addr,
        to_addr, tx_hash, operation_id, posting, effective_at, recorded_at)
      select ${id}::bigint, "kind", "contractId", "tokenId", "fromAddr", "toAddr", "txHash",
        "operationId", "posting", "effectiveAt", ${at}::timestamptz
      from jsonb_to_recordset(${asJson(movements.map(dated))}::jsonb) as x("kind" text,
        "contractId" numeric, "tokenId" numeric, "fromAddr" text, "toAddr" text, "txHash" text,
        "operationId" text, "posting" int, "effectiveAt" timestamptz)
    ), account as (
      insert into tallyhook.accounts as a (name, kind, balance, version, opened_at)
      select "name", "kind", "amount", "count", ${at}::timestamptz
      from jsonb_to_recordset(${asJson(accounts)}::jsonb) as x("name" text, "kind" text,
        "amount" numeric, "count" bigint)
      on conflict (lower(name), asset) do update
        set balance = a.balance + excluded.balance, version = a.version + excluded.version
      returning a.id, lower(a.name) as key, a.balance, a.version
    )
    insert into tallyhook.entries (transaction_id, line, account_id, amount, balance_after, version,
      effective_at, recorded_at)
    select "transactionId", "line", a.id, "amount", a.balance - "laterAmount",
      a.version - "laterCount", "effectiveAt", ${at}::timestamptz
    from jsonb_to_recordset(${asJson(entries.map(dated))}::jsonb) as x("transactionId" bigint,
      "line" smallint, "account" text, "amount" numeric, "laterAmount" numeric, "laterCount" bigint,
      "effectiveAt" timestamptz)
    join account a on a.key = "account"`;
}

function dated<T extends { effectiveAt: Instant }>(row: T) {
  return { ...row, effectiveAt: isoText(row.effectiveAt) };
}

/** Marks wanted postings as done. */
export async function markRequestsPosted(
  tx: Tx,
  ids: readonly string[],
  at: Instant,
): Promise<void> {
  if (ids.length === 0) return;
  await tx.sql`
    update tallyhook.posting_requests set posted_at = ${isoText(at)}
    where id = any(${ids as string[]}::text[])`;
}

/** Takes a wanted posting out of the work, with the reason; a break until a person looks. */
export async function quarantineRequest(tx: Tx, id: string, problem: string): Promise<void> {
  await tx.sql`update tallyhook.posting_requests set problem = ${problem} where id = ${id}`;
}

/** Records wishes, each once; a second one under the same id changes nothing. */
export async function insertPostingRequests(
  tx: Tx,
  wanted: readonly PostingRequest[],
  requestedAt: Instant,
): Promise<void> {
  if (wanted.length === 0) return;
  const rows = wanted.map(({ seen, ...row }) => ({
    ...dated(row),
    seenAt: seen ? isoText(seen.at) : null,
    seenVersion: seen ? seen.version : null,
  }));
  await tx.sql`
    insert into tallyhook.posting_requests (id, kind, account, counter, amount, effective_at,
      effective_basis, requested_by, reason, reverses, seen_at, seen_version, requested_at)
    select id, kind, account, counter, amount, "effectiveAt", "effectiveBasis", "requestedBy",
      reason, reverses, "seenAt", "seenVersion", ${isoText(requestedAt)}::timestamptz
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, kind text, account text,
      counter text, amount numeric, "effectiveAt" timestamptz, "effectiveBasis" text,
      "requestedBy" text, reason text, reverses text, "seenAt" timestamptz, "seenVersion" bigint)
    on conflict (id) do nothing`;
}
