/**
 * Stored history for the test of reads: what `generateHistory` makes, and besides NFT writes with
 * tokens, events with deliveries and attempts, and a few operations in every open state.
 */

import postgres from 'postgres';
import { REFILL_OPEN } from '../../harness/open-operations.ts';
import { generateHistory, HISTORY_END } from '../../tools/bench/history/generate.ts';

export const CONTRACT = 5n;
const ENDPOINT_UUID = '00000000-0000-7000-8000-00000000000';
export const ENDPOINT = `ep_${ENDPOINT_UUID}0`;
export const OTHER_ENDPOINT = `ep_${ENDPOINT_UUID}1`;
const OPEN_STATES = ['sending', 'unknown', 'queued', 'accepted', 'undecided', 'executed'];
const OPEN_EACH = 40;

/** A time after everything stored. */
export const NOW = HISTORY_END + 3_600_000;

/** @param url the owner's login; autovacuum leaves the tables as they are */
export async function storeHistory(url: string, operations: number): Promise<void> {
  await generateHistory(url, 0);
  const sql = postgres(url, {
    max: 1,
    onnotice: () => {},
    connection: { synchronous_commit: 'off', statement_timeout: 0 },
  });
  try {
    await keepStatistics(sql);
    await generateHistory(url, operations, { analyze: false });
    for (const statement of [...TOKENS, ...EVENTS, ...OPEN]) await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}

async function keepStatistics(sql: postgres.Sql): Promise<void> {
  const tables = await sql<{ name: string }[]>`
    select oid::regclass::text as name from pg_class
    where relnamespace = 'tallyhook'::regnamespace and relkind = 'r'`;
  for (const { name } of tables)
    await sql.unsafe(`alter table ${name} set (autovacuum_enabled = false)`);
}

/** Every third operation is also an NFT write on a token of its own. */
const TOKENS = [
  `insert into tallyhook.operations (id, kind, state, source, owner, key_id, fingerprint, key_held,
    method, path, request_body, to_addr, contract_id, token_id, tx_hash, recorded_at, sent_at,
    answered_at, effective_at, effective_basis, settled_at)
  select overlay(id placing '9' from 23), 'mint', 'settled', source, owner, key_id, fingerprint,
    false, method, '/v1/chain/erc721/5/mint', '', coalesce(to_addr, from_addr), ${CONTRACT},
    tx_log_no, '0x' || md5(id), recorded_at, sent_at, answered_at, effective_at, effective_basis,
    settled_at
  from tallyhook.operations where tx_log_no % 3 = 0`,
  `insert into tallyhook.transitions (operation_id, to_state, at, cause, tx_hash)
  select id, 'settled', settled_at, 'a hash', tx_hash from tallyhook.operations
  where kind = 'mint'`,
  `insert into tallyhook.tokens (contract_id, token_id, owner, creator, uri, last_tx_hash,
    observed_at, presence)
  select contract_id, token_id, to_addr, to_addr, 'https://tokens.example/' || token_id, tx_hash,
    settled_at, case when token_id % 100 = 0 then 'absent' else 'present' end
  from tallyhook.operations where kind = 'mint'`,
  `insert into tallyhook.targets (name, kind, contract_id, token_id, next_poll_at, last_started_at,
    last_result, observation_started_at, added_at)
  select 'token:' || contract_id || ':' || token_id, 'token', contract_id, token_id, observed_at,
    observed_at + interval '1 second', 'absent', observed_at, observed_at
  from tallyhook.tokens where presence = 'absent'`,
];

const EVENTS = [
  `insert into tallyhook.event_shapes (id, names) values (0, '{operation_id}')`,
  `insert into tallyhook.events (id, type, subject, subject_seq, occurred_at, recorded_at,
    shape, data)
  select substr(id, 4)::uuid, 'operation.accepted', 'operation:' || id, 1, answered_at,
    answered_at, 0, '"' || id || '"'
  from tallyhook.operations`,
  `insert into tallyhook.numbered_events (first_seq, recorded_at, ids, recorded_ats)
  select row_number() over (order by recorded_at, id), recorded_at, array[id], array[recorded_at]
  from tallyhook.events`,
  `insert into tallyhook.feed (name, last_seq)
  select 'events', count(*) from tallyhook.events
  on conflict (name) do update set last_seq = excluded.last_seq`,
  `insert into tallyhook.endpoints (id, url, event_types, ordering, signing, encrypted_secrets,
    state, state_at, subscribed_at, created_by, created_at)
  select 'ep_${ENDPOINT_UUID}' || n, 'https://receiver.example', '{*}',
    case n when 0 then 'none' else 'subject' end, '{v1}', '', 'enabled', now(), now(), 'test',
    now()
  from generate_series(0, 1) n`,
  `insert into tallyhook.endpoint_health (endpoint_id, consecutive_failures)
  select id, 0 from tallyhook.endpoints`,
  `with pending as (
    insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, event_type,
      subject, subject_seq, due_at, queued_at)
    select id, recorded_at, ('${ENDPOINT_UUID}' || n % 2)::uuid, id, type,
      case n % 2 when 1 then subject end, case n % 2 when 1 then 1 end, recorded_at, recorded_at
    from (select e.*, row_number() over () as n from tallyhook.events e
      order by recorded_at desc limit ${OPEN_EACH}) x
    returning id
  )
  insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, state,
    attempts, fence, finished_at, attempted_at, duration_ms, status)
  select e.id, e.recorded_at, '${ENDPOINT_UUID}0', e.id, e.type, 'delivered', 1, 1, e.recorded_at,
    case when random() < 0.5 then e.recorded_at end, 10, 200
  from tallyhook.events e where e.id not in (select id from pending)`,
  `insert into tallyhook.attempts (delivery_id, n, at, duration_ms, result, status)
  select id, 1, created_at, 10, 'delivered', 200 from tallyhook.deliveries
  where attempted_at is null`,
];

/** The newest operations become open ones, with the effects of their state. */
const OPEN = [
  `update tallyhook.operations o set state = x.state, settled_at = null,
    expires_at = case x.state when 'queued' then timestamptz '2100-01-01' end
  from (select id, (array['${OPEN_STATES.join("','")}'])[1 + row_number() over () %
      ${OPEN_STATES.length}] as state
    from tallyhook.operations where kind <> 'mint'
    order by recorded_at desc limit ${OPEN_EACH * OPEN_STATES.length}) x
  where o.id = x.id`,
  `update tallyhook.operation_effects e
  set phase = case when o.state in ('queued', 'undecided') then o.state else o.outcome end
  from tallyhook.operations o where o.id = e.operation_id and o.settled_at is null
    and o.kind <> 'mint'`,
  ...REFILL_OPEN,
];
