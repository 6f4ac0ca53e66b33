/**
 * SQL that reads the ledger as the lines of its hash chain. The columns and their order are those
 * of the trigger in drizzle/0001_guards.sql. They are written a second time on purpose: a function
 * that someone replaced in the database cannot mislead a verification.
 */
import type { Tx } from '../../db/connect.ts';
import { findEvidence, listChainedRows, listStrangeEvidence } from './evidence-store.ts';
import type { ChainRow, Link, RowLine } from './link.ts';

/** Batches that are read at once: with so many rows, or a single one with more. */
const PAGE = 100;
/** Ten thousand are no faster, and hold the event loop 34 ms, not 20. */
const PAGE_ROWS = 2_000;

export async function setReadOnly(tx: Tx): Promise<void> {
  await tx.sql`set transaction read only`;
  await tx.sql`set local timezone = 'UTC'`;
}

/** Runs the work on one page of the ledger in a transaction with a snapshot. */
type InSnapshot = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>;
type Position = Pick<ChainRow, 'batchId' | 'lastTransaction'>;

/**
 * The whole ledger, link by link; the last link holds the rows beyond the chain. Each page is
 * consistent in itself, so pages may have snapshots of their own: what is posted meanwhile follows.
 */
export async function* readLinks(inSnapshot: InSnapshot): AsyncGenerator<Link> {
  let before: Position = { batchId: 0n, lastTransaction: 0n };
  /** Rows of evidence that were found, by source. */
  const found = new Map<string, number>();
  for (;;) {
    const links = await inSnapshot((tx) => readPage(tx, before, found));
    for (const { source } of links.flatMap(({ evidence }) => evidence))
      found.set(source, (found.get(source) ?? 0) + 1);
    yield* links;
    const last = links.at(-1)?.chain;
    if (!last) return;
    before = last;
  }
}

/** The next links; after the last one, what is beyond the chain. */
async function readPage(
  tx: Tx,
  start: Position,
  found: ReadonlyMap<string, number>,
): Promise<Link[]> {
  let before = start;
  const rows = await listChain(tx, before.batchId);
  const last = rows.at(-1);
  if (!last)
    return [
      {
        chain: undefined,
        batch: await listStrangeBatches(tx, before.batchId),
        transactions: await listStrangeTransactions(tx, before.lastTransaction),
        movements: await listStrangeMovements(tx, before.batchId),
        chained: [],
        evidence: await listStrangeEvidence(tx, before.batchId, found, STRANGE_MAX),
      },
    ];
  const batches = await listBatches(tx, before.batchId, last.batchId);
  const transactions = await listTransactions(tx, before.lastTransaction, last.lastTransaction);
  const movements = await listMovements(tx, before.batchId, last.batchId);
  const chained = await listChainedRows(tx, before.batchId, last.batchId);
  const evidence = await findEvidence(tx, chained);
  return rows.map((chain) => {
    const { batchId, lastTransaction } = chain;
    const after = before.lastTransaction;
    before = chain;
    const named = chained.filter((one) => one.batchId === batchId);
    return {
      chain,
      batch: batches.filter(({ id }) => id === batchId),
      transactions: transactions.filter(({ id }) => id > after && id <= lastTransaction),
      movements: movements.filter((row) => row.batchId === batchId),
      chained: named,
      evidence: named.flatMap(({ source, rowIds }) =>
        rowIds.flatMap((key) => evidence.get(source)?.get(key) ?? []),
      ),
    };
  });
}

async function listChain(tx: Tx, after: bigint): Promise<ChainRow[]> {
  return tx.sql<ChainRow[]>`
    select c.batch_id, c.last_transaction, c.batch, c.transactions, c.movements, c.evidence, c.head
    from (
      select batch_id, sum(octet_length(transactions) + octet_length(evidence)) over w / 32 as found
      from tallyhook.chain where batch_id > ${String(after)}::bigint
      window w as (order by batch_id) order by batch_id limit ${PAGE}) p
    join tallyhook.chain c on c.batch_id = p.batch_id
    where p.found <= ${PAGE_ROWS} or p.batch_id = (select min(batch_id) from tallyhook.chain
      where batch_id > ${String(after)}::bigint)
    order by c.batch_id`;
}

async function listBatches(tx: Tx, after: bigint, upTo: bigint): Promise<RowLine[]> {
  return tx.sql<RowLine[]>`
    select b.id, row_to_json((select r from (select 'batch' as row, b.id, b.recorded_at,
      b.transactions, b.entries) r))::text as line
    from tallyhook.batches b
    where b.id > ${String(after)}::bigint and b.id <= ${String(upTo)}::bigint`;
}

async function listTransactions(tx: Tx, after: bigint, upTo: bigint): Promise<RowLine[]> {
  return tx.sql<RowLine[]>`
    select t.id, row_to_json((select r from (select 'transaction' as row,
      t.id, t.batch_id, t.kind, t.operation_id, t.posting, t.posting_request_id, t.reverses,
      t.reason_type, t.reference, t.tx_app_no::text, t.tx_log_no::text, t.requested_by,
      t.effective_at, t.effective_basis, t.recorded_at, t.entry_count,
      array_to_json(array(select row_to_json(x) from (select e.line, e.account_id,
        a.name as account, e.amount::text, e.balance_after::text, e.version, e.effective_at,
        e.recorded_at
        from tallyhook.entries e left join tallyhook.accounts a on a.id = e.account_id
        where e.transaction_id = t.id order by e.line) x)) as entries) r))::text as line
    from tallyhook.transactions t
    where t.id > ${String(after)}::bigint and t.id <= ${String(upTo)}::bigint order by t.id`;
}

/** Numbers of operations that became known after their posting, by operation. */
export async function listLateNumbers(
  tx: Tx,
  operationIds: readonly string[],
): Promise<Map<string, { tx_app_no: string; tx_log_no: string }>> {
  if (operationIds.length === 0) return new Map();
  const rows = await tx.sql<{ id: string; app: string; log: string }[]>`
    select id, tx_app_no::text as app, tx_log_no::text as log from tallyhook.operations
    where id = any(${operationIds as string[]}::text[]) and tx_log_no is not null`;
  return new Map(rows.map(({ id, app, log }) => [id, { tx_app_no: app, tx_log_no: log }]));
}

async function listMovements(
  tx: Tx,
  after: bigint,
  upTo: bigint,
): Promise<(RowLine & { batchId: bigint })[]> {
  return tx.sql<(RowLine & { batchId: bigint })[]>`
    select m.id, m.batch_id, row_to_json((select r from (select 'movement' as row,
      m.id, m.batch_id, m.kind, m.contract_id::text, m.token_id::text, m.from_addr, m.to_addr,
      m.tx_hash, m.operation_id, m.posting, m.reverses, m.not_before, m.effective_at,
      m.effective_basis, m.recorded_at) r))::text as line
    from tallyhook.nft_movements m
    where m.batch_id > ${String(after)}::bigint and m.batch_id <= ${String(upTo)}::bigint
    order by m.batch_id, m.id`;
}

/** Rows beyond the chain that are named at most. */
const STRANGE_MAX = 101;

async function listStrangeBatches(tx: Tx, last: bigint): Promise<RowLine[]> {
  return tx.sql<RowLine[]>`
    select id, '' as line from tallyhook.batches where id < 1 or id > ${String(last)}::bigint
    order by id limit ${STRANGE_MAX}`;
}

/** Transactions outside the chain, and transactions of which only entries remain. */
async function listStrangeTransactions(tx: Tx, last: bigint): Promise<RowLine[]> {
  return tx.sql<RowLine[]>`
    select id, '' as line from tallyhook.transactions where id < 1 or id > ${String(last)}::bigint
    union
    select e.transaction_id, '' from tallyhook.entries e
    where e.transaction_id < 1 or e.transaction_id > ${String(last)}::bigint
    order by id limit ${STRANGE_MAX}`;
}

async function listStrangeMovements(tx: Tx, last: bigint): Promise<RowLine[]> {
  return tx.sql<RowLine[]>`
    select id, '' as line from tallyhook.nft_movements
    where batch_id < 1 or batch_id > ${String(last)}::bigint
    order by id limit ${STRANGE_MAX}`;
}

/** Accounts whose balance or number of entries is not that of their last entry. */
export async function listAccountsOff(tx: Tx): Promise<{ row: string; text: string }[]> {
  const rows = await tx.sql<{ name: string; balance: bigint; version: bigint }[]>`
    select a.name, a.balance, a.version from tallyhook.accounts a
    left join lateral (select e.version, e.balance_after from tallyhook.entries e
      where e.account_id = a.id order by e.version desc limit 1) e on true
    where a.version <> coalesce(e.version, 0) or a.balance <> coalesce(e.balance_after, 0)
    order by a.name limit ${STRANGE_MAX}`;
  return rows.map(({ name, balance, version }) => ({
    row: `account ${name}`,
    text: `has balance ${balance} after ${version} entries, which its last entry does not say`,
  }));
}

/** The last head with its count, in the form of `--anchor`; undefined before the first batch. */
export async function readChainHead(db: Pick<Tx, 'sql'>): Promise<string | undefined> {
  const rows = await db.sql<{ head: string }[]>`
    select encode(head, 'hex') || ':' || batch_id as head
    from tallyhook.chain order by batch_id desc limit 1`;
  return rows[0]?.head;
}
