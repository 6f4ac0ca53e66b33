/**
 * Fills an empty database with settled history, as the stages leave it: 80 % gives of one operator,
 * 10 % transfers, 10 % deductions, spread over users, each posted, confirmed by observations, and
 * long past. SQL makes the rows; a change of the tables is a change of the statements here.
 */
import postgres from 'postgres';
import { isoText } from '../../../../src/kernel/clock.ts';

/** The number of the operator that most writes name, and its wallet. */
export const OPERATOR_NO = 1n;
export const OPERATOR_ADDR = `0xope${'0'.repeat(37)}`;
/** When the history ends. */
export const HISTORY_END = Date.UTC(2026, 0, 1);

export interface Shape {
  days: number;
  /** Operations per user. */
  perUser: number;
}

const SHAPE: Shape = { days: 90, perUser: 100 };
const USERS_MIN = 1_000;
/** Operations per batch of the ledger, whose batches are half an hour apart at most. */
const PER_BATCH_MAX = 200;
const BATCHES_PER_DAY = 48;
const PER_OBSERVATION = 5;
const CHUNK = 250_000;
/** Batches of one statement. */
const CHAINED = 50;

/** The nth user's address, from 0. */
export function userAddr(n: number): string {
  return `0xuser${String(n).padStart(36, '0')}`;
}

/** @param url the owner's login of a migrated database without rows */
export async function generateHistory(
  url: string,
  operations: number,
  { analyze = true, ...given }: Partial<Shape> & { analyze?: boolean } = {},
): Promise<void> {
  const sql = postgres(url, {
    max: 1,
    onnotice: () => {},
    connection: {
      synchronous_commit: 'off',
      statement_timeout: 0,
      work_mem: '256MB',
      maintenance_work_mem: '512MB',
    },
  });
  try {
    const shape = { ...SHAPE, ...given };
    const first = isoText(HISTORY_END - shape.days * 86_400_000);
    await sql`select tallyhook.make_partition(${first}::timestamptz::date, 5)
      from generate_series(1, 25)`;
    if (operations > 0) await fill(sql, operations, shape);
    if (analyze) await sql.unsafe('vacuum (analyze)');
    await sql.unsafe('checkpoint');
  } finally {
    await sql.end();
  }
}

async function fill(sql: postgres.Sql, operations: number, shape: Shape): Promise<void> {
  const restore = await dropIndexes(sql);
  const enable = await disableTriggers(sql);
  for (let from = 1; from <= operations; from += CHUNK) {
    const to = Math.min(operations, from + CHUNK - 1);
    for (const statement of [...RECORDS, ...POSTINGS])
      await run(sql, statement, operations, shape, from, to);
  }
  for (const statement of [...BALANCES, ...TARGETS])
    await run(sql, statement, operations, shape, 1, operations);
  const batches = Math.ceil(operations / perBatchOf(operations, shape.days));
  // Within one statement each batch would read over the evidence that all before it took.
  for (let from = 1; from <= batches; from += CHAINED)
    await sql`select count(tallyhook.extend_chain(b, tallyhook.take_evidence(b)))
      from generate_series(${from}::bigint, ${Math.min(batches, from + CHAINED - 1)}) b`;
  await enable();
  await restore();
}

function perBatchOf(operations: number, days: number): number {
  const even = Math.floor(operations / (days * BATCHES_PER_DAY));
  return Math.max(1, Math.min(PER_BATCH_MAX, even));
}

/** Replaces the holes of a statement; all of them are numbers of ours. */
async function run(
  sql: postgres.Sql,
  statement: string,
  operations: number,
  { days, perUser }: Shape,
  from: number,
  to: number,
): Promise<void> {
  const perBatch = perBatchOf(operations, days);
  const users = Math.max(USERS_MIN, Math.ceil(operations / perUser));
  const holes: Record<string, string> = {
    from: `${from}`,
    to: `${to}`,
    users: `${users}`,
    operations: `${operations}`,
    per_batch: `${perBatch}`,
    per_observation: `${PER_OBSERVATION}`,
    end: `'${isoText(HISTORY_END)}'::timestamptz`,
    gap: `interval '${days} days' / ${operations}`,
    operator_no: `${OPERATOR_NO}`,
    operator: `'wallet:${OPERATOR_ADDR}'`,
  };
  await sql.unsafe(statement.replace(/:(\w+):/g, (_, name: string) => holes[name] ?? ''));
}

/** The nth write: what it is, its parties and its time. */
const WRITES = `(
  select i, :end: - (:operations: - i + 1) * :gap: as at,
    case when i % 10 < 8 then 'give' when i % 10 = 8 then 'transfer'
      else 'receive_from' end as kind,
    '0xuser' || lpad((i * 7919 % :users:)::text, 36, '0') as one,
    '0xuser' || lpad(((i * 7919 + 1) % :users:)::text, 36, '0') as other,
    1 + i % 997 as amount
  from generate_series(:from:::bigint, :to:) i
) w
cross join lateral (select lpad(to_hex((extract(epoch from w.at) * 1000)::bigint), 12, '0') as ms) h
cross join lateral (select 'op_' || substr(ms, 1, 8) || '-' || substr(ms, 9) || '-7000-8000-'
  || lpad(w.i::text, 12, '0') as id) n`;

const RECORDS = [
  `insert into tallyhook.operations (id, kind, state, source, owner, key_id, idempotency_key,
    fingerprint, key_held, method, path, content_type, request_body, from_addr, to_addr,
    operation_no, amount, fee_amount, reason_type, pre_image, tx_app_no, tx_log_no,
    answer_status, answer_headers, answer_body, recorded_at, sent_at, send_deadline_at,
    answered_at, effective_at, effective_basis, settled_at, event_seq)
  select id, kind, 'settled', 'gateway', 'shop', 'key_1', 'order-' || i, md5(i::text), true, 'POST',
    '/v1/app/token/' || kind, 'application/json',
    convert_to('{"toAddr":"' || one || '","amount":' || amount || ',"reasonType":"reward"}',
      'UTF8'),
    case kind when 'give' then null else one end,
    case kind when 'give' then one when 'transfer' then other end,
    case kind when 'give' then :operator_no: end, amount,
    case kind when 'give' then null else 0 end,
    'reward', json_build_object('wallets', json_build_array(json_build_array(1767225600000, one, 1,
      1000000))), 101, i, 200, '[["content-type","application/json"]]',
    convert_to('{"status":200,"data":{"tx_app_no":101,"tx_log_no":' || i || '}}', 'UTF8'),
    at, at, at + interval '30 s', at + interval '100 ms', at + interval '100 ms', 'answer',
    at + interval '3 s', 2
  from ${WRITES}`,
  `insert into tallyhook.operation_effects (operation_id, line, account, amount, phase)
  select id, line, account, case line when 1 then -amount else amount end, 'settled'
  from ${WRITES} cross join lateral (values
    (1, case kind when 'give' then :operator: else 'wallet:' || one end),
    (2, case kind when 'give' then 'wallet:' || one when 'transfer' then 'wallet:' || other
      else 'collection' end)) as e(line, account)`,
  `insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, deadline_at,
    daemon_id, tx_log_no)
  select id, from_state, to_state, at, cause,
    case to_state when 'sending' then at + interval '30 s' end,
    case to_state when 'sending' then 'dmn_1' end, case to_state when 'accepted' then i end
  from ${WRITES} cross join (values (null, 'sending', 'send'), ('sending', 'accepted', 'answer'),
    ('accepted', 'settled', 'balance of a wallet confirms it')) as t(from_state, to_state, cause)`,
];

/** When a batch was recorded: strictly rising. */
const RECORDED_AT = `:end: - :operations: * :gap: + b * :per_batch: * :gap: + interval '1 s'`;

const POSTINGS = [
  `insert into tallyhook.batches (id, recorded_at, transactions, entries)
  select b, ${RECORDED_AT}, n, 2 * n
  from generate_series((:from: - 1) / :per_batch: + 1, (:to: - 1) / :per_batch: + 1) b
  cross join lateral (
    select least(:per_batch:, :operations: - (b - 1) * :per_batch:) as n) x
  on conflict do nothing`,
  `insert into tallyhook.transactions (id, batch_id, kind, operation_id, posting, reason_type,
    tx_app_no, tx_log_no, effective_at, effective_basis, recorded_at, entry_count)
  select i, b, kind, id, 1, 'reward', 101, i, at + interval '100 ms', 'answer', ${RECORDED_AT}, 2
  from ${WRITES} cross join lateral (select (i - 1) / :per_batch: + 1 as b) x`,
];

const BALANCES = [
  `insert into tallyhook.accounts (name, kind, balance, version, opened_at)
  select account, case when account like 'wallet:%' then 'wallet' else account end, sum(amount),
    count(*), :end: - :operations: * :gap:
  from tallyhook.operation_effects group by account`,
  `insert into tallyhook.entries (transaction_id, line, account_id, amount, balance_after, version,
    effective_at, recorded_at)
  select t.id, e.line, a.id, e.amount, sum(e.amount) over w, row_number() over w, t.effective_at,
    t.recorded_at
  from tallyhook.operation_effects e
  join tallyhook.transactions t on t.id = right(e.operation_id, 12)::bigint
  join tallyhook.accounts a on a.name = e.account
  window w as (partition by a.id order by t.id, e.line rows unbounded preceding)`,
];

const TARGETS = [
  `insert into tallyhook.targets (name, kind, addr, next_poll_at, last_started_at, last_record,
    added_at)
  select a.name, 'wallet', substr(a.name, 8), :end: + interval '10 years', :end:,
    jsonb_build_object('addr', substr(a.name, 8), 'status', 1, 'balance', 1000000), :end:
  from tallyhook.accounts a where a.kind = 'wallet'`,
  `insert into tallyhook.observations (id, target, kind, started_at, first_ended_at,
    last_started_at, ended_at, result, record)
  select 'obs_' || i, 'wallet:' || one, 'wallet', at, at + interval '80 ms', at + interval '1 h',
    at + interval '1 h 80 ms', 'seen',
    jsonb_build_object('addr', one, 'status', 1, 'balance', 1000000 + i)
  from ${WRITES} where i % :per_observation: = 0`,
];

/** Every statement fills the tables named here. */
const FILLED = [...RECORDS, ...POSTINGS, ...BALANCES, ...TARGETS].map(
  (statement) => /insert into tallyhook\.(\w+)/.exec(statement)?.[1] ?? '',
);

/** Drops the indexes that no constraint needs; building them at once is far quicker. */
async function dropIndexes(sql: postgres.Sql): Promise<() => Promise<void>> {
  const rows = await sql<{ name: string; definition: string }[]>`
    select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
    from pg_index i join pg_class t on t.oid = i.indrelid
    where t.relnamespace = 'tallyhook'::regnamespace and t.relname = any(${FILLED})
      and t.relkind = 'r'
      and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`;
  for (const { name } of rows) await sql.unsafe(`drop index ${name}`);
  return async () => {
    for (const { definition } of rows) await sql.unsafe(definition);
  };
}

/**
 * The rows are written table by table, so the guards of the books would refuse them. The trigger of
 * transitions stays, because it prepares their place in the hash chain.
 */
async function disableTriggers(sql: postgres.Sql): Promise<() => Promise<void>> {
  const rows = await sql<{ table: string; trigger: string }[]>`
    select t.oid::regclass::text as table, quote_ident(g.tgname) as trigger
    from pg_trigger g join pg_class t on t.oid = g.tgrelid
    where t.relnamespace = 'tallyhook'::regnamespace and g.tgenabled = 'A'
      and g.tgname <> 'transitions_to_chain'`;
  for (const { table, trigger } of rows)
    await sql.unsafe(`alter table ${table} disable trigger ${trigger}`);
  await sql`set session_replication_role = replica`;
  return async () => {
    await sql`set session_replication_role = origin`;
    for (const { table, trigger } of rows)
      await sql.unsafe(`alter table ${table} enable always trigger ${trigger}`);
  };
}
