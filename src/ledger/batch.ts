/**
 * The batch: what is due, and one statement that writes what was planned for it. Triggers check it
 * at the end of that statement, when accounts, transactions and entries are all written. What
 * cannot be posted is quarantined until a person releases it.
 */
import { asJson, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { lockedFence, requireFence } from '../db/leases.ts';
import { rowsOf } from '../db/rows.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import {
  accountKey,
  type Effect,
  findWithEffects,
  quarantineDuePosting,
  releaseDuePosting,
  removeDuePostings,
} from '../operations/operations.ts';
import type { Draft, DueOperation, Original, Plan, Problem } from './plan.ts';
import { accountKind, type PostingRequest } from './posting.ts';
import { nftMovements, postingRequests, transactions } from './tables.ts';
import { deleteHolders } from './tokens/movements.ts';

type Condition = ReturnType<typeof hasWork>;

/** The last batch and the last transaction, after which numbering continues. */
export interface Head {
  batchId: bigint;
  recordedAt: Instant;
  transactionId: bigint;
}

/** What posting these operations needs, in their order. */
export async function listDueOperations(tx: Tx, ids: readonly string[]): Promise<DueOperation[]> {
  if (ids.length === 0) return [];
  const [found, posted] = await Promise.all([findWithEffects(tx, ids), timesPosted(tx, ids)]);
  return ids.map((id) => ({
    ...must(found.get(id), 'operation of a due posting'),
    timesPosted: posted.get(id) ?? 0,
  }));
}

/** How often each of these operations was posted or reversed; those that never were are absent. */
export async function timesPosted(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await db.sql<{ operationId: string; n: number }[]>`
    select operation_id, max(posting)::int as n from (
      select operation_id, posting from tallyhook.transactions
      where operation_id = any(${ids as string[]}::text[])
      union all
      select operation_id, posting from tallyhook.nft_movements
      where operation_id = any(${ids as string[]}::text[])) p
    group by operation_id`;
  return new Map(rows.map(({ operationId, n }) => [operationId, n]));
}

/** The last batch and the last transaction; zeros before the first batch. */
export async function readHead(tx: Tx): Promise<Head> {
  const rows = await tx.sql<Record<keyof Head, bigint>[]>`select ${headColumns(tx.sql)}`;
  return headOf(must(rows[0], 'head of the ledger'));
}

function headColumns(sql: Sql) {
  return sql`coalesce((select max(id) from tallyhook.batches), 0) as "batchId",
    coalesce((select max(id) from tallyhook.transactions), 0) as "transactionId",
    (coalesce((select extract(epoch from max(recorded_at)) from tallyhook.batches), 0)
      * 1000)::bigint as "recordedAt"`;
}

function headOf({ batchId, transactionId, recordedAt }: Record<keyof Head, bigint>): Head {
  return { batchId, transactionId, recordedAt: Number(recordedAt) };
}

/** How many rows of evidence wait, up to 2,001 inserting statements of one row at least. */
export function unchained(sql: Sql) {
  return sql`(select coalesce(sum(cardinality(row_ids)), 0)::int
    from (select row_ids from tallyhook.unchained_rows order by id limit 2001) u)`;
}

/** Something waits for a pass: a posting, a request, a holder, evidence, or new fee rules. */
export function hasWork(sql: Sql) {
  return sql`(exists (select due_at from tallyhook.due_postings
      where quarantine_reason is null order by due_at limit 1)
    or exists (select requested_at from tallyhook.posting_requests
      where posted_at is null and problem is null order by requested_at limit 1)
    or exists (select from tallyhook.observed_holders where problem is null)
    or exists (select from tallyhook.unchained_rows)
    or exists (select from tallyhook.fee_rules where applied_at is null))`;
}

/** What a pass begins with. */
export interface Beginning {
  head: Head;
  /** Due posting requests, oldest first; a reversal waits until its original is posted. */
  requests: PostingRequest[];
  /** Whether observed holders are due, and how much evidence waits; see `unchained`. */
  hasHolders: boolean;
  unchained: number;
  /** What the given condition says. */
  feesDue: boolean;
}

/**
 * Locks the lease and reads what a pass begins with, in one statement. While the lease has the
 * fence, no other daemon can have added a batch since.
 * @param feesDue a condition of `makeFeeRules`
 * @throws Failure `lease_lost`
 */
export async function beginPass(
  { sql }: Tx,
  lease: { name: string; fence: bigint },
  limit: number,
  feesDue: Condition,
): Promise<Beginning> {
  type Row = Record<keyof Head | 'fence', bigint> &
    Pick<Beginning, 'hasHolders' | 'unchained' | 'feesDue'> &
    RequestRow;
  const rows = await sql<Row[]>`
    with held as materialized (${lockedFence(sql, lease.name)})
    select (select fence from held) as fence, ${headColumns(sql)},
      exists (select from tallyhook.observed_holders where problem is null) as has_holders,
      ${unchained(sql)} as unchained, ${feesDue} as fees_due, p.*
    from (values (1)) as one left join lateral (
      select id, kind, account, counter, amount, effective_at, effective_basis, requested_by,
        reason, reverses, seen_at, seen_version, requested_at
      from tallyhook.posting_requests p
      where posted_at is null and problem is null and (reverses is null or not exists (
        select from tallyhook.posting_requests r
        where r.id = p.reverses and r.posted_at is null and r.problem is null))
      order by requested_at, id limit ${limit}) p on true
    order by p.requested_at, p.id`;
  const first = must(rows[0], 'beginning of a pass');
  requireFence(first.fence, lease.name, lease.fence);
  const requests = first.id === null ? [] : rows.map(requestOf);
  return { ...first, head: headOf(first), requests };
}

type RequestRow = PostingRequest & { seenAt: Instant | null; seenVersion: bigint | null };

function requestOf({ seenAt, seenVersion, ...request }: RequestRow): PostingRequest {
  return { ...request, seen: seenAt === null ? null : { at: seenAt, version: seenVersion ?? 0n } };
}

/**
 * Posted transactions with their entries: of these postings of operations, and those that these
 * requests reverse.
 */
export async function listOriginals(
  tx: Tx,
  postings: readonly { id: string; posting: number }[],
  requests: readonly PostingRequest[] = [],
): Promise<Original[]> {
  const ids = requests.flatMap(({ reverses }) => reverses ?? []);
  if (postings.length + ids.length === 0) return [];
  const rows = await tx.sql<(Omit<Original, 'effects'> & Effect)[]>`
    select t.id as transaction_id, t.operation_id, t.posting_request_id, t.effective_at,
      t.effective_basis, a.name as account, e.amount
    from tallyhook.transactions t
    join tallyhook.entries e on e.transaction_id = t.id
    join tallyhook.accounts a on a.id = e.account_id
    where t.posting_request_id = any(${ids}::text[]) or t.id in (
      select r.id from jsonb_to_recordset(${asJson(postings)}::jsonb) as x(id text, posting int)
      join tallyhook.transactions r on r.operation_id = x.id and r.posting = x.posting)
    order by t.id, e.line`;
  const found = new Map<bigint, Original>();
  for (const { account, amount, ...transaction } of rows) {
    const posted = found.get(transaction.transactionId) ?? { ...transaction, effects: [] };
    posted.effects.push({ account, amount });
    found.set(transaction.transactionId, posted);
  }
  return [...found.values()];
}

/** How many rows wait to be posted, counted up to `max` of each kind, and since when. */
export async function countUnposted(
  db: Queryable,
  max: number,
): Promise<{ waiting: number; since: Instant | null }> {
  const rows = await db.sql<{ waiting: number; since: Instant | null }[]>`
    select count(*)::int as waiting, min(at) as since from (
      (select due_at as at from tallyhook.due_postings where quarantine_reason is null
        order by due_at limit ${max})
      union all
      (select requested_at from tallyhook.posting_requests where posted_at is null
        and problem is null
        order by requested_at limit ${max})
      union all
      (select requested_at from tallyhook.observed_holders where problem is null
        order by id limit ${max})) x`;
  return rows[0] ?? { waiting: 0, since: null };
}

/** True while an operation waits to be posted that was due by then. */
export async function hasDuePostings({ sql }: Queryable, by: Instant): Promise<boolean> {
  const rows = await sql<{ due: boolean }[]>`
    select exists (select from tallyhook.due_postings
      where quarantine_reason is null and due_at <= ${isoText(by)}) as due`;
  return rows[0]?.due ?? false;
}

/**
 * Writes the transactions of a plan as one batch after the head, and what it did with them. Returns
 * when, and whether there was nothing to make a batch of.
 */
export async function writePlan(tx: Tx, plan: Plan, head: Head, now: Instant) {
  const recordedAt = Math.max(now, head.recordedAt + 1);
  const batch = makeBatch(plan, head.transactionId);
  const isEmpty = batch.accounts.length + batch.movements.length === 0;
  // Sent at once; they are executed in this order, and none after one that fails.
  await Promise.all([
    isEmpty || insertBatch(tx, batch, { batchId: head.batchId + 1n, recordedAt }),
    removeDuePostings(tx, [...plan.operationIds, ...plan.unchangedIds]),
    insertPostingRequests(tx, plan.ownRequests, recordedAt),
    markRequestsPosted(tx, plan.postingRequestIds, recordedAt),
    deleteHolders(tx, plan.holderIds),
  ]);
  return { recordedAt, isEmpty };
}

/** Writes one batch whole: its row, transactions, token movements, accounts and entries. */
async function insertBatch(
  tx: Tx,
  batch: Batch,
  head: { batchId: bigint; recordedAt: Instant },
): Promise<void> {
  const { transactions: posted, entries, accounts, movements } = batch;
  const inBatch = <T>(row: T) => ({ ...row, ...head });
  const id = head.batchId.toString();
  const at = isoText(head.recordedAt);
  const a = columnsOf(accounts);
  const e = columnsOf(entries);
  await tx.sql`
    with head as (
      insert into tallyhook.batches (id, recorded_at, transactions, entries)
      values (${id}::bigint, ${at}::timestamptz, ${posted.length}, ${entries.length})
    ), posted as (
      insert into tallyhook.transactions ${rowsOf(tx.sql, transactions, posted.map(inBatch))}
    ), moved as (
      insert into tallyhook.nft_movements ${rowsOf(tx.sql, nftMovements, movements.map(inBatch))}
    ), account as (
      insert into tallyhook.accounts as a (name, kind, balance, version, opened_at)
      select x.name, x.kind, x.amount, x.count, ${at}::timestamptz
      from unnest(${a('name')}::text[], ${a('kind')}::text[], ${a('amount')}::numeric[],
        ${a('count')}::bigint[]) as x(name, kind, amount, count)
      on conflict (lower(name), asset) do update
        set balance = a.balance + excluded.balance, version = a.version + excluded.version
      returning a.id, lower(a.name) as key, a.balance, a.version
    )
    insert into tallyhook.entries (transaction_id, line, account_id, amount, balance_after, version,
      effective_at, recorded_at)
    select x.transaction_id, x.line, a.id, x.amount, a.balance - x.later_amount,
      a.version - x.later_count, x.effective_at, ${at}::timestamptz
    from unnest(${e('transactionId')}::bigint[], ${e('line')}::smallint[], ${e('account')}::text[],
      ${e('amount')}::numeric[], ${e('laterAmount')}::numeric[], ${e('laterCount')}::bigint[],
      ${e('effectiveAt')}::timestamptz[]) as x(transaction_id, line, account, amount, later_amount,
      later_count, effective_at)
    join account a on a.key = x.account`;
}

/** One member of all rows as an array parameter; the driver takes an array that begins with a
 * bigint for a bigint. */
function columnsOf<T>(rows: readonly T[]) {
  return (member: keyof T) =>
    rows.map((row) => {
      const value = row[member];
      return typeof value === 'bigint' ? value.toString() : value;
    }) as never;
}

async function markRequestsPosted(tx: Tx, ids: readonly string[], at: Instant): Promise<void> {
  if (ids.length === 0) return;
  await tx.sql`
    update tallyhook.posting_requests set posted_at = ${isoText(at)}
    where id = any(${ids as string[]}::text[])`;
}

/** A second request with the same id changes nothing. */
export async function insertPostingRequests(
  tx: Tx,
  requests: readonly PostingRequest[],
  requestedAt: Instant,
): Promise<void> {
  if (requests.length === 0) return;
  const rows = requests.map(({ seen, ...row }) => ({
    ...row,
    seenAt: seen?.at ?? null,
    seenVersion: seen?.version ?? null,
    requestedAt,
  }));
  await tx.sql`
    insert into tallyhook.posting_requests ${rowsOf(tx.sql, postingRequests, rows)}
    on conflict (id) do nothing`;
}

interface TransactionRow extends Omit<Draft, 'effects'> {
  id: bigint;
  entryCount: number;
}

interface EntryRow {
  transactionId: bigint;
  line: number;
  /** The key of the account. */
  account: string;
  amount: bigint;
  effectiveAt: Instant;
  /** The sum and the number of the entries that follow on this account within the batch. */
  laterAmount: bigint;
  laterCount: number;
}

/** An account that the batch changes or opens, in the spelling that came first. */
interface AccountRow {
  name: string;
  kind: string;
  /** The sum and the number of its entries in the batch. */
  amount: bigint;
  count: number;
}

interface Batch {
  transactions: TransactionRow[];
  entries: EntryRow[];
  accounts: AccountRow[];
  movements: Plan['movements'];
}

/**
 * Numbers the transactions from `lastTransactionId + 1` in the order of the plan. An entry carries
 * the sum and number of the entries that follow it on its account within the batch. The database
 * subtracts them from the account's new balance and version, so no balance is read before it is
 * written.
 */
function makeBatch(plan: Plan, lastTransactionId: bigint): Batch {
  const transactions = plan.drafts.map(({ effects, ...draft }, index): TransactionRow => {
    return { ...draft, id: lastTransactionId + BigInt(index) + 1n, entryCount: effects.length };
  });
  const accounts = new Map<string, AccountRow>();
  const names = plan.drafts.flatMap(({ effects }) => effects.map((effect) => effect.account));
  for (const name of [...names, ...plan.opened]) {
    const key = accountKey(name);
    if (!accounts.has(key)) {
      accounts.set(key, { name, kind: accountKind(name), amount: 0n, count: 0 });
    }
  }
  return {
    transactions,
    entries: entriesOf(plan.drafts, lastTransactionId, accounts),
    accounts: [...accounts.values()],
    movements: plan.movements,
  };
}

/** Goes backwards, so that each account's row holds the sum of the entries that follow. */
function entriesOf(
  drafts: readonly Draft[],
  lastTransactionId: bigint,
  accounts: ReadonlyMap<string, AccountRow>,
): EntryRow[] {
  const entries: EntryRow[] = [];
  for (const [index, { effects, effectiveAt }] of [...drafts.entries()].reverse()) {
    const transactionId = lastTransactionId + BigInt(index) + 1n;
    for (const [position, effect] of [...effects.entries()].reverse()) {
      const account = accountKey(effect.account);
      const row = must(accounts.get(account), 'account of an effect');
      const { amount: laterAmount, count: laterCount } = row;
      const { amount } = effect;
      const line = position + 1;
      entries.push({ transactionId, line, account, amount, effectiveAt, laterAmount, laterCount });
      row.amount += amount;
      row.count += 1;
    }
  }
  return entries.reverse();
}

/** Excludes what cannot be posted until a person releases it; reports show it as a break. */
export async function quarantine(tx: Tx, { of, id, problem }: Problem, at: Instant): Promise<void> {
  const { sql } = tx;
  switch (of) {
    case 'operation':
      return quarantineDuePosting(tx, id, problem, at);
    case 'posting_request':
      await sql`update tallyhook.posting_requests set problem = ${problem} where id = ${id}`;
      return;
    case 'observed_holder':
      await sql`
        update tallyhook.observed_holders set problem = ${problem} where id = ${id}::bigint`;
  }
}

/**
 * Makes the ledger try a quarantined posting again. Returns why it was quarantined; undefined if it
 * is not.
 */
export async function releasePosting(
  tx: Tx,
  kind: Problem['of'],
  id: string,
): Promise<string | undefined> {
  const rows = await released(tx, kind, id);
  return rows[0]?.problem;
}

async function released(tx: Tx, kind: Problem['of'], id: string) {
  const { sql } = tx;
  switch (kind) {
    case 'operation':
      return releaseDuePosting(tx, id);
    case 'posting_request':
      return sql<{ problem: string }[]>`
        update tallyhook.posting_requests r set problem = null
        from (select id, problem from tallyhook.posting_requests
          where id = ${id} and problem is not null and posted_at is null for update) q
        where r.id = q.id returning q.problem`;
    case 'observed_holder':
      if (!/^\d{1,18}$/.test(id)) return [];
      return sql<{ problem: string }[]>`
        update tallyhook.observed_holders h set problem = null
        from (select id, problem from tallyhook.observed_holders
          where id = ${id}::bigint and problem is not null for update) q
        where h.id = q.id returning q.problem`;
  }
}
