/** Lists of operations, the count of those that are open, and what the gateway did over time. */
import type { Queryable, Sql } from '../db/connect.ts';
import { addressKey, txHashKey } from '../kernel/addresses.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { writeStep } from '../resources/admin/activity.ts';
import type { RowOf } from '../resources/fields.ts';
import type { operation } from '../resources/operations/operation.ts';
import type { Row } from '../resources/resource.ts';
import { isProposed } from './decisions/decisions.ts';
import type { Operation } from './operation.ts';
import { operationColumns } from './store.ts';

/** The states that are not final. */
const OPEN_STATES = [
  'recorded',
  'sending',
  'queued',
  'accepted',
  'unknown',
  'executed',
  'undecided',
];

export interface OperationFilter extends Partial<RowOf<typeof operation.filters>> {
  /** Continue after this id (ids sort by time), newest first. */
  before?: string | undefined;
  limit: number;
}

/** Newest first. Each filter has an index in this order, or finds few rows. */
export async function listOperations(db: Queryable, f: OperationFilter): Promise<Operation[]> {
  const { sql } = db;
  const newest = (rows: ReturnType<Sql>) => sql`
    (select o.id from tallyhook.operations o
    where ${rows} ${listConditions(sql, f)}
    order by o.recorded_at desc, o.id desc limit ${f.limit})`;
  const key = f.addr === undefined ? undefined : addressKey(f.addr);
  // Two parts, since one index finds the payer and another the receiver.
  const parties: ReturnType<Sql>[] =
    key === undefined
      ? [sql`true`]
      : [
          sql`lower(o.from_addr) = ${key}`,
          sql`lower(o.to_addr) = ${key} and lower(o.from_addr) is distinct from ${key}`,
        ];
  // A part per state, since an index has each in the order of time.
  const parts: ReturnType<Sql>[] = f.open
    ? parties.flatMap((rows) => OPEN_STATES.map((state) => sql`${rows} and o.state = ${state}`))
    : parties;
  const ids = parts
    .map((rows) => newest(rows))
    .reduce((before, part) => sql`${before} union all ${part}`);
  return sql<Operation[]>`
    select ${operationColumns(sql)} from tallyhook.operations o where o.id = any(array(${ids}))
    order by o.recorded_at desc, o.id desc limit ${f.limit}`;
}

function listConditions(sql: Sql, f: OperationFilter) {
  const { before, txHash, idempotencyKey, reference } = f;
  const [contract, token] = [f.contractId?.toString(), f.tokenId?.toString()];
  const txLogNo = f.txLogNo?.toString();
  // Few rows match these filters. As a list of ids they are always found first, by their index.
  const few = (rows: ReturnType<Sql>) => sql`
    and o.id = any(array(select p.id from tallyhook.operations p where ${rows}))`;
  return sql`
    ${
      before
        ? sql`and (o.recorded_at, o.id) < (
            (select b.recorded_at from tallyhook.operations b where b.id = ${before}), ${before})`
        : sql``
    }
    ${f.state ? sql`and o.state = ${f.state}` : sql``}
    ${f.kind ? sql`and o.kind = ${f.kind}` : sql``}
    ${f.proposed ? sql`and ${isProposed(sql)}` : sql``}
    ${contract ? sql`and o.contract_id = ${contract}::numeric` : sql``}
    ${token ? sql`and o.token_id = ${token}::numeric` : sql``}
    ${txLogNo ? few(sql`p.tx_log_no = ${txLogNo}::numeric`) : sql``}
    ${txHash ? few(sql`lower(p.tx_hash) = ${txHashKey(txHash)}`) : sql``}
    ${
      idempotencyKey
        ? few(sql`p.idempotency_key = ${idempotencyKey} and p.key_held
            union all select p.id from tallyhook.operations p
            where p.idempotency_key = ${idempotencyKey} and not p.key_held`)
        : sql``
    }
    ${reference ? sql`and o.reference = ${reference}` : sql``}
    ${f.since === undefined ? sql`` : sql`and o.recorded_at >= ${isoText(f.since)}`}
    ${f.until === undefined ? sql`` : sql`and o.recorded_at < ${isoText(f.until)}`}`;
}

interface OpenCount {
  state: string;
  count: number;
  /** When the oldest was recorded. */
  oldestAt: Instant | null;
}

/** The number of operations in each state that is not final, counted up to `max` per state. */
export async function countOpen(db: Queryable, max: number): Promise<OpenCount[]> {
  return db.sql<OpenCount[]>`
    select s.state, count(o.recorded_at)::int as count, min(o.recorded_at) as oldest_at
    from unnest(${OPEN_STATES}::text[]) as s(state)
    left join lateral (
      select recorded_at from tallyhook.operations o where o.state = s.state
      order by o.recorded_at limit ${max}) o on true
    group by s.state having count(o.recorded_at) > 0 or s.state = 'undecided'`;
}

/** Writes since then, in steps of so many milliseconds; a step without any is left out. */
export async function listWriteActivity(
  { sql }: Queryable,
  since: Instant,
  stepMs: number,
): Promise<Row<typeof writeStep>[]> {
  const from = sql`${isoText(since)}::timestamptz`;
  return sql<Row<typeof writeStep>[]>`
    select date_bin(make_interval(secs => ${stepMs / 1000}), recorded_at, ${from}) as at,
      count(*)::int as writes,
      count(*) filter (where outcome = 'not_executed')::int as not_executed,
      count(*) filter (where outcome = 'open')::int as open,
      percentile_disc(0.95) within group (order by
        extract(epoch from answered_at - sent_at)::float8 * 1000) as answer_p95_ms
    from tallyhook.operations
    where source = 'gateway' and recorded_at >= ${from}
    group by 1 order by 1`;
}
