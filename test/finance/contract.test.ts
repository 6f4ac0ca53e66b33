/** The contract of finance_v1: names, columns, types, comments and grants. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FINANCE } from '../../src/db/access/roles.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { useDatabase } from '../harness/database.ts';

const database = await useDatabase();
let finance: Db;
beforeAll(async () => {
  finance = connect({ url: database.url, role: FINANCE, max: 2 });
});
afterAll(() => finance.end());

const TIME = 'timestamp with time zone';
const OPERATIONS =
  'operation_id text, kind text, state text, outcome text, tx_app_no numeric, ' +
  'tx_log_no numeric, tx_hash text, from_addr text, to_addr text, operation_no numeric, ' +
  'contract_id numeric, token_id numeric, amount numeric, fee_amount numeric, reason_type text, ' +
  `reference text, sent_at ${TIME}, answered_at ${TIME}, settled_at ${TIME}, ` +
  `effective_at ${TIME}`;
const DRIFTS =
  `drift_id text, addr text, amount numeric, state text, opened_at ${TIME}, age interval, ` +
  `bucket text, assignee text, proposal jsonb, approved_by text, closed_at ${TIME}, ` +
  'amount_min numeric, amount_max numeric, bucket_order integer, cause text, counterpart text, ' +
  'proposed_by text, closed_by jsonb, operator_no numeric, gives jsonb';

const VIEWS: Record<string, string> = {
  operators: 'operator_no numeric, addr text, account text, balance numeric',
  accounts: [
    'account text, kind text, asset text, operator_no numeric, addr text',
    `opened_at ${TIME}`,
  ].join(', '),
  journal:
    'seq bigint, transaction_id bigint, drift_id text, reason text, decided_by text, ' +
    'account text, asset text, amount numeric, ' +
    'balance_after numeric, kind text, reason_type text, reference text, operation_id text, ' +
    `tx_app_no numeric, tx_log_no numeric, effective_at ${TIME}, effective_basis text, ` +
    `recorded_at ${TIME}, reverses bigint, requested_by text`,
  balances: 'account text, asset text, balance numeric, last_seq bigint',
  wallet_positions:
    'addr text, status integer, opened boolean, ledger_balance numeric, unposted numeric, ' +
    'in_flight numeric, unknown numeric, best_case numeric, worst_case numeric, ' +
    `observed_balance numeric, observed_at ${TIME}, ledger_at_observation numeric, drift numeric`,
  operations: OPERATIONS,
  operations_without_tx_number: OPERATIONS,
  drifts: DRIFTS,
  drifts_ageing: DRIFTS,
  drift_history: `drift_id text, at ${TIME}, action text, by text, detail jsonb`,
  decisions:
    `subject text, decision text, reason text, proposed_by text, approved_by text, at ${TIME}, ` +
    `n smallint, operation_id text, proposed_at ${TIME}, approvals_needed smallint`,
  in_doubt:
    `operation_id text, kind text, amount numeric, state text, since ${TIME}, owner text, ` +
    'evidence jsonb, cause text, proposal text, proposed_by text',
  nft_movements:
    'contract_id numeric, token_id numeric, kind text, from_addr text, to_addr text, ' +
    `tx_hash text, effective_at ${TIME}, seq bigint, operation_id text, ` +
    `unexplained boolean, not_before ${TIME}, effective_basis text, recorded_at ${TIME}, ` +
    'reverses bigint, standing boolean',
  nft_holdings: 'contract_id numeric, token_id numeric, owner text, locked boolean, status integer',
  reports:
    `report_id text, kind text, period_from ${TIME}, period_to ${TIME}, known_at ${TIME}, ` +
    'verdict text, breaks integer, chain_head text, provisional boolean, time_zone text',
  periods:
    `period text, state text, period_from ${TIME}, period_to ${TIME}, closed_by text, ` +
    `closed_at ${TIME}, signed_by text, signed_at ${TIME}, ` +
    `reopen_proposed_by text, reopened_by text, reopened_at ${TIME}, ` +
    `reopen_reason text, report_id text, report_hash text, ` +
    `last_batch bigint, known_at ${TIME}, chain_head text, signed_off bigint`,
  period_history: `period text, at ${TIME}, action text, by text, reason text, detail jsonb`,
  coverage: `in_scope bigint, checked bigint, stale bigint, oldest_check_at ${TIME}`,
};

const FUNCTIONS: Record<string, string> = {
  balances_as_of: 'account text, asset text, balance numeric',
  trial_balance: 'account text, asset text, debit numeric, credit numeric',
  wallet_statement:
    `seq bigint, effective_at ${TIME}, kind text, reason_type text, reference text, ` +
    'operation_id text, tx_log_no numeric, counterparty text, amount numeric, fee numeric, ' +
    'balance_after numeric',
  nft_holdings_as_of: `contract_id numeric, token_id numeric, owner text, since ${TIME}`,
  nft_supply:
    'contract_id numeric, opening bigint, minted bigint, minted_unexplained bigint, ' +
    'burned bigint, burned_unexplained bigint, held bigint, balanced boolean',
  movements_daily:
    'day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric',
  day_begin: TIME,
  day_of: 'date',
};

it('The views have the promised columns and types', async () => {
  const rows = await database.owner.sql<{ name: string; columns: string }[]>`
    select c.relname as name, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod),
      ', ' order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace = 'finance_v1'::regnamespace group by c.relname`;
  expect(Object.fromEntries(rows.map(({ name, columns }) => [name, columns]))).toEqual(VIEWS);
});

it('The functions have the promised columns, run as their owner and have a fixed search path', async () => {
  const rows = await database.owner.sql<
    { name: string; result: string; definer: boolean; config: string[] }[]
  >`
    select proname as name, pg_get_function_result(oid) as result, prosecdef as definer,
      proconfig as config
    from pg_proc where pronamespace = 'finance_v1'::regnamespace`;
  const results = rows.map(({ name, result }) => [name, result.replace(/^TABLE\((.*)\)$/, '$1')]);
  expect(Object.fromEntries(results)).toEqual(FUNCTIONS);
  for (const { definer, config } of rows) {
    expect(definer).toBe(true);
    expect(config).toEqual(['search_path=pg_catalog, pg_temp']);
  }
});

it('Every view, column and function has a comment', async () => {
  const rows = await database.owner.sql<{ bare: string }[]>`
    select c.relname || coalesce('.' || a.attname, '') as bare
    from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace = 'finance_v1'::regnamespace
      and (obj_description(c.oid, 'pg_class') is null or col_description(c.oid, a.attnum) is null)
    union all
    select proname from pg_proc
    where pronamespace = 'finance_v1'::regnamespace and obj_description(oid, 'pg_proc') is null`;
  expect(rows).toEqual([]);
});

it('The comment of a function describes each of its columns', async () => {
  for (const [name, columns] of Object.entries(FUNCTIONS)) {
    if (!columns.includes(', ')) continue;
    const rows = await database.owner.sql<{ text: string }[]>`
      select obj_description(oid, 'pg_proc') as text from pg_proc
      where pronamespace = 'finance_v1'::regnamespace and proname = ${name} order by oid`;
    const comment = rows[0]?.text ?? '';
    const missing = columns
      .split(', ')
      .map((column) => column.split(' ')[0] ?? '')
      .filter((column) => !comment.includes(column));
    expect({ name, missing }).toEqual({ name, missing: [] });
  }
});

const CALLS = [
  'balances_as_of()',
  'trial_balance()',
  'nft_holdings_as_of()',
  'nft_supply()',
  "wallet_statement('x', null, null)",
  'movements_daily(null, null)',
  "movements_daily(current_date, current_date, 'Asia/Seoul')",
  "movements_daily(now(), now(), 'Asia/Seoul')",
  "day_begin('2026-12-01')",
  'day_of(now())',
];

it('The finance role reads every view and calls every function', async () => {
  for (const name of [...Object.keys(VIEWS), ...CALLS]) {
    await expect(
      finance.sql.unsafe(`select count(*) from finance_v1.${name}`),
    ).resolves.toBeDefined();
  }
});

it('The finance role cannot read tables or call functions of the daemon', async () => {
  const tables = await database.owner.sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'tallyhook'::regnamespace and relkind in ('r', 'p', 'v', 'S')`;
  expect(tables.length).toBeGreaterThan(30);
  for (const { name } of tables) {
    const read = finance.sql.unsafe(`select 1 from tallyhook."${name}"`);
    await expect(read, name).rejects.toMatchObject({ code: '42501' });
  }
  const made = finance.sql`select tallyhook.make_partition(current_date, 1)`;
  await expect(made).rejects.toMatchObject({ code: '42501' });
  const held = await database.owner.sql<{ name: string }[]>`
    select table_schema || '.' || table_name as name from information_schema.role_table_grants
    where grantee = ${FINANCE} and (table_schema <> 'finance_v1' or privilege_type <> 'SELECT')`;
  expect(held).toEqual([]);
});

it.each([
  "insert into finance_v1.operations (kind) values ('give')",
  "update finance_v1.operations set state = 'settled'",
  'delete from finance_v1.reports',
  'create table finance_v1.mine (a int)',
  'create view finance_v1.mine as select 1 as one',
  'comment on view finance_v1.accounts is null',
  'drop view finance_v1.coverage',
])('The finance role cannot run: %s', async (text) => {
  await expect(finance.sql.unsafe(text)).rejects.toMatchObject({ code: '42501' });
});
