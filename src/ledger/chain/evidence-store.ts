/**
 * SQL that reads the evidence of other stages as lines of the hash chain. The columns and their
 * order are those of the triggers in drizzle/0001_guards.sql, written a second time on purpose: see
 * lines-store.ts.
 */
import type { Sql, Tx } from '../../db/connect.ts';
import type { ChainedRows, EvidenceLine } from './link.ts';

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
    columns: sql`n.id, n.operation_id, n.from_state, n.to_state, n.at, n.cause, n.evidence`,
    from: sql`from tallyhook.transitions n`,
    ...numbered,
  };
  const decided = { approval, decision, period, period_action };
  const others = { drift, drift_action, quarantine_release, transition };
  return new Map(Object.entries({ ...decided, ...others }));
}

export type BatchRows = ChainedRows & { batchId: bigint };

/** The evidence in these batches, in the order of its digests. */
export async function listChainedRows(tx: Tx, after: bigint, upTo: bigint): Promise<BatchRows[]> {
  return tx.sql<BatchRows[]>`
    select batch_id, source, row_ids from tallyhook.chained_rows
    where batch_id > ${String(after)}::bigint and batch_id <= ${String(upTo)}::bigint
    order by batch_id, source collate "C"`;
}

/** The rows that batches name and that there are, as lines by source and key. */
export async function findEvidence(
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
export async function listStrangeEvidence(
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
