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

/** The states of operations that have not ended; see the table `open_operations`. */
const OPEN_STATES = ['sending', 'queued', 'accepted', 'unknown', 'executed', 'undecided'];
/** Those of `ended_as`. */
const ENDED_STATES = ['rejected', 'failed', 'not_executed', 'cancelled'];

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
  const states = statesOf(sql, f);
  const ids = parties
    .flatMap((rows) => states.map((state) => newest(sql`${rows} and ${state}`)))
    .reduce((before, part) => sql`${before} union all ${part}`);
  return sql<Operation[]>`
    select ${operationColumns(sql)} from tallyhook.operations o where o.id = any(array(${ids}))
    order by o.recorded_at desc, o.id desc limit ${f.limit}`;
}

/** The states of a list, as conditions of its parts. Open operations are few. */
function statesOf(sql: Sql, { open, state }: OperationFilter): ReturnType<Sql>[] {
  const listed = (rows: ReturnType<Sql>): ReturnType<Sql> => sql`
    o.id = any(array(select w.id from tallyhook.open_operations w where ${rows}))`;
  if (open) return [listed(state ? sql`w.state = ${state}` : sql`true`)];
  if (!state) return [sql`true`];
  if (ENDED_STATES.includes(state)) return [sql`o.ended_as = ${state}`];
  // The state that most have, for which the planner has to expect many.
  if (!OPEN_STATES.includes(state))
    return [sql`o.state <> all(${[...OPEN_STATES, ...ENDED_STATES]}::text[])`];
  const accepted: ReturnType<Sql> = sql`o.kind = 'other' and o.state = 'accepted'`;
  return [listed(sql`w.state = ${state}`), ...(state === 'accepted' ? [accepted] : [])];
}

function listConditions(sql: Sql, f: OperationFilter) {
  const { before, txHash, idempotencyKey, reference } = f;
  const [contract, token] = [f.contractId?.toString(), f.tokenId?.toString()];
  const txLogNo = f.txLogNo?.toString();
  // Few rows match these filters. As a list of ids they are always found first, by their index.
  const few = (rows: ReturnType<Sql>) => sql`
    and o.id = any(array(select p.id from tallyhook.operations p where ${rows}))`;
  const withTx = (rows: ReturnType<Sql>) => sql`
    and o.id = any(array(select t.operation_id from tallyhook.transitions t where ${rows}))`;
  return sql`
    ${
      before
        ? sql`and (o.recorded_at, o.id) < (
            (select b.recorded_at from tallyhook.operations b where b.id = ${before}), ${before})`
        : sql``
    }
    ${f.kind ? sql`and o.kind = ${f.kind}` : sql``}
    ${f.proposed ? sql`and ${isProposed(sql)}` : sql``}
    ${contract ? sql`and o.contract_id = ${contract}::numeric` : sql``}
    ${token ? sql`and o.token_id = ${token}::numeric` : sql``}
    ${txLogNo ? withTx(sql`t.tx_log_no = ${txLogNo}::numeric`) : sql``}
    ${txHash ? withTx(sql`lower(t.tx_hash) = ${txHashKey(txHash)}`) : sql``}
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
    select s.state, count(w.recorded_at)::int as count, min(w.recorded_at) as oldest_at
    from unnest(${OPEN_STATES}::text[]) as s(state)
    left join lateral (
      select recorded_at from tallyhook.open_operations w where w.state = s.state
      order by w.changed_at limit ${max}) w on true
    group by s.state having count(w.recorded_at) > 0 or s.state = 'undecided'`;
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
