/**
 * SQL that reads the ledger as the lines of its hash chain. The columns and their order are those
 * of the trigger in drizzle/0001_guards.sql. They are written a second time on purpose: a function
 * that was replaced in the database cannot mislead a verification.
 */
import type { Sql, Tx } from '../../db/connect.ts';
import type { ChainedRows, ChainRow, EvidenceLine, Link, RowLine } from './link.ts';

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

/** What people decided of the drifts that bookings and their reversals are of, by request. */
export async function listBookings(
  tx: Tx,
  requestIds: readonly string[],
): Promise<Map<string, { drift_id: string; reason: string | null; decided_by: string | null }>> {
  if (requestIds.length === 0) return new Map();
  const rows = await tx.sql<
    { id: string; driftId: string; reason: string | null; decidedBy: string | null }[]
  >`
    select posting_request_id as id, drift_id, reason, decided_by from tallyhook.bookings
    where posting_request_id = any(${requestIds as string[]}::text[])`;
  return new Map(
    rows.map(({ id, driftId, reason, decidedBy }) => {
      return [id, { drift_id: driftId, reason, decided_by: decidedBy }];
    }),
  );
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

type Fragment = ReturnType<Sql>;

/** What is asked of a source: its rows as `n`, and which of their columns is looked up. */
interface Source {
  columns: Fragment;
  from: Fragment;
  /** The whole key; `first` is its first part, by which rows are found. */
  key: Fragment;
  first: 'id number' | 'id' | 'subject';
}

function sourcesOf({ sql }: Tx): Map<string, Source> {
  const numbered = { key: sql`n.id` as Fragment, first: 'id number' as const };
  const named = { key: sql`n.id` as Fragment, first: 'id' as const };
  const approval: Source = {
    columns: sql`n.subject, n.n, n.proposed_by, n.owner, n.key_id, n.at`,
    from: sql`from tallyhook.approvals n`,
    key: sql`n.subject, n.n, n.owner`,
    first: 'subject',
  };
  const decision: Source = {
    columns: sql`n.subject, n.n, n.decision, n.operation_id, n.reason, n.approvals_needed,
      n.proposed_by, n.proposed_key, n.proposed_at`,
    from: sql`from tallyhook.decisions n`,
    key: sql`n.subject, n.n`,
    first: 'subject',
  };
  const drift: Source = {
    columns: sql`n.id, n.wallet_key, n.addr, n.suspected_at, n.opened_at, n.window_from,
      n.window_to, n.evidence`,
    from: sql`from tallyhook.drifts n`,
    ...named,
  };
  const drift_action: Source = {
    columns: sql`n.id, n.drift_id, n.action, n.at, n.by, n.detail`,
    from: sql`from tallyhook.drift_actions n`,
    ...numbered,
  };
  const period: Source = {
    columns: sql`n.id, n.period_from, n.period_to, n.report_id, n.report_hash, n.last_batch,
      n.known_at, n.chain_head, n.decision, n.closed_by, n.closed_at`,
    from: sql`from tallyhook.periods n`,
    ...named,
  };
  const period_action: Source = {
    columns: sql`n.id, n.period_id, n.action, n.at, n.by, n.key_id, n.reason, n.detail`,
    from: sql`from tallyhook.period_actions n`,
    ...numbered,
  };
  const quarantine_release: Source = {
    columns: sql`n.id, n.kind, n.subject, n.problem, n.released_at, n.released_by,
      n.released_key, n.reason`,
    from: sql`from tallyhook.quarantine_releases n`,
    ...numbered,
  };
  const transition: Source = {
    columns: sql`n.id, n.operation_id, n.from_state, n.to_state, n.at, n.cause, n.evidence,
      n.deadline_at, n.daemon_id, n.tx_log_no::text, n.tx_hash`,
    from: sql`from tallyhook.transitions n`,
    ...numbered,
  };
  const decided = { approval, decision, period, period_action };
  const others = { drift, drift_action, quarantine_release, transition };
  return new Map(Object.entries({ ...decided, ...others }));
}

type BatchRows = ChainedRows & { batchId: bigint };

/** The evidence in these batches, in the order of its digests. */
async function listChainedRows(tx: Tx, after: bigint, upTo: bigint): Promise<BatchRows[]> {
  return tx.sql<BatchRows[]>`
    select batch_id, source, row_ids from tallyhook.chained_rows
    where batch_id > ${String(after)}::bigint and batch_id <= ${String(upTo)}::bigint
    order by batch_id, source collate "C"`;
}

/** The rows that batches name and that there are, as lines by source and key. */
async function findEvidence(
  tx: Tx,
  chained: readonly ChainedRows[],
): Promise<Map<string, Map<string, EvidenceLine>>> {
  const found = new Map<string, Map<string, EvidenceLine>>();
  for (const [name, source] of sourcesOf(tx)) {
    const keys = chained.flatMap((rows) => (rows.source === name ? rows.rowIds : []));
    if (keys.length === 0) continue;
    const lines = await listLines(tx, name, source, keys);
    found.set(name, new Map(lines.map((line) => [line.key, line])));
  }
  return found;
}

async function listLines(
  { sql }: Tx,
  name: string,
  { columns, from, key, first }: Source,
  keys: readonly string[],
): Promise<EvidenceLine[]> {
  return sql<EvidenceLine[]>`
    select ${name} as source, concat_ws('/', ${key}) as key,
      row_to_json((select r from (select ${name} as row, ${columns}) r))::text as line
    ${from} where ${first === 'id number' ? inRange() : isOne()}`;

  function isOne() {
    const names = first === 'id' ? [...keys] : keys.map((whole) => whole.split('/')[0] ?? '');
    if (first === 'id') return sql`n.id = any(${names}::text[])`;
    return sql`n.subject = any(${names}::text[])
      and concat_ws('/', ${key}) = any(${[...keys]}::text[])`;
  }

  // A range, because the index of transitions by their ids knows ranges only. A generic plan
  // would search an array row by row, but hashes what a subquery returns.
  function inRange() {
    const ids = keys.filter((id) => /^-?\d{1,18}$/.test(id));
    const numbers = ids.map(BigInt);
    const lowest = numbers.reduce((one, other) => (other < one ? other : one), numbers[0] ?? 0n);
    const highest = numbers.reduce((one, other) => (other > one ? other : one), numbers[0] ?? 0n);
    return sql`n.id between ${String(lowest)}::bigint and ${String(highest)}::bigint
      and n.id + 0 in (select k.id::bigint from unnest(${ids}::text[]) as k(id))`;
  }
}

/**
 * Rows in no batch up to the last one, and not about to be put into the next: some of each source.
 * They are only searched for if there are more rows than were found.
 * @param found how many rows of each source the batches name
 */
async function listStrangeEvidence(
  tx: Tx,
  last: bigint,
  found: ReadonlyMap<string, number>,
  max: number,
): Promise<EvidenceLine[]> {
  const { sql } = tx;
  const waiting = await sql<{ source: string; rows: number }[]>`
    select source, sum(cardinality(row_ids))::int as rows from tallyhook.unchained_rows
    group by source`;
  const strange: EvidenceLine[] = [];
  for (const [name, { from, key }] of sourcesOf(tx)) {
    const known = (found.get(name) ?? 0) + (waiting.find((one) => one.source === name)?.rows ?? 0);
    const [counted] = await sql<{ rows: bigint }[]>`select count(*) as rows ${from}`;
    if (counted?.rows === BigInt(known)) continue;
    const rows = await sql<EvidenceLine[]>`
      select ${name} as source, concat_ws('/', ${key}) as key, '' as line ${from}
      where not exists (
        select from tallyhook.chained_rows c cross join unnest(c.row_ids) as k(key)
        where c.source = ${name} and c.batch_id between 1 and ${String(last)}::bigint
          and k.key = concat_ws('/', ${key}))
        and not exists (
          select from tallyhook.unchained_rows u cross join unnest(u.row_ids) as k(key)
          where u.source = ${name} and k.key = concat_ws('/', ${key}))
      order by ${key} limit ${max}`;
    strange.push(...rows);
  }
  return strange;
}
