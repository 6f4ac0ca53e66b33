-- tables

create table tallyhook.accounts (
  id bigint not null generated always as identity,
  name text not null,
  kind text not null,
  asset text not null default 'service_token'::text,
  balance numeric not null,
  version bigint not null,
  opened_at timestamp(3) with time zone not null
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.alerts (
  id text not null,
  rule text not null,
  subject text not null,
  raised_at timestamp(3) with time zone not null,
  detail jsonb not null
);
create table tallyhook.applied_migrations (
  idx integer not null,
  tag text not null,
  hash text not null,
  compatible_from integer not null,
  applied_at timestamp with time zone not null default now()
);
create table tallyhook.approvals (
  subject text not null,
  n smallint not null,
  proposed_by text not null,
  owner text not null,
  key_id text not null,
  at timestamp(3) with time zone not null
);
create table tallyhook.attempt_figures (
  endpoint_id text not null,
  at timestamp(3) with time zone not null,
  event_type text not null,
  delivered integer not null,
  failed integer not null,
  duration_ms bigint not null,
  slowest_ms integer not null,
  latencies integer[] not null
);
create table tallyhook.attempt_minutes (
  endpoint_id text not null,
  at timestamp(3) with time zone not null,
  delivered integer not null,
  failed integer not null,
  duration_ms bigint not null,
  slowest_ms integer not null
);
create table tallyhook.attempts (
  delivery_id uuid not null,
  at timestamp(3) with time zone not null,
  n integer not null,
  duration_ms integer not null,
  status integer,
  result text not null,
  error text,
  response_body text,
  response_headers jsonb
) partition by RANGE (at);
create table tallyhook.audit (
  id bigint not null generated always as identity,
  at timestamp(3) with time zone not null,
  owner text not null,
  key_id text not null,
  client_address text,
  action text not null,
  detail jsonb not null,
  result text
);
create table tallyhook.batches (
  id bigint not null,
  recorded_at timestamp(3) with time zone not null,
  transactions integer not null,
  entries integer not null
);
create table tallyhook.candidates (
  operation_id text not null,
  outcome text not null,
  basis text not null,
  evidence jsonb not null,
  seen_at timestamp(3) with time zone not null,
  observation_started_at timestamp(3) with time zone not null
);
create table tallyhook.chain (
  batch_id bigint not null,
  last_transaction bigint not null,
  batch bytea not null,
  transactions bytea not null,
  movements bytea not null,
  evidence bytea not null,
  head bytea not null
);
create table tallyhook.chained_rows (
  batch_id bigint not null,
  source text not null,
  row_ids text[] not null
);
create table tallyhook.clock (
  id integer not null,
  steps integer not null,
  correction_ms double precision not null,
  set_at timestamp(3) with time zone not null,
  ends_at timestamp(3) with time zone not null,
  highest_at timestamp(3) with time zone not null
);
create table tallyhook.consumed_events (
  consumer_id text not null,
  seq bigint not null,
  event_id uuid not null,
  recorded_at timestamp(3) with time zone not null,
  subject text not null,
  handed_out integer not null default 0,
  lease_until timestamp(3) with time zone
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.consumers (
  id text not null,
  name text not null,
  event_types text[] not null,
  redeliver_after_s integer not null,
  created_by text not null,
  created_at timestamp(3) with time zone not null,
  seeks integer not null default 0,
  missed bigint not null default 0,
  read_to bigint not null
);
create table tallyhook.daemons (
  id text not null,
  started_at timestamp(3) with time zone not null,
  alive_until timestamp(3) with time zone not null,
  roles text[] not null,
  server_start timestamp(6) with time zone not null,
  data_file text not null,
  app_per_s double precision not null default 0,
  retires boolean not null default false
);
create table tallyhook.day_balances (
  account_id bigint not null,
  at timestamp(3) with time zone not null,
  balance numeric not null,
  entries bigint not null
);
create table tallyhook.day_ends (
  at timestamp(3) with time zone not null,
  last_batch bigint not null,
  last_transaction bigint not null,
  entries bigint not null,
  made_at timestamp(3) with time zone not null
);
create table tallyhook.decisions (
  subject text not null,
  n smallint not null,
  decision text not null,
  operation_id text,
  reason text not null,
  approvals_needed smallint not null,
  proposed_by text not null,
  proposed_key text not null,
  proposed_at timestamp(3) with time zone not null
);
create table tallyhook.deliveries (
  id uuid not null,
  created_at timestamp(3) with time zone not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  finished_at timestamp(3) with time zone not null,
  attempted_at timestamp(3) with time zone,
  attempts integer not null,
  fence integer not null,
  duration_ms integer,
  status integer,
  state text not null,
  event_type text not null,
  response_body text,
  response_headers jsonb
) partition by RANGE (created_at);
create table tallyhook.drift_actions (
  id bigint not null generated always as identity,
  drift_id text not null,
  action text not null,
  at timestamp(3) with time zone not null,
  by text not null,
  detail jsonb
);
create table tallyhook.drifts (
  id text not null,
  wallet_key text not null,
  addr text not null,
  amount numeric,
  amount_min numeric not null,
  amount_max numeric not null,
  state text not null,
  suspected_at timestamp(3) with time zone not null,
  opened_at timestamp(3) with time zone not null,
  closed_at timestamp(3) with time zone,
  window_from timestamp(3) with time zone,
  window_to timestamp(3) with time zone not null,
  evidence jsonb not null,
  cause text not null,
  prepared jsonb,
  counterpart text,
  assignee text,
  closed_by jsonb,
  operator jsonb
);
create table tallyhook.due_postings (
  operation_id text not null,
  due_at timestamp(3) with time zone not null,
  quarantine_reason text,
  quarantined_at timestamp(3) with time zone
);
create table tallyhook.endpoint_health (
  endpoint_id text not null,
  consecutive_failures integer not null,
  failing_since timestamp(3) with time zone,
  paused_until timestamp(3) with time zone,
  last_success_at timestamp(3) with time zone,
  rate_used_until timestamp(3) with time zone,
  probe_requested boolean not null default false,
  recovered_at timestamp(3) with time zone
);
create table tallyhook.endpoints (
  id text not null,
  url text not null,
  description text,
  event_types text[] not null,
  ordering text not null,
  signing text[] not null,
  encrypted_secrets text not null,
  encrypted_headers text,
  public_key text,
  rate_per_s double precision,
  state text not null,
  state_reason text,
  state_at timestamp(3) with time zone not null,
  subscribed_at timestamp(3) with time zone not null,
  skip_before timestamp(3) with time zone,
  created_by text not null,
  created_at timestamp(3) with time zone not null,
  deleted_at timestamp(3) with time zone,
  filter jsonb,
  retry_schedule integer[],
  timeout_ms integer,
  max_in_flight integer,
  encrypted_destination text,
  encrypted_auth text
);
create table tallyhook.entries (
  transaction_id bigint not null,
  line smallint not null,
  account_id bigint not null,
  amount numeric not null,
  balance_after numeric not null,
  version bigint not null,
  effective_at timestamp(3) with time zone not null,
  recorded_at timestamp(3) with time zone not null
);
create table tallyhook.event_shapes (
  id bigint not null,
  names text[] not null
);
create table tallyhook.events (
  id uuid not null,
  type text not null,
  subject text not null,
  subject_seq bigint not null,
  occurred_at timestamp(3) with time zone not null,
  recorded_at timestamp(3) with time zone not null,
  shape bigint not null,
  data text not null
) partition by RANGE (recorded_at);
create table tallyhook.fee_rules (
  id bigint not null generated always as identity,
  rules text not null,
  set_at timestamp(3) with time zone not null,
  changed bigint not null,
  reposted bigint not null,
  applied_at timestamp(3) with time zone
);
create table tallyhook.feed (
  name text not null,
  last_seq bigint not null
);
create table tallyhook.freezes (
  id bigint not null generated always as identity,
  frozen_at timestamp(3) with time zone not null,
  frozen_by text not null,
  reason text not null,
  released_at timestamp(3) with time zone,
  released_by text,
  release_reason text,
  cause text not null default 'ordered'::text,
  send_queued boolean
);
create table tallyhook.import_movements (
  import_id text not null,
  n integer not null,
  line integer not null,
  account text not null,
  at timestamp(3) with time zone not null,
  amount numeric not null
);
create table tallyhook.import_rows (
  import_id text not null,
  n integer not null,
  line integer not null,
  report text,
  result text,
  problem jsonb,
  identity text,
  named text,
  operation_id text,
  kind text,
  occurred_at timestamp(3) with time zone
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.imports (
  id text not null,
  owner text not null,
  key_id text not null,
  file_name text not null,
  options jsonb not null,
  created_at timestamp(3) with time zone not null,
  state text not null,
  sha256 text not null default ''::text,
  fingerprint text not null default ''::text,
  bytes integer not null default 0,
  ignored_columns text[] not null default '{}'::text[],
  lines integer not null default 0,
  skipped integer not null default 0,
  checked integer not null default 0,
  to_record integer not null default 0,
  recorded integer not null default 0,
  known integer not null default 0,
  refused integer not null default 0,
  place integer not null default 0,
  proved_account text not null default ''::text,
  summary jsonb,
  checked_at timestamp(3) with time zone,
  turn integer,
  reason text,
  finished_at timestamp(3) with time zone,
  lease_until timestamp(3) with time zone
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.installation (
  name text not null,
  value text not null,
  set_at timestamp(3) with time zone not null
);
create table tallyhook.key_usage (
  key_id text not null,
  hour timestamp(3) with time zone not null,
  moved numeric not null
);
create table tallyhook.keys (
  id text not null,
  hash text not null,
  name text not null,
  owner text not null,
  scopes text[] not null,
  limits jsonb,
  created_at timestamp(3) with time zone not null,
  expires_at timestamp(3) with time zone,
  revoked_at timestamp(3) with time zone,
  last_used_at timestamp(3) with time zone
);
create table tallyhook.leases (
  name text not null,
  daemon_id text not null,
  fence bigint not null,
  until timestamp(3) with time zone not null
);
create table tallyhook.migrations (
  idx integer not null,
  tag text not null,
  hash text not null,
  applied_at timestamp with time zone not null default now()
);
create table tallyhook.nft_movements (
  id bigint not null generated always as identity,
  batch_id bigint not null,
  kind text not null,
  contract_id numeric not null,
  token_id numeric not null,
  from_addr text,
  to_addr text,
  tx_hash text,
  operation_id text,
  posting integer,
  reverses bigint,
  not_before timestamp(3) with time zone,
  effective_at timestamp(3) with time zone not null,
  effective_basis text not null,
  recorded_at timestamp(3) with time zone not null
);
create table tallyhook.numbered_events (
  first_seq bigint not null,
  recorded_at timestamp(3) with time zone not null,
  ids uuid[] not null,
  recorded_ats timestamp(3) with time zone[] not null
) partition by RANGE (recorded_at);
create table tallyhook.observations (
  id text not null,
  target text not null,
  kind text not null,
  started_at timestamp(3) with time zone not null,
  first_ended_at timestamp(3) with time zone not null,
  last_started_at timestamp(3) with time zone not null,
  ended_at timestamp(3) with time zone not null,
  result text not null,
  cause text,
  record jsonb
) partition by RANGE (started_at);
create table tallyhook.observed_holders (
  id bigint not null generated always as identity,
  contract_id numeric not null,
  token_id numeric not null,
  owner text,
  is_new boolean not null,
  tx_hash text,
  not_before timestamp(3) with time zone,
  observed_at timestamp(3) with time zone not null,
  requested_at timestamp(3) with time zone not null,
  problem text
);
create table tallyhook.open_operations (
  state text not null,
  changed_at timestamp(3) with time zone not null,
  id text not null,
  recorded_at timestamp(3) with time zone not null,
  contract_id numeric,
  conflict_key text
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.operation_effects (
  operation_id text not null,
  line smallint not null,
  account text not null,
  amount numeric not null,
  phase text not null,
  unsettled boolean generated always as (
CASE
    WHEN (phase = ANY (ARRAY['queued'::text, 'open'::text, 'undecided'::text, 'executed'::text, 'taken_back'::text])) THEN true
    WHEN (phase = 'not_executed'::text) THEN false
    ELSE NULL::boolean
END) stored
) with (fillfactor=80, autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.operations (
  id text not null,
  kind text not null,
  source text not null,
  owner text not null,
  key_id text not null,
  idempotency_key text,
  fingerprint text not null,
  reference text,
  method text not null,
  path text not null,
  content_type text,
  request_body bytea not null,
  from_addr text,
  to_addr text,
  operation_no numeric,
  contract_id numeric,
  token_id numeric,
  amount numeric,
  fee_amount numeric,
  reason_type text,
  token_uri text,
  meta_data text,
  extra_data text,
  pre_image json,
  recorded_at timestamp(3) with time zone not null,
  expires_at timestamp(3) with time zone,
  conflict_key text,
  fee_mode text,
  sent_at timestamp(3) with time zone,
  send_deadline_at timestamp(3) with time zone,
  retry_at timestamp(3) with time zone,
  daemon_id text,
  ambiguous boolean not null default false,
  key_held boolean not null,
  answer_status integer,
  answer_headers json,
  answer_body bytea,
  tx_app_no numeric,
  tx_log_no numeric,
  tx_hash text,
  error_class text,
  error_status integer,
  error_code text,
  error_message text,
  answered_at timestamp(3) with time zone,
  effective_at timestamp(3) with time zone,
  effective_basis text,
  evidence jsonb,
  settled_at timestamp(3) with time zone,
  event_seq bigint not null default 0,
  state text not null,
  outcome text not null generated always as (
CASE
    WHEN (state = ANY (ARRAY['accepted'::text, 'executed'::text, 'settled'::text])) THEN 'executed'::text
    WHEN (state = ANY (ARRAY['rejected'::text, 'failed'::text, 'not_executed'::text, 'cancelled'::text])) THEN 'not_executed'::text
    ELSE 'open'::text
END) stored,
  in_ledger boolean not null generated always as (
CASE
    WHEN (kind = ANY (ARRAY['give'::text, 'receive_from'::text, 'transfer'::text])) THEN (state = ANY (ARRAY['accepted'::text, 'executed'::text, 'settled'::text]))
    WHEN (kind = ANY (ARRAY['mint'::text, 'mint_sequential'::text, 'burn'::text, 'transfer_from'::text, 'set_extra_data'::text])) THEN (state = 'settled'::text)
    ELSE false
END) stored,
  ended_as text generated always as (
CASE
    WHEN (state = ANY (ARRAY['rejected'::text, 'failed'::text, 'not_executed'::text, 'cancelled'::text])) THEN state
    ELSE NULL::text
END) stored,
  unnumbered boolean generated always as (
CASE
    WHEN ((tx_log_no IS NULL) AND (tx_hash IS NULL) AND (kind <> 'other'::text) AND (state = ANY (ARRAY['undecided'::text, 'executed'::text, 'settled'::text]))) THEN true
    ELSE NULL::boolean
END) stored,
  reported_as text generated always as (
CASE
    WHEN (source = 'report'::text) THEN COALESCE((((tx_app_no)::text || ':'::text) || (tx_log_no)::text), lower(tx_hash))
    ELSE NULL::text
END) stored,
  fee_at timestamp(3) with time zone generated always as (
CASE
    WHEN (fee_mode IS NOT NULL) THEN COALESCE(sent_at, effective_at, recorded_at)
    ELSE NULL::timestamp with time zone
END) stored,
  happened_at timestamp(3) with time zone generated always as (
CASE
    WHEN (kind <> ALL (ARRAY['give'::text, 'receive_from'::text, 'transfer'::text])) THEN COALESCE(effective_at, sent_at, recorded_at)
    ELSE NULL::timestamp with time zone
END) stored
) with (fillfactor=80, autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.operator_wallets (
  account text not null,
  n smallint not null,
  addr text not null,
  rejected_by text,
  rejected_at timestamp(3) with time zone,
  reject_reason text
);
create table tallyhook.owners (
  name text not null
);
create table tallyhook.pending_deliveries (
  id uuid not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  created_at timestamp(3) with time zone not null,
  queued_at timestamp(3) with time zone not null,
  event_type text not null,
  subject text,
  subject_seq bigint,
  due_at timestamp(3) with time zone not null,
  attempts integer not null default 0,
  schedule_step integer not null default 0,
  out_of_order boolean not null default false,
  fence integer not null default 0,
  lease_until timestamp(3) with time zone
) with (fillfactor=60, autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.period_actions (
  id bigint not null generated always as identity,
  period_id text not null,
  action text not null,
  at timestamp(3) with time zone not null,
  by text not null,
  key_id text not null,
  reason text,
  detail jsonb
);
create table tallyhook.periods (
  id text not null,
  period_from timestamp(3) with time zone not null,
  period_to timestamp(3) with time zone not null,
  report_id text not null,
  report_hash text not null,
  last_batch bigint not null,
  known_at timestamp(3) with time zone not null,
  chain_head text,
  decision smallint not null,
  closed_by text not null,
  closed_at timestamp(3) with time zone not null
);
create table tallyhook.poll_minutes (
  at timestamp(3) with time zone not null,
  requests integer not null,
  allowed_per_s double precision not null,
  expected_delay_ms double precision,
  oldest_poll_ms double precision
);
create table tallyhook.posting_requests (
  id text not null,
  kind text not null,
  account text not null,
  counter text not null,
  amount numeric not null,
  effective_at timestamp(3) with time zone not null,
  effective_basis text not null,
  requested_by text not null,
  reason text,
  reverses text,
  seen_at timestamp(3) with time zone,
  seen_version bigint,
  requested_at timestamp(3) with time zone not null,
  posted_at timestamp(3) with time zone,
  problem text
);
create table tallyhook.quarantine_releases (
  id bigint not null generated always as identity,
  kind text not null,
  subject text not null,
  problem text not null,
  released_at timestamp(3) with time zone not null,
  released_by text not null,
  released_key text not null,
  reason text not null
);
create table tallyhook.quota (
  name text not null,
  blocked_until timestamp(3) with time zone,
  rate double precision,
  rises_from timestamp(3) with time zone,
  rise_ms integer,
  cleared_at timestamp(3) with time zone
);
create table tallyhook.replays (
  id text not null,
  endpoint_id text not null,
  since timestamp(3) with time zone not null,
  until timestamp(3) with time zone not null,
  event_types text[] not null,
  which text not null,
  state text not null,
  position_at timestamp(3) with time zone not null,
  position_id text not null,
  examined integer not null default 0,
  queued integer not null default 0,
  created_by text not null,
  created_at timestamp(3) with time zone not null,
  finished_at timestamp(3) with time zone
);
create table tallyhook.report_files (
  report_id text not null,
  format text not null,
  due_at timestamp(3) with time zone not null,
  attempts integer not null,
  path text,
  written_at timestamp(3) with time zone,
  problem text
);
create table tallyhook.reports (
  id text not null,
  kind text not null,
  period_from timestamp(3) with time zone not null,
  period_to timestamp(3) with time zone not null,
  known_at timestamp(3) with time zone not null,
  requested_by text not null,
  verdict text not null,
  breaks integer not null,
  provisional boolean not null,
  content jsonb not null,
  hash text not null,
  created_at timestamp(3) with time zone not null
);
create table tallyhook.service_changes (
  at timestamp(3) with time zone not null,
  state text not null
);
create table tallyhook.service_state (
  name text not null,
  state text not null,
  since timestamp(3) with time zone not null,
  down_from timestamp(3) with time zone,
  down_until timestamp(3) with time zone,
  announced jsonb,
  next_probe_at timestamp(3) with time zone not null,
  failures integer not null,
  answered_at timestamp(3) with time zone
);
create table tallyhook.subjects (
  subject text not null,
  last_seq bigint not null
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.targets (
  name text not null,
  kind text not null,
  addr text,
  contract_id numeric,
  token_id numeric,
  next_poll_at timestamp(3) with time zone not null,
  pending boolean not null default false,
  idle boolean not null default false,
  lease_until timestamp(3) with time zone,
  failures integer not null default 0,
  refused_at timestamp(3) with time zone,
  last_started_at timestamp(3) with time zone,
  last_result text,
  last_record jsonb,
  observation_id text,
  observation_started_at timestamp(3) with time zone,
  changes double precision not null default 0.5,
  changes_over_s double precision not null default 1800,
  process_again_at timestamp(3) with time zone,
  scan_progress jsonb,
  added_at timestamp(3) with time zone not null
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.tokens (
  contract_id numeric not null,
  token_id numeric not null,
  owner text,
  creator text,
  uri text,
  metadata text,
  extra_data text,
  status integer,
  locked integer,
  last_tx_hash text,
  created_text text,
  owned_text text,
  observed_at timestamp(3) with time zone not null,
  presence text not null,
  absent_since timestamp(3) with time zone,
  recorded_owner text,
  differs_since timestamp(3) with time zone,
  differs_after timestamp(3) with time zone
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.transactions (
  id bigint not null,
  batch_id bigint not null,
  kind text not null,
  operation_id text,
  posting integer,
  posting_request_id text,
  reverses bigint,
  reason_type text,
  reference text,
  tx_app_no numeric,
  tx_log_no numeric,
  requested_by text,
  effective_at timestamp(3) with time zone not null,
  effective_basis text not null,
  recorded_at timestamp(3) with time zone not null,
  entry_count smallint not null
);
create table tallyhook.transitions (
  id bigint not null generated always as identity,
  operation_id text not null,
  from_state text,
  to_state text not null,
  at timestamp(3) with time zone not null,
  cause text not null,
  evidence jsonb,
  deadline_at timestamp(3) with time zone,
  daemon_id text,
  tx_log_no numeric,
  tx_hash text
);
create table tallyhook.unchained_rows (
  id bigint not null generated always as identity,
  source text not null,
  row_ids text[] not null,
  digests bytea not null
);
create table tallyhook.unnumbered_events (
  id bigint not null generated always as identity,
  recorded_at timestamp(3) with time zone not null,
  ids uuid[] not null
);
create table tallyhook.unprocessed_observations (
  target text not null,
  kind text not null,
  observation_id text not null,
  unchanged_since timestamp(3) with time zone not null,
  started_at timestamp(3) with time zone not null,
  ended_at timestamp(3) with time zone not null,
  result text not null,
  record jsonb,
  process_at timestamp(3) with time zone not null,
  failures integer not null default 0,
  problem text
);
create table tallyhook.used_since_backup (
  name text not null,
  recorded_at timestamp(3) with time zone not null
);
create table tallyhook.waits (
  name text not null,
  counts jsonb not null,
  learned_at timestamp(3) with time zone not null
);
create table tallyhook.wallets (
  key text not null,
  addr text not null,
  status integer,
  observed_balance numeric,
  observed_at timestamp(3) with time zone,
  observation_ended_at timestamp(3) with time zone,
  opened_at timestamp(3) with time zone,
  consistent_at timestamp(3) with time zone,
  quiet_at timestamp(3) with time zone,
  ledger_at_observation numeric,
  observation_id text,
  evaluated_at timestamp(3) with time zone,
  verdict text not null,
  cause text,
  suspected_min numeric,
  suspected_max numeric,
  suspected_at timestamp(3) with time zone,
  vanished_at timestamp(3) with time zone,
  ledger_version bigint
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
create table tallyhook.watches (
  id text not null,
  kind text not null,
  target text not null,
  addr text,
  contract_id numeric,
  token_id numeric,
  created_at timestamp(3) with time zone not null,
  created_by text not null
);

-- constraints

alter table tallyhook.accounts add constraint accounts_balance_whole CHECK ((scale(balance) = 0));
alter table tallyhook.accounts add constraint accounts_one_asset CHECK ((asset = 'service_token'::text));
alter table tallyhook.accounts add constraint accounts_pkey PRIMARY KEY (id);
alter table tallyhook.alerts add constraint alerts_pkey PRIMARY KEY (id);
alter table tallyhook.applied_migrations add constraint applied_migrations_pkey PRIMARY KEY (idx);
alter table tallyhook.approvals add constraint approvals_by_another_owner CHECK ((tallyhook.owner_key(owner) <> tallyhook.owner_key(proposed_by)));
alter table tallyhook.approvals add constraint approvals_of_decisions FOREIGN KEY (subject, n, proposed_by) REFERENCES tallyhook.decisions(subject, n, proposed_by);
alter table tallyhook.approvals add constraint approvals_subject_n_owner_pk PRIMARY KEY (subject, n, owner);
alter table tallyhook.attempt_figures add constraint attempt_figures_endpoint_id_at_event_type_pk PRIMARY KEY (endpoint_id, at, event_type);
alter table tallyhook.attempt_minutes add constraint attempt_minutes_endpoint_id_at_pk PRIMARY KEY (endpoint_id, at);
alter table tallyhook.attempts add constraint attempts_delivery_id_n_at_pk PRIMARY KEY (delivery_id, n, at);
alter table tallyhook.audit add constraint audit_pkey PRIMARY KEY (id);
alter table tallyhook.batches add constraint batches_pkey PRIMARY KEY (id);
alter table tallyhook.batches add constraint batches_recorded_at_unique UNIQUE (recorded_at);
alter table tallyhook.candidates add constraint candidates_pkey PRIMARY KEY (operation_id);
alter table tallyhook.chain add constraint chain_pkey PRIMARY KEY (batch_id);
alter table tallyhook.chained_rows add constraint chained_rows_batch_id_source_pk PRIMARY KEY (batch_id, source);
alter table tallyhook.clock add constraint clock_one_row CHECK ((id = 1));
alter table tallyhook.clock add constraint clock_pkey PRIMARY KEY (id);
alter table tallyhook.consumed_events add constraint consumed_events_consumer_id_consumers_id_fk FOREIGN KEY (consumer_id) REFERENCES tallyhook.consumers(id) ON DELETE CASCADE;
alter table tallyhook.consumed_events add constraint consumed_events_consumer_id_seq_pk PRIMARY KEY (consumer_id, seq);
alter table tallyhook.consumers add constraint consumers_pkey PRIMARY KEY (id);
alter table tallyhook.daemons add constraint daemons_pkey PRIMARY KEY (id);
alter table tallyhook.day_balances add constraint day_balances_account_id_accounts_id_fk FOREIGN KEY (account_id) REFERENCES tallyhook.accounts(id);
alter table tallyhook.day_balances add constraint day_balances_account_id_at_pk PRIMARY KEY (account_id, at);
alter table tallyhook.day_balances add constraint day_balances_at_day_ends_at_fk FOREIGN KEY (at) REFERENCES tallyhook.day_ends(at);
alter table tallyhook.day_balances add constraint day_balances_balance_whole CHECK ((scale(balance) = 0));
alter table tallyhook.day_ends add constraint day_ends_last_batch_batches_id_fk FOREIGN KEY (last_batch) REFERENCES tallyhook.batches(id);
alter table tallyhook.day_ends add constraint day_ends_pkey PRIMARY KEY (at);
alter table tallyhook.decisions add constraint decisions_by_decision UNIQUE (subject, n, decision);
alter table tallyhook.decisions add constraint decisions_by_proposer UNIQUE (subject, n, proposed_by);
alter table tallyhook.decisions add constraint decisions_known CHECK (
CASE
    WHEN (subject ~~ 'op\_%'::text) THEN (decision = ANY (ARRAY['executed'::text, 'not_executed'::text]))
    WHEN (subject ~~ 'drf\_%'::text) THEN (decision = ANY (ARRAY['book'::text, 'link'::text, 'dismiss'::text]))
    WHEN (subject ~~ 'per\_%'::text) THEN (decision = ANY (ARRAY['close'::text, 'reopen'::text]))
    WHEN (subject ~~ 'operator:%'::text) THEN (length(decision) = 42)
    ELSE false
END);
alter table tallyhook.decisions add constraint decisions_link_an_operation CHECK (((decision = 'link'::text) = (operation_id IS NOT NULL)));
alter table tallyhook.decisions add constraint decisions_need_approval CHECK ((approvals_needed = ANY (ARRAY[1, 2])));
alter table tallyhook.decisions add constraint decisions_operation_id_operations_id_fk FOREIGN KEY (operation_id) REFERENCES tallyhook.operations(id);
alter table tallyhook.decisions add constraint decisions_subject_n_pk PRIMARY KEY (subject, n);
alter table tallyhook.deliveries add constraint deliveries_id_created_at_pk PRIMARY KEY (id, created_at);
alter table tallyhook.drift_actions add constraint drift_actions_drift_id_drifts_id_fk FOREIGN KEY (drift_id) REFERENCES tallyhook.drifts(id);
alter table tallyhook.drift_actions add constraint drift_actions_pkey PRIMARY KEY (id);
alter table tallyhook.drifts add constraint drifts_amount_max_whole CHECK ((scale(amount_max) = 0));
alter table tallyhook.drifts add constraint drifts_amount_min_whole CHECK ((scale(amount_min) = 0));
alter table tallyhook.drifts add constraint drifts_amount_whole CHECK ((scale(amount) = 0));
alter table tallyhook.drifts add constraint drifts_bounded CHECK (((amount_min <= amount_max) AND ((amount IS NULL) OR ((amount = amount_min) AND (amount = amount_max)))));
alter table tallyhook.drifts add constraint drifts_cause_known CHECK ((cause = ANY (ARRAY['made_elsewhere'::text, 'fee_rule'::text, 'lost_operation'::text, 'opening'::text, 'operator_wallet'::text])));
alter table tallyhook.drifts add constraint drifts_closed_once CHECK ((((state = ANY (ARRAY['open'::text, 'proposed'::text])) = (closed_at IS NULL)) AND ((closed_at IS NULL) = (closed_by IS NULL))));
alter table tallyhook.drifts add constraint drifts_pkey PRIMARY KEY (id);
alter table tallyhook.due_postings add constraint due_postings_pkey PRIMARY KEY (operation_id);
alter table tallyhook.endpoint_health add constraint endpoint_health_endpoint_id_endpoints_id_fk FOREIGN KEY (endpoint_id) REFERENCES tallyhook.endpoints(id);
alter table tallyhook.endpoint_health add constraint endpoint_health_pkey PRIMARY KEY (endpoint_id);
alter table tallyhook.endpoints add constraint endpoints_pkey PRIMARY KEY (id);
alter table tallyhook.entries add constraint entries_amount_whole CHECK ((scale(amount) = 0));
alter table tallyhook.entries add constraint entries_balance_after_whole CHECK ((scale(balance_after) = 0));
alter table tallyhook.entries add constraint entries_move_something CHECK ((amount <> (0)::numeric));
alter table tallyhook.entries add constraint entries_transaction_id_line_pk PRIMARY KEY (transaction_id, line);
alter table tallyhook.events add constraint events_recorded_at_id_pk PRIMARY KEY (recorded_at, id);
alter table tallyhook.fee_rules add constraint fee_rules_pkey PRIMARY KEY (id);
alter table tallyhook.feed add constraint feed_pkey PRIMARY KEY (name);
alter table tallyhook.freezes add constraint freezes_pkey PRIMARY KEY (id);
alter table tallyhook.import_movements add constraint import_movements_amount_whole CHECK ((scale(amount) = 0));
alter table tallyhook.import_rows add constraint import_rows_import_id_n_pk PRIMARY KEY (import_id, n);
alter table tallyhook.imports add constraint imports_pkey PRIMARY KEY (id);
alter table tallyhook.installation add constraint installation_pkey PRIMARY KEY (name);
alter table tallyhook.key_usage add constraint key_usage_key_id_hour_pk PRIMARY KEY (key_id, hour);
alter table tallyhook.key_usage add constraint key_usage_moved_whole CHECK ((scale(moved) = 0));
alter table tallyhook.keys add constraint keys_hash_unique UNIQUE (hash);
alter table tallyhook.keys add constraint keys_owner_owners_name_fk FOREIGN KEY (owner) REFERENCES tallyhook.owners(name);
alter table tallyhook.keys add constraint keys_pkey PRIMARY KEY (id);
alter table tallyhook.leases add constraint leases_pkey PRIMARY KEY (name);
alter table tallyhook.migrations add constraint migrations_pkey PRIMARY KEY (idx);
alter table tallyhook.nft_movements add constraint nft_movements_batch_id_batches_id_fk FOREIGN KEY (batch_id) REFERENCES tallyhook.batches(id);
alter table tallyhook.nft_movements add constraint nft_movements_contract_id_whole CHECK ((scale(contract_id) = 0));
alter table tallyhook.nft_movements add constraint nft_movements_kinds CHECK ((kind = ANY (ARRAY['opening'::text, 'mint'::text, 'transfer'::text, 'burn'::text, 'data_change'::text, 'reversal'::text])));
alter table tallyhook.nft_movements add constraint nft_movements_of_operations CHECK (((operation_id IS NULL) = (posting IS NULL)));
alter table tallyhook.nft_movements add constraint nft_movements_pkey PRIMARY KEY (id);
alter table tallyhook.nft_movements add constraint nft_movements_reversals CHECK (((kind = 'reversal'::text) = (reverses IS NOT NULL)));
alter table tallyhook.nft_movements add constraint nft_movements_reverse_known FOREIGN KEY (reverses) REFERENCES tallyhook.nft_movements(id);
alter table tallyhook.nft_movements add constraint nft_movements_token_id_whole CHECK ((scale(token_id) = 0));
alter table tallyhook.numbered_events add constraint numbered_events_first_seq_recorded_at_pk PRIMARY KEY (first_seq, recorded_at);
alter table tallyhook.observations add constraint observations_started_at_id_pk PRIMARY KEY (started_at, id);
alter table tallyhook.observed_holders add constraint observed_holders_contract_id_whole CHECK ((scale(contract_id) = 0));
alter table tallyhook.observed_holders add constraint observed_holders_pkey PRIMARY KEY (id);
alter table tallyhook.observed_holders add constraint observed_holders_token_id_whole CHECK ((scale(token_id) = 0));
alter table tallyhook.open_operations add constraint open_operations_contract_id_whole CHECK ((scale(contract_id) = 0));
alter table tallyhook.open_operations add constraint open_operations_state_changed_at_id_pk PRIMARY KEY (state, changed_at, id);
alter table tallyhook.operation_effects add constraint operation_effects_amount_whole CHECK ((scale(amount) = 0));
alter table tallyhook.operation_effects add constraint operation_effects_operation_id_line_pk PRIMARY KEY (operation_id, line);
alter table tallyhook.operations add constraint operations_amount_whole CHECK ((scale(amount) = 0));
alter table tallyhook.operations add constraint operations_contract_id_whole CHECK ((scale(contract_id) = 0));
alter table tallyhook.operations add constraint operations_fee_amount_whole CHECK ((scale(fee_amount) = 0));
alter table tallyhook.operations add constraint operations_key_held_only_with_key CHECK (((idempotency_key IS NOT NULL) OR (NOT key_held)));
alter table tallyhook.operations add constraint operations_kind_known CHECK ((kind = ANY (ARRAY['mint'::text, 'mint_sequential'::text, 'burn'::text, 'set_extra_data'::text, 'transfer_from'::text, 'give'::text, 'receive_from'::text, 'transfer'::text, 'other'::text])));
alter table tallyhook.operations add constraint operations_operation_no_whole CHECK ((scale(operation_no) = 0));
alter table tallyhook.operations add constraint operations_pkey PRIMARY KEY (id);
alter table tallyhook.operations add constraint operations_state_known CHECK ((state = ANY (ARRAY['queued'::text, 'sending'::text, 'accepted'::text, 'rejected'::text, 'unknown'::text, 'executed'::text, 'not_executed'::text, 'undecided'::text, 'settled'::text, 'failed'::text, 'cancelled'::text])));
alter table tallyhook.operations add constraint operations_token_id_whole CHECK ((scale(token_id) = 0));
alter table tallyhook.operations add constraint operations_tx_app_no_whole CHECK ((scale(tx_app_no) = 0));
alter table tallyhook.operations add constraint operations_tx_log_no_whole CHECK ((scale(tx_log_no) = 0));
alter table tallyhook.operator_wallets add constraint operator_wallets_account_n_pk PRIMARY KEY (account, n);
alter table tallyhook.operator_wallets add constraint operator_wallets_decided FOREIGN KEY (account, n, addr) REFERENCES tallyhook.decisions(subject, n, decision);
alter table tallyhook.operator_wallets add constraint operator_wallets_rejected_by_someone CHECK (((rejected_at IS NULL) = (rejected_by IS NULL)));
alter table tallyhook.owners add constraint owners_are_named CHECK ((tallyhook.owner_key(name) <> ''::text));
alter table tallyhook.owners add constraint owners_pkey PRIMARY KEY (name);
alter table tallyhook.pending_deliveries add constraint pending_deliveries_pkey PRIMARY KEY (id);
alter table tallyhook.period_actions add constraint period_actions_have_reasons CHECK (((action <> ALL (ARRAY['signed_off'::text, 'reopen_proposed'::text, 'reopened'::text])) OR (reason IS NOT NULL)));
alter table tallyhook.period_actions add constraint period_actions_known CHECK ((action = ANY (ARRAY['closed'::text, 'signed_off'::text, 'signed'::text, 'reopen_proposed'::text, 'reopened'::text])));
alter table tallyhook.period_actions add constraint period_actions_period_id_periods_id_fk FOREIGN KEY (period_id) REFERENCES tallyhook.periods(id);
alter table tallyhook.period_actions add constraint period_actions_pkey PRIMARY KEY (id);
alter table tallyhook.periods add constraint periods_closed_by_decision FOREIGN KEY (id, decision, closed_by) REFERENCES tallyhook.decisions(subject, n, proposed_by);
alter table tallyhook.periods add constraint periods_not_empty CHECK ((period_from < period_to));
alter table tallyhook.periods add constraint periods_pkey PRIMARY KEY (id);
alter table tallyhook.periods add constraint periods_report_id_reports_id_fk FOREIGN KEY (report_id) REFERENCES tallyhook.reports(id);
alter table tallyhook.poll_minutes add constraint poll_minutes_pkey PRIMARY KEY (at);
alter table tallyhook.posting_requests add constraint posting_requests_amount_whole CHECK ((scale(amount) = 0));
alter table tallyhook.posting_requests add constraint posting_requests_pkey PRIMARY KEY (id);
alter table tallyhook.quarantine_releases add constraint quarantine_releases_pkey PRIMARY KEY (id);
alter table tallyhook.quota add constraint quota_pkey PRIMARY KEY (name);
alter table tallyhook.replays add constraint replays_pkey PRIMARY KEY (id);
alter table tallyhook.report_files add constraint report_files_report_id_format_pk PRIMARY KEY (report_id, format);
alter table tallyhook.report_files add constraint report_files_report_id_reports_id_fk FOREIGN KEY (report_id) REFERENCES tallyhook.reports(id);
alter table tallyhook.reports add constraint reports_pkey PRIMARY KEY (id);
alter table tallyhook.service_changes add constraint service_changes_pkey PRIMARY KEY (at);
alter table tallyhook.service_state add constraint service_state_pkey PRIMARY KEY (name);
alter table tallyhook.subjects add constraint subjects_pkey PRIMARY KEY (subject);
alter table tallyhook.targets add constraint targets_contract_id_whole CHECK ((scale(contract_id) = 0));
alter table tallyhook.targets add constraint targets_pkey PRIMARY KEY (name);
alter table tallyhook.targets add constraint targets_token_id_whole CHECK ((scale(token_id) = 0));
alter table tallyhook.tokens add constraint tokens_contract_id_token_id_pk PRIMARY KEY (contract_id, token_id);
alter table tallyhook.tokens add constraint tokens_contract_id_whole CHECK ((scale(contract_id) = 0));
alter table tallyhook.tokens add constraint tokens_token_id_whole CHECK ((scale(token_id) = 0));
alter table tallyhook.transactions add constraint transactions_have_entries CHECK ((entry_count >= 2));
alter table tallyhook.transactions add constraint transactions_have_one_origin CHECK ((((operation_id IS NULL) = (posting IS NULL)) AND ((operation_id IS NULL) <> (posting_request_id IS NULL))));
alter table tallyhook.transactions add constraint transactions_kind_known CHECK ((kind = ANY (ARRAY['give'::text, 'receive_from'::text, 'transfer'::text, 'opening'::text, 'booking'::text, 'reversal'::text])));
alter table tallyhook.transactions add constraint transactions_pkey PRIMARY KEY (id);
alter table tallyhook.transactions add constraint transactions_posting_in_turn CHECK (((posting >= 1) AND (((posting % 2) = 0) = (kind = 'reversal'::text)) AND (((posting % 2) = 0) = (reverses IS NOT NULL))));
alter table tallyhook.transactions add constraint transactions_reverse_known FOREIGN KEY (reverses) REFERENCES tallyhook.transactions(id);
alter table tallyhook.transactions add constraint transactions_tx_app_no_whole CHECK ((scale(tx_app_no) = 0));
alter table tallyhook.transactions add constraint transactions_tx_log_no_whole CHECK ((scale(tx_log_no) = 0));
alter table tallyhook.transitions add constraint transitions_tx_log_no_whole CHECK ((scale(tx_log_no) = 0));
alter table tallyhook.unchained_rows add constraint unchained_rows_pkey PRIMARY KEY (id);
alter table tallyhook.unnumbered_events add constraint unnumbered_events_pkey PRIMARY KEY (id);
alter table tallyhook.unprocessed_observations add constraint unprocessed_observations_pkey PRIMARY KEY (target);
alter table tallyhook.used_since_backup add constraint used_since_backup_pkey PRIMARY KEY (name);
alter table tallyhook.waits add constraint waits_pkey PRIMARY KEY (name);
alter table tallyhook.wallets add constraint wallets_ledger_at_observation_whole CHECK ((scale(ledger_at_observation) = 0));
alter table tallyhook.wallets add constraint wallets_observed_balance_whole CHECK ((scale(observed_balance) = 0));
alter table tallyhook.wallets add constraint wallets_pkey PRIMARY KEY (key);
alter table tallyhook.wallets add constraint wallets_suspected_max_whole CHECK ((scale(suspected_max) = 0));
alter table tallyhook.wallets add constraint wallets_suspected_min_whole CHECK ((scale(suspected_min) = 0));
alter table tallyhook.watches add constraint watches_contract_id_whole CHECK ((scale(contract_id) = 0));
alter table tallyhook.watches add constraint watches_pkey PRIMARY KEY (id);
alter table tallyhook.watches add constraint watches_target_unique UNIQUE (target);
alter table tallyhook.watches add constraint watches_token_id_whole CHECK ((scale(token_id) = 0));

-- indexes

CREATE UNIQUE INDEX accounts_by_name ON tallyhook.accounts USING btree (lower(name), asset);
CREATE UNIQUE INDEX alerts_once ON tallyhook.alerts USING btree (rule, subject);
CREATE UNIQUE INDEX approvals_once ON tallyhook.approvals USING btree (subject, n, tallyhook.owner_key(owner));
CREATE INDEX attempt_figures_by_time ON tallyhook.attempt_figures USING btree (at);
CREATE INDEX attempt_minutes_by_time ON tallyhook.attempt_minutes USING btree (at);
CREATE INDEX attempts_by_time ON ONLY tallyhook.attempts USING btree (at);
CREATE INDEX consumed_events_by_subject ON tallyhook.consumed_events USING btree (consumer_id, subject);
CREATE UNIQUE INDEX consumers_by_name ON tallyhook.consumers USING btree (created_by, name);
CREATE INDEX deliveries_by_endpoint ON ONLY tallyhook.deliveries USING btree (endpoint_id, id);
CREATE INDEX deliveries_failed ON ONLY tallyhook.deliveries USING btree (state, id) WHERE (state = ANY (ARRAY['exhausted'::text, 'cancelled'::text]));
CREATE INDEX drift_actions_by_drift ON tallyhook.drift_actions USING btree (drift_id, id);
CREATE INDEX drifts_by_wallet ON tallyhook.drifts USING btree (wallet_key, opened_at);
CREATE INDEX drifts_closed ON tallyhook.drifts USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE INDEX drifts_open ON tallyhook.drifts USING btree (wallet_key) WHERE (closed_at IS NULL);
CREATE INDEX drifts_open_amount ON tallyhook.drifts USING btree (amount) WHERE (closed_at IS NULL);
CREATE INDEX due_postings_in_order ON tallyhook.due_postings USING btree (due_at, operation_id) WHERE (quarantine_reason IS NULL);
CREATE INDEX due_postings_quarantined ON tallyhook.due_postings USING btree (quarantined_at) WHERE (quarantined_at IS NOT NULL);
CREATE INDEX endpoints_by_subscription ON tallyhook.endpoints USING btree (subscribed_at);
CREATE INDEX endpoints_by_type ON tallyhook.endpoints USING gin (event_types) WITH (fastupdate=off) WHERE (deleted_at IS NULL);
CREATE INDEX endpoints_filtered ON tallyhook.endpoints USING btree (id) WHERE ((filter IS NOT NULL) AND (deleted_at IS NULL));
CREATE UNIQUE INDEX entries_by_version ON tallyhook.entries USING btree (account_id, version);
CREATE INDEX event_shapes_by_id ON tallyhook.event_shapes USING btree (id);
CREATE INDEX import_movements_account ON tallyhook.import_movements USING btree (import_id, account, at);
CREATE INDEX import_rows_identity ON tallyhook.import_rows USING btree (identity) WHERE (identity IS NOT NULL);
CREATE INDEX import_rows_named ON tallyhook.import_rows USING btree (named) WHERE (named IS NOT NULL);
CREATE INDEX import_rows_result ON tallyhook.import_rows USING btree (result, import_id, n);
CREATE UNIQUE INDEX imports_going ON tallyhook.imports USING btree (fingerprint) WHERE (state = ANY (ARRAY['checking'::text, 'recording'::text, 'ready'::text, 'refused'::text]));
CREATE INDEX imports_working ON tallyhook.imports USING btree (created_at) WHERE (state = ANY (ARRAY['checking'::text, 'recording'::text]));
CREATE INDEX nft_movements_by_batch ON tallyhook.nft_movements USING btree (batch_id, id);
CREATE UNIQUE INDEX nft_movements_by_operation ON tallyhook.nft_movements USING btree (operation_id, posting);
CREATE INDEX nft_movements_by_token ON tallyhook.nft_movements USING btree (contract_id, token_id, id);
CREATE UNIQUE INDEX nft_movements_reversed_once ON tallyhook.nft_movements USING btree (reverses) WHERE (reverses IS NOT NULL);
CREATE INDEX observations_by_target ON ONLY tallyhook.observations USING btree (target, started_at);
CREATE INDEX observed_holders_by_token ON tallyhook.observed_holders USING btree (contract_id, token_id);
CREATE INDEX open_operations_by_conflict ON tallyhook.open_operations USING btree (conflict_key) WHERE (conflict_key IS NOT NULL);
CREATE INDEX open_operations_by_contract ON tallyhook.open_operations USING btree (contract_id) WHERE (contract_id IS NOT NULL);
CREATE INDEX operation_effects_by_account ON tallyhook.operation_effects USING btree (lower(account), unsettled, amount) WHERE (unsettled IS NOT NULL);
CREATE INDEX operations_by_contract ON tallyhook.operations USING btree (contract_id, recorded_at) WHERE (contract_id IS NOT NULL);
CREATE INDEX operations_by_effect ON tallyhook.operations USING btree (happened_at) WHERE (happened_at IS NOT NULL);
CREATE INDEX operations_by_fee_mode ON tallyhook.operations USING btree (fee_mode, fee_at) WHERE (fee_mode IS NOT NULL);
CREATE INDEX operations_by_from ON tallyhook.operations USING btree (lower(from_addr), recorded_at) WHERE (from_addr IS NOT NULL);
CREATE INDEX operations_by_kind ON tallyhook.operations USING btree (kind, recorded_at);
CREATE INDEX operations_by_reference ON tallyhook.operations USING btree (reference, recorded_at) WHERE (reference IS NOT NULL);
CREATE INDEX operations_by_released_key ON tallyhook.operations USING btree (idempotency_key) WHERE ((idempotency_key IS NOT NULL) AND (NOT key_held));
CREATE INDEX operations_by_time ON tallyhook.operations USING btree (recorded_at);
CREATE INDEX operations_by_to ON tallyhook.operations USING btree (lower(to_addr), recorded_at) WHERE (to_addr IS NOT NULL);
CREATE INDEX operations_by_token ON tallyhook.operations USING btree (contract_id, token_id, recorded_at) WHERE (contract_id IS NOT NULL);
CREATE INDEX operations_ended ON tallyhook.operations USING btree (ended_as, recorded_at) WHERE (ended_as IS NOT NULL);
CREATE UNIQUE INDEX operations_idempotency ON tallyhook.operations USING btree (idempotency_key, owner) WHERE key_held;
CREATE UNIQUE INDEX operations_reported ON tallyhook.operations USING btree (reported_as) WHERE (reported_as IS NOT NULL);
CREATE INDEX operations_unnumbered ON tallyhook.operations USING btree (recorded_at) WHERE unnumbered;
CREATE UNIQUE INDEX operator_wallets_by_wallet ON tallyhook.operator_wallets USING btree (lower(addr)) WHERE (rejected_at IS NULL);
CREATE UNIQUE INDEX operator_wallets_once ON tallyhook.operator_wallets USING btree (account) WHERE (rejected_at IS NULL);
CREATE UNIQUE INDEX owners_once ON tallyhook.owners USING btree (tallyhook.owner_key(name));
CREATE INDEX pending_deliveries_by_subject ON tallyhook.pending_deliveries USING btree (endpoint_id, subject, subject_seq) WHERE (subject IS NOT NULL);
CREATE INDEX pending_deliveries_due ON tallyhook.pending_deliveries USING btree (endpoint_id, due_at);
CREATE INDEX period_actions_by_period ON tallyhook.period_actions USING btree (period_id, id);
CREATE UNIQUE INDEX period_actions_ended_once ON tallyhook.period_actions USING btree (period_id, action) WHERE (action = ANY (ARRAY['closed'::text, 'signed'::text, 'reopened'::text]));
CREATE INDEX periods_by_end ON tallyhook.periods USING btree (period_to);
CREATE INDEX posting_requests_openings ON tallyhook.posting_requests USING btree (lower(account), effective_at) WHERE (kind = 'opening'::text);
CREATE INDEX posting_requests_quarantined ON tallyhook.posting_requests USING btree (requested_at) WHERE ((posted_at IS NULL) AND (problem IS NOT NULL));
CREATE INDEX posting_requests_unposted ON tallyhook.posting_requests USING btree (requested_at) WHERE ((posted_at IS NULL) AND (problem IS NULL));
CREATE INDEX posting_requests_unposted_on ON tallyhook.posting_requests USING btree (lower(account)) WHERE ((posted_at IS NULL) AND (problem IS NULL));
CREATE INDEX replays_by_endpoint ON tallyhook.replays USING btree (endpoint_id, id);
CREATE UNIQUE INDEX replays_running ON tallyhook.replays USING btree (endpoint_id) WHERE (state = 'running'::text);
CREATE INDEX report_files_due ON tallyhook.report_files USING btree (due_at) WHERE (written_at IS NULL);
CREATE INDEX reports_by_time ON tallyhook.reports USING btree (created_at);
CREATE UNIQUE INDEX reports_once_per_period ON tallyhook.reports USING btree (kind, period_from, period_to) WHERE (requested_by = 'schedule'::text);
CREATE INDEX targets_absent ON tallyhook.targets USING btree (observation_started_at) WHERE (last_result = 'absent'::text);
CREATE INDEX targets_due ON tallyhook.targets USING btree (next_poll_at);
CREATE INDEX targets_pending ON tallyhook.targets USING btree (next_poll_at) WHERE pending;
CREATE INDEX tokens_by_uri ON tallyhook.tokens USING btree (contract_id, hashtextextended(uri, (0)::bigint)) WHERE (uri IS NOT NULL);
CREATE INDEX transactions_by_effective ON tallyhook.transactions USING btree (effective_at);
CREATE UNIQUE INDEX transactions_by_operation ON tallyhook.transactions USING btree (operation_id, posting);
CREATE UNIQUE INDEX transactions_by_request ON tallyhook.transactions USING btree (posting_request_id) WHERE (posting_request_id IS NOT NULL);
CREATE INDEX transactions_late ON tallyhook.transactions USING btree (id) WHERE ((recorded_at - effective_at) > '01:00:00'::interval);
CREATE UNIQUE INDEX transactions_reversed_once ON tallyhook.transactions USING btree (reverses) WHERE (reverses IS NOT NULL);
CREATE INDEX transitions_by_hash ON tallyhook.transitions USING btree (lower(tx_hash)) WHERE (tx_hash IS NOT NULL);
CREATE INDEX transitions_by_id ON tallyhook.transitions USING brin (id) WITH (autosummarize='on');
CREATE INDEX transitions_by_operation ON tallyhook.transitions USING btree (operation_id);
CREATE INDEX transitions_by_tx ON tallyhook.transitions USING btree (tx_log_no) WHERE (tx_log_no IS NOT NULL);
CREATE INDEX unprocessed_observations_due ON tallyhook.unprocessed_observations USING btree (process_at) WHERE (problem IS NULL);
CREATE INDEX unprocessed_observations_quarantined ON tallyhook.unprocessed_observations USING btree (process_at) WHERE (problem IS NOT NULL);
CREATE INDEX wallets_by_observation ON tallyhook.wallets USING btree (observed_at);
CREATE INDEX wallets_vanished ON tallyhook.wallets USING btree (vanished_at) WHERE (vanished_at IS NOT NULL);

-- partitions

create table tallyhook.attempts_default partition of tallyhook.attempts DEFAULT;
create table tallyhook.deliveries_default partition of tallyhook.deliveries DEFAULT;
create table tallyhook.events_default partition of tallyhook.events DEFAULT;
create table tallyhook.numbered_events_default partition of tallyhook.numbered_events DEFAULT;
create table tallyhook.observations_default partition of tallyhook.observations DEFAULT;

-- views

create view finance_v1.accounts as
 SELECT a.name AS account,
    a.kind,
    a.asset,
        CASE a.kind
            WHEN 'operator'::text THEN (substr(a.name, 10))::numeric
            ELSE o.operator_no
        END AS operator_no,
        CASE a.kind
            WHEN 'wallet'::text THEN substr(a.name, 8)
            ELSE NULL::text
        END AS addr,
    (a.opened_at)::timestamp with time zone AS opened_at
   FROM (tallyhook.accounts a
     LEFT JOIN ( SELECT lower(operators.account) AS key,
            min(operators.operator_no) AS operator_no
           FROM finance_v1.operators
          WHERE (operators.addr IS NOT NULL)
          GROUP BY (lower(operators.account))) o ON ((o.key = lower(a.name))));
create view finance_v1.balances as
 SELECT name AS account,
    asset,
    balance,
    ( SELECT ((e.transaction_id * 1000) + e.line)
           FROM tallyhook.entries e
          WHERE ((e.account_id = a.id) AND (e.version = a.version))) AS last_seq
   FROM tallyhook.accounts a;
create view finance_v1.coverage as
 WITH scope AS (
         SELECT wallets.key
           FROM tallyhook.wallets
        UNION
         SELECT lower(substr(accounts.name, 8)) AS lower
           FROM tallyhook.accounts
          WHERE (accounts.kind = 'wallet'::text)
        UNION
         SELECT lower(targets.addr) AS lower
           FROM tallyhook.targets
          WHERE (targets.kind = 'wallet'::text)
        ), fresh AS (
         SELECT (present.now - make_interval(secs => (COALESCE(( SELECT (installation.value)::double precision AS value
                   FROM tallyhook.installation
                  WHERE (installation.name = 'stale_after_ms'::text)), (86400000)::double precision) / (1000)::double precision))) AS since
           FROM tallyhook.present
        )
 SELECT count(*) AS in_scope,
    count(*) FILTER (WHERE ((w.observed_at >= f.since) AND (w.verdict = ANY (ARRAY['explained'::text, 'drifting'::text])))) AS checked,
    count(*) FILTER (WHERE ((w.observed_at IS NULL) OR (w.observed_at < f.since))) AS stale,
    min(w.observed_at) AS oldest_check_at
   FROM ((scope s
     CROSS JOIN fresh f)
     LEFT JOIN tallyhook.wallets w ON ((w.key = s.key)));
create view finance_v1.decisions as
 SELECT d.subject,
    d.decision,
    d.reason,
    d.proposed_by,
    q.approved_by,
    q.at,
    d.n,
    d.operation_id,
    (d.proposed_at)::timestamp with time zone AS proposed_at,
    d.approvals_needed
   FROM (tallyhook.decisions d
     LEFT JOIN LATERAL ( SELECT string_agg(y.owner, ', '::text ORDER BY y.at) AS approved_by,
            max(y.at) AS at
           FROM tallyhook.approvals y
          WHERE ((y.subject = d.subject) AND (y.n = d.n))
         HAVING (count(*) >= d.approvals_needed)) q ON (true));
create view finance_v1.drift_history as
 SELECT drift_id,
    (at)::timestamp with time zone AS at,
    action,
    by,
    detail
   FROM tallyhook.drift_actions;
create view finance_v1.drifts as
 SELECT d.id AS drift_id,
    d.addr,
    d.amount,
    d.state,
    (d.opened_at)::timestamp with time zone AS opened_at,
    a.age,
    b.bucket,
    d.assignee,
        CASE
            WHEN (p.subject IS NOT NULL) THEN jsonb_build_object('n', p.n, 'kind', p.decision, 'operation_id', p.operation_id, 'reason', p.reason, 'proposed_by', p.proposed_by, 'approvals_needed', p.approvals_needed)
            ELSE NULL::jsonb
        END AS proposal,
    q.approved_by,
    (d.closed_at)::timestamp with time zone AS closed_at,
    d.amount_min,
    d.amount_max,
    b.bucket_order,
    d.cause,
    d.counterpart,
    p.proposed_by,
    d.closed_by,
    ((d.operator ->> 'operator_no'::text))::numeric AS operator_no,
    (d.operator -> 'gives'::text) AS gives
   FROM (((((tallyhook.drifts d
     CROSS JOIN tallyhook.present n)
     CROSS JOIN LATERAL ( SELECT make_interval(secs => (EXTRACT(epoch FROM (COALESCE(d.closed_at, n.now) - d.suspected_at)))::double precision) AS age) a)
     JOIN tallyhook.age_buckets b ON (((a.age >= b.from_age) AND (a.age < b.to_age))))
     LEFT JOIN LATERAL ( SELECT x.subject,
            x.n,
            x.decision,
            x.operation_id,
            x.reason,
            x.proposed_by,
            x.approvals_needed
           FROM tallyhook.decisions x
          WHERE (x.subject = d.id)
          ORDER BY x.n DESC
         LIMIT 1) p ON (true))
     LEFT JOIN LATERAL ( SELECT string_agg(y.owner, ', '::text ORDER BY y.at) AS approved_by
           FROM tallyhook.approvals y
          WHERE ((y.subject = p.subject) AND (y.n = p.n))
         HAVING (count(*) >= p.approvals_needed)) q ON (true));
create view finance_v1.drifts_ageing as
 SELECT drift_id,
    addr,
    amount,
    state,
    opened_at,
    age,
    bucket,
    assignee,
    proposal,
    approved_by,
    closed_at,
    amount_min,
    amount_max,
    bucket_order,
    cause,
    counterpart,
    proposed_by,
    closed_by,
    operator_no,
    gives
   FROM finance_v1.drifts
  WHERE (closed_at IS NULL);
create view finance_v1.in_doubt as
 SELECT o.id AS operation_id,
    o.kind,
    o.amount,
    o.state,
    (COALESCE(t.at, o.sent_at, o.recorded_at))::timestamp with time zone AS since,
    o.owner,
        CASE o.state
            WHEN 'undecided'::text THEN o.evidence
            ELSE f.finding
        END AS evidence,
    t.cause,
    p.decision AS proposal,
    p.proposed_by
   FROM ((((tallyhook.open_operations w
     JOIN tallyhook.operations o ON ((o.id = w.id)))
     LEFT JOIN LATERAL ( SELECT x.at,
            x.cause
           FROM tallyhook.transitions x
          WHERE ((x.operation_id = o.id) AND (x.to_state = ANY (ARRAY['unknown'::text, 'undecided'::text])))
          ORDER BY x.id
         LIMIT 1) t ON (true))
     LEFT JOIN LATERAL ( SELECT jsonb_build_object('outcome', c.outcome, 'basis', c.basis, 'seen_at', c.seen_at, 'evidence', c.evidence) AS finding
           FROM tallyhook.candidates c
          WHERE (c.operation_id = o.id)) f ON (true))
     LEFT JOIN LATERAL ( SELECT d.decision,
            d.proposed_by
           FROM tallyhook.decisions d
          WHERE (d.subject = o.id)
          ORDER BY d.n DESC
         LIMIT 1) p ON (true))
  WHERE (w.state = ANY (ARRAY['unknown'::text, 'undecided'::text]));
create view finance_v1.journal as
 SELECT ((t.id * 1000) + e.line) AS seq,
    t.id AS transaction_id,
    b.drift_id,
    b.reason,
    b.decided_by,
    a.name AS account,
    a.asset,
    e.amount,
    e.balance_after,
    t.kind,
    t.reason_type,
    t.reference,
    t.operation_id,
    COALESCE(t.tx_app_no, o.tx_app_no) AS tx_app_no,
    COALESCE(t.tx_log_no, o.tx_log_no) AS tx_log_no,
    (e.effective_at)::timestamp with time zone AS effective_at,
    t.effective_basis,
    (e.recorded_at)::timestamp with time zone AS recorded_at,
    t.reverses,
    t.requested_by
   FROM ((((tallyhook.entries e
     JOIN tallyhook.transactions t ON ((t.id = e.transaction_id)))
     JOIN tallyhook.accounts a ON ((a.id = e.account_id)))
     LEFT JOIN tallyhook.operations o ON ((o.id = t.operation_id)))
     LEFT JOIN tallyhook.bookings b ON ((b.posting_request_id = t.posting_request_id)));
create view finance_v1.nft_holdings as
 SELECT contract_id,
    token_id,
    owner,
    (locked = 1) AS locked,
    status
   FROM tallyhook.tokens
  WHERE (presence = 'present'::text);
create view finance_v1.nft_movements as
 SELECT m.contract_id,
    m.token_id,
    m.kind,
    COALESCE(m.from_addr, f.addr) AS from_addr,
    m.to_addr,
    COALESCE(m.tx_hash, o.tx_hash) AS tx_hash,
    (m.effective_at)::timestamp with time zone AS effective_at,
    m.id AS seq,
    m.operation_id,
    ((m.operation_id IS NULL) AND (m.kind = ANY (ARRAY['mint'::text, 'transfer'::text, 'burn'::text]))) AS unexplained,
    (m.not_before)::timestamp with time zone AS not_before,
    m.effective_basis,
    (m.recorded_at)::timestamp with time zone AS recorded_at,
    m.reverses,
    ((m.kind <> 'reversal'::text) AND (( SELECT r.id
           FROM tallyhook.nft_movements r
          WHERE (r.reverses = m.id)) IS NULL)) AS standing
   FROM ((tallyhook.nft_movements m
     LEFT JOIN tallyhook.operations o ON ((o.id = m.operation_id)))
     LEFT JOIN tallyhook.burned_from f ON ((f.id = m.id)));
create view finance_v1.operations as
 SELECT id AS operation_id,
    kind,
    state,
    outcome,
    tx_app_no,
    tx_log_no,
    tx_hash,
    from_addr,
    to_addr,
    operation_no,
    contract_id,
    token_id,
    amount,
    fee_amount,
    reason_type,
    reference,
    (sent_at)::timestamp with time zone AS sent_at,
        CASE
            WHEN (answer_status IS NOT NULL) THEN (answered_at)::timestamp with time zone
            ELSE NULL::timestamp with time zone
        END AS answered_at,
    (settled_at)::timestamp with time zone AS settled_at,
    (effective_at)::timestamp with time zone AS effective_at
   FROM tallyhook.operations;
create view finance_v1.operations_without_tx_number as
 SELECT id AS operation_id,
    kind,
    state,
    outcome,
    tx_app_no,
    tx_log_no,
    tx_hash,
    from_addr,
    to_addr,
    operation_no,
    contract_id,
    token_id,
    amount,
    fee_amount,
    reason_type,
    reference,
    (sent_at)::timestamp with time zone AS sent_at,
        CASE
            WHEN (answer_status IS NOT NULL) THEN (answered_at)::timestamp with time zone
            ELSE NULL::timestamp with time zone
        END AS answered_at,
    (settled_at)::timestamp with time zone AS settled_at,
    (effective_at)::timestamp with time zone AS effective_at
   FROM tallyhook.operations
  WHERE ((outcome = 'executed'::text) AND (((kind = ANY (ARRAY['give'::text, 'receive_from'::text, 'transfer'::text])) AND (tx_log_no IS NULL)) OR ((kind = ANY (ARRAY['mint'::text, 'mint_sequential'::text, 'burn'::text, 'set_extra_data'::text, 'transfer_from'::text])) AND (tx_hash IS NULL))));
create view finance_v1.operators as
 WITH named AS (
         SELECT (x.key)::numeric AS operator_no,
            x.value AS addr
           FROM (tallyhook.installation i
             CROSS JOIN LATERAL jsonb_each_text(((
                CASE i.name
                    WHEN 'ledger_settings'::text THEN i.value
                    ELSE NULL::text
                END)::jsonb -> 'operators'::text)) x(key, value))
        ), known AS (
         SELECT named.operator_no,
            named.addr,
            ('wallet:'::text || named.addr) AS account
           FROM named
        UNION ALL
         SELECT m.operator_no,
            m.addr,
            ('wallet:'::text || m.addr)
           FROM tallyhook.mapped_operators m
          WHERE (NOT (EXISTS ( SELECT
                   FROM named n
                  WHERE (n.operator_no = m.operator_no))))
        UNION ALL
         SELECT (substr(accounts.name, 10))::numeric AS substr,
            NULL::text,
            accounts.name
           FROM tallyhook.accounts
          WHERE (accounts.kind = 'operator'::text)
        )
 SELECT k.operator_no,
    k.addr,
    COALESCE(a.name, k.account) AS account,
    COALESCE(a.balance, (0)::numeric) AS balance
   FROM (known k
     LEFT JOIN tallyhook.accounts a ON (((lower(a.name) = lower(k.account)) AND (a.asset = 'service_token'::text))));
create view finance_v1.period_history as
 SELECT period_id AS period,
    (at)::timestamp with time zone AS at,
    action,
    by,
    reason,
    detail
   FROM tallyhook.period_actions;
create view finance_v1.periods as
 SELECT p.id AS period,
        CASE
            WHEN (r.period_id IS NOT NULL) THEN 'reopened'::text
            WHEN (s.period_id IS NOT NULL) THEN 'signed'::text
            ELSE 'closed'::text
        END AS state,
    (p.period_from)::timestamp with time zone AS period_from,
    (p.period_to)::timestamp with time zone AS period_to,
    p.closed_by,
    (p.closed_at)::timestamp with time zone AS closed_at,
    s.by AS signed_by,
    (s.at)::timestamp with time zone AS signed_at,
    q.by AS reopen_proposed_by,
    r.by AS reopened_by,
    (r.at)::timestamp with time zone AS reopened_at,
    COALESCE(r.reason, q.reason) AS reopen_reason,
    p.report_id,
    p.report_hash,
    p.last_batch,
    (p.known_at)::timestamp with time zone AS known_at,
    p.chain_head,
    ( SELECT count(*) AS count
           FROM tallyhook.period_actions o
          WHERE ((o.period_id = p.id) AND (o.action = 'signed_off'::text))) AS signed_off
   FROM (((tallyhook.periods p
     LEFT JOIN tallyhook.period_actions s ON (((s.period_id = p.id) AND (s.action = 'signed'::text))))
     LEFT JOIN tallyhook.period_actions r ON (((r.period_id = p.id) AND (r.action = 'reopened'::text))))
     LEFT JOIN LATERAL ( SELECT a.by,
            a.reason
           FROM tallyhook.period_actions a
          WHERE ((a.period_id = p.id) AND (a.action = 'reopen_proposed'::text))
          ORDER BY a.id DESC
         LIMIT 1) q ON (true))
UNION ALL
 SELECT NULL::text AS period,
    'open'::text AS state,
    max(p.period_to) AS period_from,
    NULL::timestamp with time zone AS period_to,
    NULL::text AS closed_by,
    NULL::timestamp with time zone AS closed_at,
    NULL::text AS signed_by,
    NULL::timestamp with time zone AS signed_at,
    NULL::text AS reopen_proposed_by,
    NULL::text AS reopened_by,
    NULL::timestamp with time zone AS reopened_at,
    NULL::text AS reopen_reason,
    NULL::text AS report_id,
    NULL::text AS report_hash,
    NULL::bigint AS last_batch,
    NULL::timestamp with time zone AS known_at,
    NULL::text AS chain_head,
    0 AS signed_off
   FROM tallyhook.periods p
  WHERE (NOT (EXISTS ( SELECT
           FROM tallyhook.period_actions a
          WHERE ((a.period_id = p.id) AND (a.action = 'reopened'::text)))));
create view finance_v1.reports as
 SELECT id AS report_id,
    kind,
    (period_from)::timestamp with time zone AS period_from,
    (period_to)::timestamp with time zone AS period_to,
    (known_at)::timestamp with time zone AS known_at,
    verdict,
    breaks,
    ((content -> 'cut_off'::text) ->> 'chain_head'::text) AS chain_head,
    provisional,
    (content ->> 'time_zone'::text) AS time_zone
   FROM tallyhook.reports;
create view finance_v1.wallet_positions as
 WITH pending AS (
         SELECT substr(pending_effects.account_key, 8) AS key,
            substr(pending_effects.account, 8) AS addr,
            pending_effects.unposted,
            pending_effects.in_flight,
            pending_effects.unknown,
            pending_effects.open_up,
            pending_effects.open_down
           FROM tallyhook.pending_effects
          WHERE (pending_effects.account_key ~~ 'wallet:%'::text)
        ), drifting AS (
         SELECT drifts.wallet_key AS key,
            sum(drifts.amount) AS amount
           FROM tallyhook.drifts
          WHERE (drifts.closed_at IS NULL)
          GROUP BY drifts.wallet_key
        ), known AS (
         SELECT w.key,
            w.addr,
            w.status,
            (w.opened_at IS NOT NULL) AS opened,
            a.balance,
            w.observed_balance,
            w.observed_at,
            w.ledger_at_observation,
            COALESCE(d.amount, (0)::numeric) AS drift
           FROM ((tallyhook.wallets w
             LEFT JOIN drifting d ON ((d.key = w.key)))
             LEFT JOIN tallyhook.accounts a ON (((lower(a.name) = ('wallet:'::text || w.key)) AND (a.asset = 'service_token'::text))))
        UNION ALL
         SELECT lower(substr(a.name, 8)) AS lower,
            substr(a.name, 8) AS substr,
            NULL::integer AS int4,
            false,
            a.balance,
            NULL::numeric AS "numeric",
            NULL::timestamp(3) with time zone AS timestamptz,
            NULL::numeric AS "numeric",
            (0)::numeric AS "numeric"
           FROM tallyhook.accounts a
          WHERE ((a.kind = 'wallet'::text) AND (NOT (EXISTS ( SELECT
                   FROM tallyhook.wallets w
                  WHERE (w.key = lower(substr(a.name, 8)))))))
        UNION ALL
         SELECT p.key,
            p.addr,
            NULL::integer AS int4,
            false,
            NULL::numeric AS "numeric",
            NULL::numeric AS "numeric",
            NULL::timestamp(3) with time zone AS timestamptz,
            NULL::numeric AS "numeric",
            (0)::numeric AS "numeric"
           FROM pending p
          WHERE ((NOT (EXISTS ( SELECT
                   FROM tallyhook.wallets w
                  WHERE (w.key = p.key)))) AND (NOT (EXISTS ( SELECT
                   FROM tallyhook.accounts a
                  WHERE ((lower(a.name) = ('wallet:'::text || p.key)) AND (a.asset = 'service_token'::text))))))
        ), summed AS (
         SELECT k.addr,
            k.status,
            k.opened,
            COALESCE(k.balance, (0)::numeric) AS ledger_balance,
            COALESCE(p.unposted, (0)::numeric) AS unposted,
            COALESCE(p.in_flight, (0)::numeric) AS in_flight,
            COALESCE(p.unknown, (0)::numeric) AS unknown,
            COALESCE(p.open_up, (0)::numeric) AS open_up,
            COALESCE(p.open_down, (0)::numeric) AS open_down,
            k.observed_balance,
            k.observed_at,
            k.ledger_at_observation,
            k.drift
           FROM (known k
             LEFT JOIN pending p ON ((p.key = k.key)))
        )
 SELECT addr,
    status,
    opened,
    ledger_balance,
    unposted,
    in_flight,
    unknown,
    ((ledger_balance + unposted) + open_up) AS best_case,
    ((ledger_balance + unposted) + open_down) AS worst_case,
    observed_balance,
    (observed_at)::timestamp with time zone AS observed_at,
    ledger_at_observation,
    drift
   FROM summed;
create view tallyhook.age_buckets as
 SELECT bucket_order,
    bucket,
    from_age,
    to_age
   FROM ( VALUES (1,'<15 min'::text,'-100 years'::interval,'00:15:00'::interval), (2,'<2 h'::text,'00:15:00'::interval,'02:00:00'::interval), (3,'<24 h'::text,'02:00:00'::interval,'24:00:00'::interval), (4,'1–3 d'::text,'24:00:00'::interval,'72:00:00'::interval), (5,'3–30 d'::text,'72:00:00'::interval,'720:00:00'::interval), (6,'>30 d'::text,'720:00:00'::interval,'10000 years'::interval)) b(bucket_order, bucket, from_age, to_age);
create view tallyhook.bookings as
 SELECT r.id AS posting_request_id,
    split_part(r.id, ':'::text, 2) AS drift_id,
    d.reason,
    d.decided_by
   FROM (tallyhook.posting_requests r
     LEFT JOIN LATERAL ( SELECT x.reason,
            ((x.proposed_by || ', '::text) || string_agg(y.owner, ', '::text ORDER BY y.at, y.owner)) AS decided_by
           FROM (tallyhook.decisions x
             JOIN tallyhook.approvals y ON (((y.subject = x.subject) AND (y.n = x.n))))
          WHERE ((x.subject = split_part(r.id, ':'::text, 2)) AND (x.decision =
                CASE r.kind
                    WHEN 'booking'::text THEN 'book'::text
                    ELSE 'link'::text
                END))
          GROUP BY x.subject, x.n
         HAVING (count(*) >= x.approvals_needed)
          ORDER BY x.n DESC
         LIMIT 1) d ON (true))
  WHERE ((r.kind = ANY (ARRAY['booking'::text, 'reversal'::text])) AND (r.id ~~ '%:drf\_%'::text));
create view tallyhook.burned_from as
 SELECT id,
    ( SELECT b.to_addr
           FROM tallyhook.nft_movements b
          WHERE ((b.contract_id = m.contract_id) AND (b.token_id = m.token_id) AND (b.kind = ANY (ARRAY['opening'::text, 'mint'::text, 'transfer'::text])) AND (ROW(b.effective_at, b.id) < ROW(m.effective_at, m.id)) AND (NOT (EXISTS ( SELECT
                   FROM tallyhook.nft_movements r
                  WHERE (r.reverses = b.id)))))
          ORDER BY b.effective_at DESC, b.id DESC
         LIMIT 1) AS addr
   FROM tallyhook.nft_movements m
  WHERE ((kind = 'burn'::text) AND (from_addr IS NULL));
create view tallyhook.due_effects as
 SELECT e.operation_id,
    lower(e.account) AS account_key,
    e.account,
        CASE
            WHEN o.in_ledger THEN e.amount
            ELSE (- e.amount)
        END AS amount
   FROM ((( SELECT e_1.operation_id,
            e_1.line,
            e_1.account,
            e_1.amount,
            e_1.phase,
            e_1.unsettled
           FROM tallyhook.operation_effects e_1
          WHERE (e_1.unsettled AND (e_1.phase = ANY (ARRAY['executed'::text, 'taken_back'::text])))
        UNION ALL
         SELECT e_1.operation_id,
            e_1.line,
            e_1.account,
            e_1.amount,
            e_1.phase,
            e_1.unsettled
           FROM (tallyhook.due_postings q
             JOIN tallyhook.operation_effects e_1 ON ((e_1.operation_id = q.operation_id)))
          WHERE ((q.quarantined_at IS NOT NULL) AND (e_1.phase = ANY (ARRAY['settled'::text, 'not_executed'::text])))) e
     JOIN tallyhook.due_postings d ON ((d.operation_id = e.operation_id)))
     JOIN tallyhook.operations o ON ((o.id = e.operation_id)))
  WHERE (o.in_ledger <> COALESCE(( SELECT ((max(t.posting) % 2) = 1)
           FROM tallyhook.transactions t
          WHERE (t.operation_id = e.operation_id)), false));
create view tallyhook.known_balances as
 SELECT lower(account) AS account_key,
    effective_at AS known_from,
    posted_at
   FROM tallyhook.posting_requests
  WHERE ((kind = 'opening'::text) AND (posted_at IS NOT NULL));
create view tallyhook.mapped_operators as
 SELECT (substr(w.account, 10))::numeric AS operator_no,
    w.addr
   FROM (tallyhook.operator_wallets w
     JOIN tallyhook.decisions d ON (((d.subject = w.account) AND (d.n = w.n))))
  WHERE ((w.rejected_at IS NULL) AND (d.approvals_needed <= ( SELECT count(*) AS count
           FROM tallyhook.approvals a
          WHERE ((a.subject = d.subject) AND (a.n = d.n)))));
create view tallyhook.pending_effects as
 SELECT account_key,
    min(account) AS account,
    sum(unposted) AS unposted,
    sum(in_flight) AS in_flight,
    sum(unknown) AS unknown,
    sum(open_up) AS open_up,
    sum(open_down) AS open_down
   FROM ( SELECT lower(e.account) AS account_key,
            e.account,
            (0)::numeric AS unposted,
                CASE o.state
                    WHEN 'sending'::text THEN e.amount
                    ELSE (0)::numeric
                END AS in_flight,
                CASE o.state
                    WHEN 'sending'::text THEN (0)::numeric
                    ELSE e.amount
                END AS unknown,
            GREATEST(e.amount, (0)::numeric) AS open_up,
            LEAST(e.amount, (0)::numeric) AS open_down
           FROM (tallyhook.operation_effects e
             JOIN tallyhook.operations o ON ((o.id = e.operation_id)))
          WHERE (e.unsettled AND (e.phase = ANY (ARRAY['open'::text, 'undecided'::text])))
        UNION ALL
         SELECT d.account_key,
            d.account,
            d.amount,
            0,
            0,
            0,
            0
           FROM tallyhook.due_effects d
        UNION ALL
         SELECT lower(r.account) AS lower,
            r.account,
            r.amount,
            0,
            0,
            0,
            0
           FROM tallyhook.posting_requests r
          WHERE ((r.posted_at IS NULL) AND (r.problem IS NULL))) p
  GROUP BY account_key;
create view tallyhook.present as
 SELECT (now() + (('00:00:00.001'::interval * correction_ms) *
        CASE
            WHEN (now() >= ends_at) THEN (0)::double precision
            WHEN (now() <= set_at) THEN (1)::double precision
            ELSE ((EXTRACT(epoch FROM (ends_at - now())))::double precision / (EXTRACT(epoch FROM (ends_at - set_at)))::double precision)
        END)) AS now
   FROM tallyhook.clock;

-- functions

CREATE OR REPLACE FUNCTION finance_v1.balances_as_of(as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, known_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(account text, asset text, balance numeric) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body c9603bc72a1dde9a7a8ac5159f1cbe41
CREATE OR REPLACE FUNCTION finance_v1.day_begin(day date, time_zone text DEFAULT NULL::text) RETURNS timestamp with time zone LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body ddcfbb4192e1ec35686174451a6e7554
CREATE OR REPLACE FUNCTION finance_v1.day_of(at timestamp with time zone, time_zone text DEFAULT NULL::text) RETURNS date LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 78b91216d46558b900cd62f362369195
CREATE OR REPLACE FUNCTION finance_v1.movements_daily("from" date, "to" date, time_zone text DEFAULT NULL::text) RETURNS TABLE(day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body b35d2f35955b6f9de3893f4be69a00b7
CREATE OR REPLACE FUNCTION finance_v1.movements_daily("from" text DEFAULT NULL::text, "to" text DEFAULT NULL::text, time_zone text DEFAULT NULL::text) RETURNS TABLE(day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 99ced2e8e7359bdd827c4b5e1c0609e7
CREATE OR REPLACE FUNCTION finance_v1.movements_daily("from" timestamp with time zone, "to" timestamp with time zone, time_zone text DEFAULT NULL::text) RETURNS TABLE(day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 687a4f1266e8c885e38284e959eddb08
CREATE OR REPLACE FUNCTION finance_v1.nft_holdings_as_of(as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, known_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(contract_id numeric, token_id numeric, owner text, since timestamp with time zone) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 10a8e34fca1f6e8b29ed6def55a23e4b
CREATE OR REPLACE FUNCTION finance_v1.nft_supply(as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, known_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(contract_id numeric, opening bigint, minted bigint, minted_unexplained bigint, burned bigint, burned_unexplained bigint, held bigint, balanced boolean) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body eab941e36b4790ed64a113e09fb1a8af
CREATE OR REPLACE FUNCTION finance_v1.trial_balance(as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, known_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(account text, asset text, debit numeric, credit numeric) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 972eeef230ebd74545e168dc2fc07ded
CREATE OR REPLACE FUNCTION finance_v1.wallet_statement(addr text, "from" timestamp with time zone, "to" timestamp with time zone) RETURNS TABLE(seq bigint, effective_at timestamp with time zone, kind text, reason_type text, reference text, operation_id text, tx_log_no numeric, counterparty text, amount numeric, fee numeric, balance_after numeric) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 1b30a5996549792e0a41953024f7f3b2
CREATE OR REPLACE FUNCTION tallyhook.approvals_to_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC'; -- body 379b7e24969e92c9cf34eae71523d844
CREATE OR REPLACE FUNCTION tallyhook.body_of(e tallyhook.events, names text[]) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE; -- body 68390f517a0f3f33fb686bf92dc8cda9
CREATE OR REPLACE FUNCTION tallyhook.chain_batch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 86feb2213368247829b9b6ebe6c50eab
CREATE OR REPLACE FUNCTION tallyhook.changed_at(o tallyhook.operations) RETURNS timestamp with time zone LANGUAGE sql IMMUTABLE PARALLEL SAFE; -- body 4345c9478ad7d09c4b11abca1ab8b251
CREATE OR REPLACE FUNCTION tallyhook.check_accounts() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan TO 'off'; -- body fba9368721b8f9edf8f7b776dae42177
CREATE OR REPLACE FUNCTION tallyhook.check_batches() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan TO 'off'; -- body 36febf672a54c1b0b5734cc7c196a301
CREATE OR REPLACE FUNCTION tallyhook.check_drift() RETURNS trigger LANGUAGE plpgsql; -- body 390aa80b02fc53254c8f136e5be7347f
CREATE OR REPLACE FUNCTION tallyhook.check_entries() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan TO 'off'; -- body d472f43b5383e63c6892b3107ee561fb
CREATE OR REPLACE FUNCTION tallyhook.check_movements() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan TO 'off'; -- body cf11ef7aa51d961b0b7e6916e78532d7
CREATE OR REPLACE FUNCTION tallyhook.check_period() RETURNS trigger LANGUAGE plpgsql; -- body ec5319d776e36b0b3128a36dee76c7d9
CREATE OR REPLACE FUNCTION tallyhook.check_period_action() RETURNS trigger LANGUAGE plpgsql; -- body dacd429ac0c0cd2d0655413fa87ee67d
CREATE OR REPLACE FUNCTION tallyhook.check_transactions() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan TO 'off'; -- body e0ad4cd93967d33e7b8a8ca81af43a9c
CREATE OR REPLACE FUNCTION tallyhook.claim_deliveries(quotas jsonb, served uuid[], after uuid, page_max integer, at timestamp with time zone, lease timestamp with time zone, ordered_max integer, deferred_until timestamp with time zone) RETURNS TABLE(endpoints text, deliveries text, bodies text, deferred integer, active text, next text, resting integer, resumes_at double precision) LANGUAGE sql; -- body 68c97e2074eeefc4114a54696858cd96
CREATE OR REPLACE FUNCTION tallyhook.claim_deliveries(quotas jsonb, served uuid[], after uuid, page_max integer, at timestamp with time zone, lease timestamp with time zone, ordered_max integer, deferred_until timestamp with time zone, plain boolean) RETURNS TABLE(endpoints text, deliveries text, bodies text, deferred integer, active text, next text, resting integer, resumes_at double precision) LANGUAGE plpgsql SET search_path TO 'pg_catalog', 'pg_temp' SET enable_seqscan TO 'off' SET enable_bitmapscan TO 'off' SET enable_hashjoin TO 'off' SET enable_mergejoin TO 'off' SET enable_sort TO 'off' SET plan_cache_mode TO 'force_generic_plan'; -- body db211b8b81d1ad4fbe9897dce9a64290
CREATE OR REPLACE FUNCTION tallyhook.compare(v jsonb, plain jsonb) RETURNS integer LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT; -- body 432cde8c8b0747111a638820b996803e
CREATE OR REPLACE FUNCTION tallyhook.database_identity(OUT system text, OUT oid text, OUT timeline text, OUT "table" text) RETURNS record LANGUAGE plpgsql STABLE SET search_path TO 'pg_catalog', 'pg_temp'; -- body 386dfe3a51cb7038b11aa59bb7af9785
CREATE OR REPLACE FUNCTION tallyhook.day_begin(day date, time_zone text) RETURNS timestamp with time zone LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT; -- body 110ecc8cc5a3facb798706a8f904b02d
CREATE OR REPLACE FUNCTION tallyhook.day_of(at timestamp with time zone, time_zone text) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE; -- body 312cbe1f03ee564fcc5fad167737d1c8
CREATE OR REPLACE FUNCTION tallyhook.decimal_of(v jsonb) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT; -- body 0db69bd961a94dc40546c528534cf039
CREATE OR REPLACE FUNCTION tallyhook.decisions_to_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC'; -- body c0beef6cd08719f47a967ace54ab6a68
CREATE OR REPLACE FUNCTION tallyhook.delivery_id(event uuid, endpoint text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE; -- body 1b5266eaf16cfb681bfb1b44af9fd737
CREATE OR REPLACE FUNCTION tallyhook.document_of(e tallyhook.events, shapes jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE; -- body 0b0690f55bd4b53f5ea2e60fc0899257
CREATE OR REPLACE FUNCTION tallyhook.document_of(body text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE; -- body 65b04c33d7c05b967a78e295f6dfefa6
CREATE OR REPLACE FUNCTION tallyhook.drift_actions_to_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC'; -- body f9f2f8959534ad4a8a1117e957bca163
CREATE OR REPLACE FUNCTION tallyhook.drifts_to_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC'; -- body 487a2b1b9824fd17c3547e2c9494958d
CREATE OR REPLACE FUNCTION tallyhook.drop_partition(of_table text, ended_before date) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 11500138f5cfda8750c900d5ba9709d0
CREATE OR REPLACE FUNCTION tallyhook.emit_events(at timestamp with time zone, drafts jsonb, shapes jsonb) RETURNS TABLE(event uuid, number bigint, made integer) LANGUAGE plpgsql SET search_path TO 'pg_catalog', 'pg_temp' SET plan_cache_mode TO 'force_generic_plan'; -- body ff8067629474bd62f30e8ab1abe2f3a1
CREATE OR REPLACE FUNCTION tallyhook.epoch_ms(at timestamp with time zone) RETURNS double precision LANGUAGE sql STABLE PARALLEL SAFE; -- body d2d90587303118ee24fde3ad50f2248f
CREATE OR REPLACE FUNCTION tallyhook.event_body(e tallyhook.events) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE; -- body c453fe39041d9e4638ebcc12c19055dc
CREATE OR REPLACE FUNCTION tallyhook.expected_balance(account text, includes_before timestamp with time zone, ended_at timestamp with time zone, opens_at timestamp with time zone) RETURNS TABLE(ledger numeric, version bigint, unposted numeric, late numeric, possible integer, up numeric, down numeric, waiting integer, unsure integer, backdated integer, open_since timestamp with time zone, executed_until timestamp with time zone, candidates jsonb) LANGUAGE sql STABLE; -- body 12c33d89dbf402ab2e44ca17013bda92
CREATE OR REPLACE FUNCTION tallyhook.extend_chain(of_batch bigint, evidence bytea) RETURNS void LANGUAGE plpgsql SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC' SET enable_seqscan TO 'off'; -- body 1bf7ddee391621d233eb1dc6cf578b51
CREATE OR REPLACE FUNCTION tallyhook.is_listed(v jsonb, plains jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT; -- body 922682589ff4caa139158c177f12be4d
CREATE OR REPLACE FUNCTION tallyhook.is_open(kind text, state text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE; -- body 2cd2a93fa04fa7153944001756bda32f
CREATE OR REPLACE FUNCTION tallyhook.is_proved(by_daemon text, at timestamp with time zone, last_operation text, last_send integer) RETURNS boolean LANGUAGE plpgsql STABLE; -- body ba4c300df6f3e96259f2bf58c3f150bf
CREATE OR REPLACE FUNCTION tallyhook.is_subscribed(p tallyhook.endpoints, type text, subject text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE; -- body a310219b7bb1f5ed637136c74f8ce356
CREATE OR REPLACE FUNCTION tallyhook.lock_periods() RETURNS void LANGUAGE sql SET search_path TO 'pg_catalog', 'pg_temp'; -- body 6ed021f336a1ea7e4d74dc1837b93d36
CREATE OR REPLACE FUNCTION tallyhook.make_partition(first_month date, months integer) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 28edbd98eb65ed6ac906578eec206e47
CREATE OR REPLACE FUNCTION tallyhook.matches_filter(body jsonb, filter jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT; -- body ccd9c8f5d2b295ed63f31b773f90a0af
CREATE OR REPLACE FUNCTION tallyhook.meets_condition(present jsonb[], condition jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT; -- body 8a53fecec0e9615fcecb735579df1d0b
CREATE OR REPLACE FUNCTION tallyhook.moment(text text, time_zone text) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE STRICT SET "TimeZone" TO 'UTC'; -- body 40ff8e71e432a1c39d0cd1c3c751477d
CREATE OR REPLACE FUNCTION tallyhook.move_operations(moves jsonb, locks text[], at timestamp with time zone, drafts jsonb, shapes jsonb) RETURNS TABLE(moved tallyhook.operations, from_state text, quarantine_reason text, deliveries integer) LANGUAGE plpgsql SET search_path TO 'pg_catalog', 'pg_temp' SET enable_seqscan TO 'off' SET plan_cache_mode TO 'force_generic_plan'; -- body 7d4e2939975be61d500cb32e923b5a16
CREATE OR REPLACE FUNCTION tallyhook.movements("from" timestamp with time zone, "to" timestamp with time zone) RETURNS TABLE(effective_at timestamp with time zone, kind text, reason_type text, operations integer, amount numeric, fees numeric) LANGUAGE sql STABLE; -- body 283cc46ae979508ee00b646a8ef9005a
CREATE OR REPLACE FUNCTION tallyhook.movements_daily("from" timestamp with time zone, "to" timestamp with time zone, time_zone text) RETURNS TABLE(day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric) LANGUAGE sql STABLE; -- body 30a5f183c31870e8112d3d83123157f0
CREATE OR REPLACE FUNCTION tallyhook.number_events(emits integer, waits boolean) RETURNS integer LANGUAGE plpgsql SET search_path TO 'pg_catalog', 'pg_temp' SET enable_seqscan TO 'off' SET enable_hashjoin TO 'off' SET enable_mergejoin TO 'off' SET plan_cache_mode TO 'force_generic_plan'; -- body ff9bc04e6a3ff754093e41d5d4b32d65
CREATE OR REPLACE FUNCTION tallyhook.owner_key(owner text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT SET search_path TO 'pg_catalog', 'pg_temp'; -- body 48ea73dea731c929830943049883eefb
CREATE OR REPLACE FUNCTION tallyhook.passes_filter(e tallyhook.events, filter jsonb) RETURNS boolean LANGUAGE sql STABLE; -- body 93c87a47a2319adfef15924cae4546d6
CREATE OR REPLACE FUNCTION tallyhook.patterns_of(type text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE; -- body e9c0e6c81786c8ebca724f6b0d5bf6d1
CREATE OR REPLACE FUNCTION tallyhook.period_actions_to_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC'; -- body ad9f9b63117c2e3158af1c2159d0f46e
CREATE OR REPLACE FUNCTION tallyhook.periods_to_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC'; -- body f17a072b531ba6ef642baa1dbe615b8c
CREATE OR REPLACE FUNCTION tallyhook.prune_audit(older_than timestamp with time zone) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp'; -- body 852c09dc7065253df21f23db92e56172
CREATE OR REPLACE FUNCTION tallyhook.quarantine_releases_to_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC'; -- body 2ea1d3d0d84e4ac108e21fb52e1113dc
CREATE OR REPLACE FUNCTION tallyhook.record_intents(intents jsonb, names text[], at timestamp with time zone, by_daemon text, last_operation text, last_send integer, queue_max integer) RETURNS TABLE(n integer, result text, open jsonb) LANGUAGE plpgsql SET search_path TO 'pg_catalog', 'pg_temp' SET enable_seqscan TO 'off' SET plan_cache_mode TO 'force_generic_plan'; -- body 76dc8da62310ba45276bdddd52ed6c61
CREATE OR REPLACE FUNCTION tallyhook.refuse_change() RETURNS trigger LANGUAGE plpgsql; -- body ddbb3f54fb0519157732cf42dac0491c
CREATE OR REPLACE FUNCTION tallyhook.remove_bodies(ids uuid[], recorded timestamp with time zone[], at timestamp with time zone) RETURNS TABLE(event uuid, event_at timestamp with time zone) LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET enable_seqscan TO 'off' SET enable_bitmapscan TO 'off' SET enable_hashjoin TO 'off' SET enable_mergejoin TO 'off'; -- body a0e76968517a9827d05b50410b4a2360
CREATE OR REPLACE FUNCTION tallyhook.standing_movements(as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, known_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS SETOF tallyhook.nft_movements LANGUAGE sql STABLE; -- body b98476c04f9e19cc0b9cbe11bc2eeefa
CREATE OR REPLACE FUNCTION tallyhook.storage_of_partition(of_table text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path TO 'pg_catalog', 'pg_temp'; -- body ebb4b3d7b10d49a68029664e5fdd5d96
CREATE OR REPLACE FUNCTION tallyhook.store_results(ended jsonb, retried jsonb, logged jsonb, at timestamp with time zone) RETURNS SETOF uuid LANGUAGE plpgsql SET search_path TO 'pg_catalog', 'pg_temp' SET enable_seqscan TO 'off' SET enable_bitmapscan TO 'off' SET enable_hashjoin TO 'off' SET enable_mergejoin TO 'off' SET enable_sort TO 'off' SET plan_cache_mode TO 'force_generic_plan'; -- body a7d39da66bd7229688db225ba0b54b54
CREATE OR REPLACE FUNCTION tallyhook.take_evidence(of_batch bigint) RETURNS bytea LANGUAGE plpgsql SET search_path TO 'pg_catalog', 'pg_temp' SET enable_seqscan TO 'off'; -- body aafa40b72225b175f6071fd0018b92b7
CREATE OR REPLACE FUNCTION tallyhook.transitions_to_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "TimeZone" TO 'UTC'; -- body 9b8c78667c6e7717c2f531c318a3d703
CREATE OR REPLACE FUNCTION tallyhook.usage(o tallyhook.operations) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE; -- body d7eba69a4bd8f1b798b7edf6418bd712
CREATE OR REPLACE FUNCTION tallyhook.usage_hour(o tallyhook.operations) RETURNS timestamp with time zone LANGUAGE sql STABLE PARALLEL SAFE; -- body 192d677bfac3f768c1631a07b0a3d71e
CREATE OR REPLACE FUNCTION tallyhook.values_at(document jsonb, path text[]) RETURNS jsonb[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE; -- body 4f3f0a43e0259f9a39bc8020f03f9099
CREATE OR REPLACE FUNCTION tallyhook.zone_or_default(time_zone text) RETURNS text LANGUAGE sql STABLE; -- body 28295351ad0fe9bccc262c0a01c5e4be

-- triggers

CREATE TRIGGER accounts_identity BEFORE UPDATE OF id, name, kind, asset, opened_at ON tallyhook.accounts FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER accounts_kept BEFORE DELETE OR TRUNCATE ON tallyhook.accounts FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER accounts_opened_true AFTER INSERT ON tallyhook.accounts REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.check_accounts(); -- always
CREATE TRIGGER accounts_updated_true AFTER UPDATE ON tallyhook.accounts REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.check_accounts(); -- always
CREATE TRIGGER approvals_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.approvals FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER approvals_to_chain AFTER INSERT ON tallyhook.approvals REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.approvals_to_chain(); -- always
CREATE TRIGGER batches_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.batches FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE CONSTRAINT TRIGGER batches_chained AFTER INSERT ON tallyhook.batches DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tallyhook.chain_batch(); -- always
CREATE TRIGGER batches_continue AFTER INSERT ON tallyhook.batches REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.check_batches(); -- always
CREATE TRIGGER chain_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.chain FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER chained_rows_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.chained_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER day_balances_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.day_balances FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER day_ends_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.day_ends FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER decisions_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.decisions FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER decisions_to_chain AFTER INSERT ON tallyhook.decisions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.decisions_to_chain(); -- always
CREATE TRIGGER drift_actions_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.drift_actions FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER drift_actions_to_chain AFTER INSERT ON tallyhook.drift_actions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.drift_actions_to_chain(); -- always
CREATE TRIGGER drifts_identity BEFORE UPDATE OF id, wallet_key, addr, suspected_at, opened_at, window_from, window_to, evidence ON tallyhook.drifts FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER drifts_in_order BEFORE INSERT OR UPDATE ON tallyhook.drifts FOR EACH ROW EXECUTE FUNCTION tallyhook.check_drift(); -- always
CREATE TRIGGER drifts_kept BEFORE DELETE OR TRUNCATE ON tallyhook.drifts FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER drifts_to_chain AFTER INSERT ON tallyhook.drifts REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.drifts_to_chain(); -- always
CREATE TRIGGER entries_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.entries FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER entries_balance AFTER INSERT ON tallyhook.entries REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.check_entries(); -- always
CREATE TRIGGER freezes_kept BEFORE DELETE OR TRUNCATE ON tallyhook.freezes FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER nft_movements_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.nft_movements FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER nft_movements_in_batch AFTER INSERT ON tallyhook.nft_movements REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.check_movements(); -- always
CREATE TRIGGER operations_kept BEFORE DELETE OR TRUNCATE ON tallyhook.operations FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER period_actions_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.period_actions FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER period_actions_in_order BEFORE INSERT ON tallyhook.period_actions FOR EACH ROW EXECUTE FUNCTION tallyhook.check_period_action(); -- always
CREATE TRIGGER period_actions_to_chain AFTER INSERT ON tallyhook.period_actions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.period_actions_to_chain(); -- always
CREATE TRIGGER periods_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.periods FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER periods_consecutive BEFORE INSERT ON tallyhook.periods FOR EACH ROW EXECUTE FUNCTION tallyhook.check_period(); -- always
CREATE TRIGGER periods_to_chain AFTER INSERT ON tallyhook.periods REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.periods_to_chain(); -- always
CREATE TRIGGER posting_requests_identity BEFORE UPDATE OF id, kind, account, counter, amount, effective_at, effective_basis, requested_by, reason, reverses, seen_at, seen_version, requested_at ON tallyhook.posting_requests FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER posting_requests_kept BEFORE DELETE OR TRUNCATE ON tallyhook.posting_requests FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER quarantine_releases_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.quarantine_releases FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER quarantine_releases_to_chain AFTER INSERT ON tallyhook.quarantine_releases REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.quarantine_releases_to_chain(); -- always
CREATE TRIGGER reports_kept BEFORE DELETE OR TRUNCATE ON tallyhook.reports FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER transactions_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.transactions FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER transactions_have_entries AFTER INSERT ON tallyhook.transactions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.check_transactions(); -- always
CREATE TRIGGER transitions_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON tallyhook.transitions FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always
CREATE TRIGGER transitions_to_chain AFTER INSERT ON tallyhook.transitions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.transitions_to_chain(); -- always
CREATE TRIGGER used_since_backup_kept BEFORE DELETE OR TRUNCATE ON tallyhook.used_since_backup FOR EACH STATEMENT EXECUTE FUNCTION tallyhook.refuse_change(); -- always

-- comments

comment on column finance_v1.accounts.account is 'Name: wallet:<address>, operator:<number>, fees, collection, opening (balances before the first known entry) or external (suspense: unexplained differences).';
comment on column finance_v1.accounts.addr is 'Address of a wallet account.';
comment on column finance_v1.accounts.asset is 'Always service_token.';
comment on column finance_v1.accounts.kind is 'wallet, operator, fees, collection, opening or external.';
comment on column finance_v1.accounts.opened_at is 'When the account was opened.';
comment on column finance_v1.accounts.operator_no is 'Operator that pays from it; of several with one wallet the lowest number. See operators.';
comment on column finance_v1.balances.account is 'Name: wallet:<address>, operator:<number>, fees, collection, opening (balances before the first known entry) or external (suspense: unexplained differences).';
comment on column finance_v1.balances.asset is 'Always service_token.';
comment on column finance_v1.balances.balance is 'Sum of all its entries, in service tokens.';
comment on column finance_v1.balances.last_seq is 'Its last entry in journal; empty before the first.';
comment on column finance_v1.coverage.checked is 'Wallets whose newest observation was conclusive and recent enough.';
comment on column finance_v1.coverage.in_scope is 'Wallets that are observed or have an account in the ledger.';
comment on column finance_v1.coverage.oldest_check_at is 'Start of the oldest of the newest processed observations.';
comment on column finance_v1.coverage.stale is 'Wallets whose newest processed observation is too old, or that were never observed.';
comment on column finance_v1.decisions.approvals_needed is 'How many other owners must approve it: 1, or 2 above `decisions.second_approver_above`.';
comment on column finance_v1.decisions.approved_by is 'Owners of the keys that approved it, never its proposer; null until it has all approvals.';
comment on column finance_v1.decisions.at is 'When it was approved; empty until then.';
comment on column finance_v1.decisions.decision is 'executed or not_executed; for a drift book, link or dismiss; for a period close or reopen; for an operator the address of its wallet.';
comment on column finance_v1.decisions.n is 'Number of the proposal about its subject, from 1; the newest counts.';
comment on column finance_v1.decisions.operation_id is 'The operation that a drift is linked to.';
comment on column finance_v1.decisions.proposed_at is 'When it was proposed.';
comment on column finance_v1.decisions.proposed_by is 'Owner of the key that proposed it.';
comment on column finance_v1.decisions.reason is 'Why, as the proposer wrote it.';
comment on column finance_v1.decisions.subject is 'Our id of the operation, drift or period, or the account of the operator.';
comment on column finance_v1.drift_history.action is 'opened, revised (its bounds are known better), paired (with its counterpart), recognised (as gives of an operator), assigned, proposed, approved, or the state in which it ended.';
comment on column finance_v1.drift_history.at is 'When it happened.';
comment on column finance_v1.drift_history.by is 'Owner of the key, or reconciler.';
comment on column finance_v1.drift_history.detail is 'What was changed, with the evidence; JSON.';
comment on column finance_v1.drift_history.drift_id is 'Our id of the drift.';
comment on column finance_v1.drifts.addr is 'Wallet whose observed balance differs from the expected one.';
comment on column finance_v1.drifts.age is 'Time since the first observation of it, until it closed or until now.';
comment on column finance_v1.drifts.amount is 'Observed minus expected balance, in service tokens; positive if the wallet holds more than is explained, null until it is exact.';
comment on column finance_v1.drifts.amount_max is 'The greatest amount that the observations allow, in service tokens.';
comment on column finance_v1.drifts.amount_min is 'The least amount that the observations allow, in service tokens; equal to amount once that is exact.';
comment on column finance_v1.drifts.approved_by is 'Owners of the keys that approved the newest proposal; empty until it is approved.';
comment on column finance_v1.drifts.assignee is 'Who works on it.';
comment on column finance_v1.drifts.bucket is 'Age group: <15 min, <2 h, <24 h, 1–3 d, 3–30 d or >30 d.';
comment on column finance_v1.drifts.bucket_order is 'Number of the age group, to sort by; 1 is the youngest.';
comment on column finance_v1.drifts.cause is 'Probable cause: made_elsewhere, fee_rule, lost_operation, opening or operator_wallet.';
comment on column finance_v1.drifts.closed_at is 'When it was closed; null while it is open.';
comment on column finance_v1.drifts.closed_by is 'The observation or the decision that closed it.';
comment on column finance_v1.drifts.counterpart is 'The other drift of one transfer made elsewhere between two wallets; both are ended together.';
comment on column finance_v1.drifts.drift_id is 'Our id of the drift.';
comment on column finance_v1.drifts.gives is 'With the cause operator_wallet: the ids of its gives that sum to the drift; JSON.';
comment on column finance_v1.drifts.opened_at is 'When a second observation confirmed it.';
comment on column finance_v1.drifts.operator_no is 'With the cause operator_wallet: the operator that seems to pay from the wallet.';
comment on column finance_v1.drifts.proposal is 'The newest proposal to end it; JSON.';
comment on column finance_v1.drifts.proposed_by is 'Owner of the key that made the newest proposal.';
comment on column finance_v1.drifts.state is 'open, proposed, booked, linked, dismissed, returned, explained or merged.';
comment on column finance_v1.drifts_ageing.addr is 'Wallet whose observed balance differs from the expected one.';
comment on column finance_v1.drifts_ageing.age is 'Time since the first observation of it, until it closed or until now.';
comment on column finance_v1.drifts_ageing.amount is 'Observed minus expected balance, in service tokens; positive if the wallet holds more than is explained, null until it is exact.';
comment on column finance_v1.drifts_ageing.amount_max is 'The greatest amount that the observations allow, in service tokens.';
comment on column finance_v1.drifts_ageing.amount_min is 'The least amount that the observations allow, in service tokens; equal to amount once that is exact.';
comment on column finance_v1.drifts_ageing.approved_by is 'Owners of the keys that approved the newest proposal; empty until it is approved.';
comment on column finance_v1.drifts_ageing.assignee is 'Who works on it.';
comment on column finance_v1.drifts_ageing.bucket is 'Age group: <15 min, <2 h, <24 h, 1–3 d, 3–30 d or >30 d.';
comment on column finance_v1.drifts_ageing.bucket_order is 'Number of the age group, to sort by; 1 is the youngest.';
comment on column finance_v1.drifts_ageing.cause is 'Probable cause: made_elsewhere, fee_rule, lost_operation, opening or operator_wallet.';
comment on column finance_v1.drifts_ageing.closed_at is 'When it was closed; null while it is open.';
comment on column finance_v1.drifts_ageing.closed_by is 'The observation or the decision that closed it.';
comment on column finance_v1.drifts_ageing.counterpart is 'The other drift of one transfer made elsewhere between two wallets; both are ended together.';
comment on column finance_v1.drifts_ageing.drift_id is 'Our id of the drift.';
comment on column finance_v1.drifts_ageing.gives is 'With the cause operator_wallet: the ids of its gives that sum to the drift; JSON.';
comment on column finance_v1.drifts_ageing.opened_at is 'When a second observation confirmed it.';
comment on column finance_v1.drifts_ageing.operator_no is 'With the cause operator_wallet: the operator that seems to pay from the wallet.';
comment on column finance_v1.drifts_ageing.proposal is 'The newest proposal to end it; JSON.';
comment on column finance_v1.drifts_ageing.proposed_by is 'Owner of the key that made the newest proposal.';
comment on column finance_v1.drifts_ageing.state is 'open, proposed, booked, linked, dismissed, returned, explained or merged.';
comment on column finance_v1.in_doubt.amount is 'Requested amount, in service tokens.';
comment on column finance_v1.in_doubt.cause is 'How its answer was lost.';
comment on column finance_v1.in_doubt.evidence is 'Of an unknown write the finding that a later observation has to confirm, empty without one; of an undecided one why the observations do not decide it; JSON.';
comment on column finance_v1.in_doubt.kind is 'give, receive_from, transfer, mint, mint_sequential, burn, set_extra_data, transfer_from or other.';
comment on column finance_v1.in_doubt.operation_id is 'Our id of the write; its parties and numbers are in operations.';
comment on column finance_v1.in_doubt.owner is 'Owner of the key that asked for the write: whose it is.';
comment on column finance_v1.in_doubt.proposal is 'The outcome that a person has proposed and that waits for approval: executed or not_executed.';
comment on column finance_v1.in_doubt.proposed_by is 'Owner of the key that proposed it; another owner approves.';
comment on column finance_v1.in_doubt.since is 'When its answer was lost.';
comment on column finance_v1.in_doubt.state is 'unknown, while observations may still show the outcome, or undecided, when it waits for a decision of people.';
comment on column finance_v1.journal.account is 'The account that changes.';
comment on column finance_v1.journal.amount is 'Change of the account, in service tokens; positive increases it.';
comment on column finance_v1.journal.asset is 'Always service_token.';
comment on column finance_v1.journal.balance_after is 'Balance of the account after this entry, in the order of recording, in service tokens.';
comment on column finance_v1.journal.decided_by is 'Who decided it: the owner that proposed it, then those that approved it.';
comment on column finance_v1.journal.drift_id is 'The drift that it books, or whose booking it reverses; null for any other.';
comment on column finance_v1.journal.effective_at is 'When it took effect, as far as known.';
comment on column finance_v1.journal.effective_basis is 'How that is known: answer, observed, recorded, reported or decision (of people).';
comment on column finance_v1.journal.kind is 'give, receive_from, transfer, opening, booking or reversal.';
comment on column finance_v1.journal.operation_id is 'The write that it posts; null for openings and bookings.';
comment on column finance_v1.journal.reason is 'Why people decided that, as the proposer wrote it.';
comment on column finance_v1.journal.reason_type is 'Reason as sent with the write; null for postings that are not of a write.';
comment on column finance_v1.journal.recorded_at is 'When it was recorded.';
comment on column finance_v1.journal.reference is 'Reference that the app gave to the write.';
comment on column finance_v1.journal.requested_by is 'Owner of the key, or the part of Tallyhook that requested the posting.';
comment on column finance_v1.journal.reverses is 'The transaction that this one reverses.';
comment on column finance_v1.journal.seq is 'Number of the entry: transaction_id times 1000 plus its line. Rises in the order of recording; has gaps.';
comment on column finance_v1.journal.transaction_id is 'The transaction; numbered from 1 without gaps.';
comment on column finance_v1.journal.tx_app_no is 'App number of the service.';
comment on column finance_v1.journal.tx_log_no is 'Transaction number of the service, also when it became known after the posting; null while unknown.';
comment on column finance_v1.nft_holdings.contract_id is 'NFT contract.';
comment on column finance_v1.nft_holdings.locked is 'True while a market has locked it.';
comment on column finance_v1.nft_holdings.owner is 'Wallet that owns it.';
comment on column finance_v1.nft_holdings.status is 'Status that the service showed: 0 pending, 1 complete, 2 in progress, 3 failed.';
comment on column finance_v1.nft_holdings.token_id is 'NFT token.';
comment on column finance_v1.nft_movements.contract_id is 'NFT contract.';
comment on column finance_v1.nft_movements.effective_at is 'When it took effect, as far as known; of what was made elsewhere the start of the observation that first showed it.';
comment on column finance_v1.nft_movements.effective_basis is 'What the time rests on: as of a transaction; observed of what observations showed; operation of what a write shows of the owner before it.';
comment on column finance_v1.nft_movements.from_addr is 'Owner before; of a burn the one that the movements before it say.';
comment on column finance_v1.nft_movements.kind is 'An opening is of a token that existed when it became known: opening, mint, transfer, burn, data_change or reversal.';
comment on column finance_v1.nft_movements.not_before is 'Of what an observation showed: the start of the observation before, which did not show it; null at the first observation.';
comment on column finance_v1.nft_movements.operation_id is 'Our id of the write; null for an opening, for what was made elsewhere, and for their reversals.';
comment on column finance_v1.nft_movements.recorded_at is 'When it was recorded.';
comment on column finance_v1.nft_movements.reverses is 'Of a reversal the seq of the movement that it takes back.';
comment on column finance_v1.nft_movements.seq is 'Number of the movement, rising in the order of recording, with gaps.';
comment on column finance_v1.nft_movements.standing is 'False for a movement that was reversed, and for a reversal.';
comment on column finance_v1.nft_movements.to_addr is 'Owner after.';
comment on column finance_v1.nft_movements.token_id is 'NFT token.';
comment on column finance_v1.nft_movements.tx_hash is 'Chain transaction, also when it became known after the posting; of what was made elsewhere the last one that the token showed.';
comment on column finance_v1.nft_movements.unexplained is 'True for a mint, transfer or burn that no operation explains: it was made elsewhere, and nobody has reported it.';
comment on column finance_v1.operations.amount is 'Requested amount, in service tokens.';
comment on column finance_v1.operations.answered_at is 'When the service answered; null when it did not or its answer was lost.';
comment on column finance_v1.operations.contract_id is 'NFT contract.';
comment on column finance_v1.operations.effective_at is 'When it took effect, as far as known; its entries in the ledger have that time, also if the service answers later.';
comment on column finance_v1.operations.fee_amount is 'Requested fee, in service tokens.';
comment on column finance_v1.operations.from_addr is 'Wallet that pays, or the owner before.';
comment on column finance_v1.operations.kind is 'give, receive_from, transfer, mint, mint_sequential, burn, set_extra_data, transfer_from or other.';
comment on column finance_v1.operations.operation_id is 'Our id of the write.';
comment on column finance_v1.operations.operation_no is 'Operator wallet that pays a give.';
comment on column finance_v1.operations.outcome is 'What its state means for the ledger: executed, not_executed or open.';
comment on column finance_v1.operations.reason_type is 'Reason as sent with the write.';
comment on column finance_v1.operations.reference is 'Reference that the app gave to the write.';
comment on column finance_v1.operations.sent_at is 'When it was sent.';
comment on column finance_v1.operations.settled_at is 'When a balance or the chain confirmed it.';
comment on column finance_v1.operations.state is 'State of the write: undecided, unknown, queued, sending, accepted, executed, settled, not_executed, rejected, failed or cancelled.';
comment on column finance_v1.operations.to_addr is 'Wallet that receives, or the owner after.';
comment on column finance_v1.operations.token_id is 'NFT token.';
comment on column finance_v1.operations.tx_app_no is 'App number that the service answered, of which `tx_log_no` is one.';
comment on column finance_v1.operations.tx_hash is 'Hash that the service answered to an NFT write.';
comment on column finance_v1.operations.tx_log_no is 'Transaction number that the service answered.';
comment on column finance_v1.operations_without_tx_number.amount is 'Requested amount, in service tokens.';
comment on column finance_v1.operations_without_tx_number.answered_at is 'When the service answered; null when it did not or its answer was lost.';
comment on column finance_v1.operations_without_tx_number.contract_id is 'NFT contract.';
comment on column finance_v1.operations_without_tx_number.effective_at is 'When it took effect, as far as known; its entries in the ledger have that time, also if the service answers later.';
comment on column finance_v1.operations_without_tx_number.fee_amount is 'Requested fee, in service tokens.';
comment on column finance_v1.operations_without_tx_number.from_addr is 'Wallet that pays, or the owner before.';
comment on column finance_v1.operations_without_tx_number.kind is 'give, receive_from, transfer, mint, mint_sequential, burn, set_extra_data, transfer_from or other.';
comment on column finance_v1.operations_without_tx_number.operation_id is 'Our id of the write.';
comment on column finance_v1.operations_without_tx_number.operation_no is 'Operator wallet that pays a give.';
comment on column finance_v1.operations_without_tx_number.outcome is 'What its state means for the ledger: executed, not_executed or open.';
comment on column finance_v1.operations_without_tx_number.reason_type is 'Reason as sent with the write.';
comment on column finance_v1.operations_without_tx_number.reference is 'Reference that the app gave to the write.';
comment on column finance_v1.operations_without_tx_number.sent_at is 'When it was sent.';
comment on column finance_v1.operations_without_tx_number.settled_at is 'When a balance or the chain confirmed it.';
comment on column finance_v1.operations_without_tx_number.state is 'State of the write: undecided, unknown, queued, sending, accepted, executed, settled, not_executed, rejected, failed or cancelled.';
comment on column finance_v1.operations_without_tx_number.to_addr is 'Wallet that receives, or the owner after.';
comment on column finance_v1.operations_without_tx_number.token_id is 'NFT token.';
comment on column finance_v1.operations_without_tx_number.tx_app_no is 'App number that the service answered, of which `tx_log_no` is one.';
comment on column finance_v1.operations_without_tx_number.tx_hash is 'Hash that the service answered to an NFT write.';
comment on column finance_v1.operations_without_tx_number.tx_log_no is 'Transaction number that the service answered.';
comment on column finance_v1.operators.account is 'Account that its gives are paid from.';
comment on column finance_v1.operators.addr is 'Address of its wallet; empty for the account of gives whose operator had no address.';
comment on column finance_v1.operators.balance is 'Posted balance of that account, in service tokens.';
comment on column finance_v1.operators.operator_no is 'Number of the operator wallet, as in operations.operation_no.';
comment on column finance_v1.period_history.action is 'closed, signed_off (an open item, at the close), signed, reopen_proposed or reopened.';
comment on column finance_v1.period_history.at is 'When.';
comment on column finance_v1.period_history.by is 'Owner of the key.';
comment on column finance_v1.period_history.detail is 'The open item that was signed off; JSON.';
comment on column finance_v1.period_history.period is 'Our id of the close.';
comment on column finance_v1.period_history.reason is 'Why, as that person wrote it.';
comment on column finance_v1.periods.chain_head is 'Head of the hash chain and number of batches at the cut-off, as verify --anchor takes them.';
comment on column finance_v1.periods.closed_at is 'When it was closed.';
comment on column finance_v1.periods.closed_by is 'Owner of the key that closed it.';
comment on column finance_v1.periods.known_at is 'Time of that batch; what was recorded later and took effect in the period is a prior-period line of later reports.';
comment on column finance_v1.periods.last_batch is 'Cut-off: the last ledger batch in the report, 0 without one.';
comment on column finance_v1.periods.period is 'Our id of the close; empty for the open period.';
comment on column finance_v1.periods.period_from is 'Start, included: the end of the period before; empty for the open period before the first close.';
comment on column finance_v1.periods.period_to is 'End, excluded: what took effect at exactly this instant belongs to the next period.';
comment on column finance_v1.periods.reopen_proposed_by is 'Owner of the key that proposed to reopen it after it was signed.';
comment on column finance_v1.periods.reopen_reason is 'Why, as that person wrote it.';
comment on column finance_v1.periods.reopened_at is 'When it was reopened.';
comment on column finance_v1.periods.reopened_by is 'Owner of the key that reopened it, or approved that; never the one that proposed it.';
comment on column finance_v1.periods.report_hash is 'SHA-256 of the content of that report.';
comment on column finance_v1.periods.report_id is 'The report over exactly this period, which is its answer from now on.';
comment on column finance_v1.periods.signed_at is 'When it was signed.';
comment on column finance_v1.periods.signed_by is 'Owner of the key that signed it, never the one that closed it; null until then.';
comment on column finance_v1.periods.signed_off is 'How many open items were signed off at the close; see period_history.';
comment on column finance_v1.periods.state is 'open, closed, signed or reopened; a reopened one is no longer in force.';
comment on column finance_v1.reports.breaks is 'How many breaks it found.';
comment on column finance_v1.reports.chain_head is 'Head of the hash chain and number of batches at the cut-off, as verify --anchor takes them; empty before the first batch.';
comment on column finance_v1.reports.kind is 'Always reconciliation.';
comment on column finance_v1.reports.known_at is 'Cut-off: time of the last ledger batch in the report.';
comment on column finance_v1.reports.period_from is 'Start of its period, included.';
comment on column finance_v1.reports.period_to is 'End of its period, excluded.';
comment on column finance_v1.reports.provisional is 'Made while its period still ran: a later report of the period has other figures.';
comment on column finance_v1.reports.report_id is 'Our id of the report.';
comment on column finance_v1.reports.time_zone is 'IANA name of the zone of its days and times; day_of(period_from, time_zone) is its first day.';
comment on column finance_v1.reports.verdict is 'balanced or breaks.';
comment on column finance_v1.wallet_positions.addr is 'Address of the wallet.';
comment on column finance_v1.wallet_positions.best_case is 'ledger_balance + unposted + every open write that increases it.';
comment on column finance_v1.wallet_positions.drift is 'Sum of its open drifts, in service tokens; positive when the wallet holds more than is explained.';
comment on column finance_v1.wallet_positions.in_flight is 'Sum of the writes that are sent and not answered yet, in service tokens.';
comment on column finance_v1.wallet_positions.ledger_at_observation is 'What the ledger held when that observation was processed, posting requests included.';
comment on column finance_v1.wallet_positions.ledger_balance is 'Posted balance, in service tokens.';
comment on column finance_v1.wallet_positions.observed_at is 'When that observation began.';
comment on column finance_v1.wallet_positions.observed_balance is 'Balance that the service showed at the newest processed observation.';
comment on column finance_v1.wallet_positions.opened is 'Whether its opening balance was taken; before that it has no drift.';
comment on column finance_v1.wallet_positions.status is 'Status that the service showed: 1 normal, 2 suspended, 3 user request, 9 withdrawn; null before the first observation.';
comment on column finance_v1.wallet_positions.unknown is 'Sum of the writes whose answer was lost and whose outcome is unknown, in service tokens.';
comment on column finance_v1.wallet_positions.unposted is 'Sum of executed writes and posting requests that are not posted yet, in service tokens; normally for less than a second.';
comment on column finance_v1.wallet_positions.worst_case is 'ledger_balance + unposted + every open write that decreases it.';
comment on function finance_v1.balances_as_of(timestamp with time zone,timestamp with time zone) is 'Balances of all accounts. as_of: only what took effect before then, that instant excluded, so that as of midnight is the end of the day before; known_at: only what was recorded until then, that instant included, such as known_at of reports; empty means everything. Columns: account; asset (service_token); balance in service tokens, empty for a wallet before the first evidence of its balance.';
comment on function finance_v1.day_begin(date,text) is 'The first instant of a day: midnight, or where the clocks skip midnight the first instant after it. time_zone: such as Asia/Seoul, by default that of the reports. The zone of the session has no effect. A day ends where the next one begins.';
comment on function finance_v1.day_of(timestamp with time zone,text) is 'The day that an instant is in. time_zone: such as Asia/Seoul, by default that of the reports. The zone of the session has no effect.';
comment on function finance_v1.movements_daily(date,date,text) is 'movements_daily of whole days of time_zone, from "from" (included) to "to" (excluded).';
comment on function finance_v1.movements_daily(text,text,text) is 'Posted token writes per day, kind and reason that took effect from "from" (included) to "to" (excluded): days such as 2026-11-01, local times, or instants with an offset; empty bounds mean everything. A reversal counts minus one on the effective day of the write. time_zone: the zone of the days and of bounds without an offset, such as Europe/Berlin, by default that of the reports. The zone of the session has no effect. Columns: day; kind: give, receive_from or transfer; reason_type; operations: writes; amount: sum of the requested amounts, in service tokens; fees: sum of the requested fees, in service tokens.';
comment on function finance_v1.movements_daily(timestamp with time zone,timestamp with time zone,text) is 'movements_daily between two instants, in days of time_zone.';
comment on function finance_v1.nft_holdings_as_of(timestamp with time zone,timestamp with time zone) is 'Tokens that existed then by nft_movements. as_of: only what took effect before then, that instant excluded, as in balances_as_of; known_at: only what was recorded until then, that instant included; empty means everything. A token is missing before the first evidence of it. Columns: contract_id; token_id; owner: empty where it is not known; since: when the owner got it, as far as known.';
comment on function finance_v1.nft_supply(timestamp with time zone,timestamp with time zone) is 'Supply of each contract by nft_movements; as_of and known_at as in nft_holdings_as_of. Columns: contract_id; opening: tokens that existed when they became known; minted, and how many of these were minted_unexplained; burned, and how many of these were burned_unexplained; held: tokens that existed then; balanced: whether opening + minted - burned = held, for every token.';
comment on function finance_v1.trial_balance(timestamp with time zone,timestamp with time zone) is 'Trial balance. as_of: only what took effect before then, that instant excluded, as in balances_as_of; known_at: only what was recorded until then, that instant included; empty means everything. Columns: account; asset (service_token); debit: the balance when positive; credit: the balance without its sign when negative, both in service tokens. The sums of debit and credit are equal.';
comment on function finance_v1.wallet_statement(text,timestamp with time zone,timestamp with time zone) is 'Statement of one wallet: its entries that took effect from "from" (included) to "to" (excluded), in the order in which they took effect; empty bounds mean everything. balances_as_of("from") plus its amounts is balances_as_of("to"). The case of the address does not matter. Columns: seq: the entry in journal; effective_at; kind; reason_type; reference that the app gave to the write; operation_id: our id of the write; tx_log_no: number of the service; counterparty: the other accounts of the transaction; amount in service tokens, positive is incoming; fee: part of an outgoing amount that is the fee of the write, negative where a reversal returns it, else 0; balance_after: balance after this line in the order of the statement, in service tokens; empty before the first evidence of its balance.';
comment on relation finance_v1.accounts is 'Every account of the ledger.';
comment on relation finance_v1.balances is 'The balance of every account now, as posted.';
comment on relation finance_v1.coverage is 'One row: how many wallets are in scope and how many were checked. Only conclusive checks count; a check is stale after the installation setting stale_after_ms (default 24 h).';
comment on relation finance_v1.decisions is 'Every proposal of people about the outcome of an operation or the end of a drift, every close of a period, which its signature approves, every reopening of a signed one, and every mapping of an operator to its wallet. It has an effect only once it is approved.';
comment on relation finance_v1.drift_history is 'What happened to drifts, append-only.';
comment on relation finance_v1.drifts is 'Every confirmed difference between the observed and the expected balance of a wallet, open or closed; one row each, never netted.';
comment on relation finance_v1.drifts_ageing is 'The drifts that are still open, with their age.';
comment on relation finance_v1.in_doubt is 'Writes whose answer was lost and whose outcome is not known yet. Evidence ends the unknown ones, people decide the undecided ones.';
comment on relation finance_v1.journal is 'Every entry of the ledger, one row per account that a transaction changes. Entries of one transaction sum to zero. Entries never change: corrections are reversals.';
comment on relation finance_v1.nft_holdings is 'Tokens that exist, as the service showed them last.';
comment on relation finance_v1.nft_movements is 'The journal of NFTs, append-only: what our writes did, and what observations showed that was made elsewhere. What turns out otherwise later is reversed: sum only standing movements.';
comment on relation finance_v1.operations is 'Every write, one row each, whether it was executed or not.';
comment on relation finance_v1.operations_without_tx_number is 'Writes that were executed although the service''s answer was lost: token writes without tx_log_no, NFT writes without tx_hash.';
comment on relation finance_v1.operators is 'The operator wallets that pay gives: the address that the setting ledger.operators names for a number, or two owners mapped to it, and the account of what was paid without one.';
comment on relation finance_v1.period_history is 'What people did with periods, append-only.';
comment on relation finance_v1.periods is 'Every close of a period, and the open period. Balances of a closed period, as they were signed: balances_as_of(period_to, known_at).';
comment on relation finance_v1.reports is 'Every report that was made.';
comment on relation finance_v1.wallet_positions is 'Every wallet that is observed, has entries, or is named by an open write: its posted balance, the open amounts, and the observed balance.';
comment on schema finance_v1 is 'The ledger for finance: read-only, stable within v1. Amounts are whole service tokens of any size; a positive entry increases its account.';

-- grants

grant select on finance_v1.accounts to tallyhook_finance;
grant select on finance_v1.accounts to tallyhook_writer;
grant select on finance_v1.balances to tallyhook_finance;
grant select on finance_v1.balances to tallyhook_writer;
grant select on finance_v1.coverage to tallyhook_finance;
grant select on finance_v1.coverage to tallyhook_writer;
grant select on finance_v1.decisions to tallyhook_finance;
grant select on finance_v1.decisions to tallyhook_writer;
grant select on finance_v1.drift_history to tallyhook_finance;
grant select on finance_v1.drift_history to tallyhook_writer;
grant select on finance_v1.drifts to tallyhook_finance;
grant select on finance_v1.drifts to tallyhook_writer;
grant select on finance_v1.drifts_ageing to tallyhook_finance;
grant select on finance_v1.drifts_ageing to tallyhook_writer;
grant select on finance_v1.in_doubt to tallyhook_finance;
grant select on finance_v1.in_doubt to tallyhook_writer;
grant select on finance_v1.journal to tallyhook_finance;
grant select on finance_v1.journal to tallyhook_writer;
grant select on finance_v1.nft_holdings to tallyhook_finance;
grant select on finance_v1.nft_holdings to tallyhook_writer;
grant select on finance_v1.nft_movements to tallyhook_finance;
grant select on finance_v1.nft_movements to tallyhook_writer;
grant select on finance_v1.operations to tallyhook_finance;
grant select on finance_v1.operations to tallyhook_writer;
grant select on finance_v1.operations_without_tx_number to tallyhook_finance;
grant select on finance_v1.operations_without_tx_number to tallyhook_writer;
grant select on finance_v1.operators to tallyhook_finance;
grant select on finance_v1.operators to tallyhook_writer;
grant select on finance_v1.period_history to tallyhook_finance;
grant select on finance_v1.period_history to tallyhook_writer;
grant select on finance_v1.periods to tallyhook_finance;
grant select on finance_v1.periods to tallyhook_writer;
grant select on finance_v1.reports to tallyhook_finance;
grant select on finance_v1.reports to tallyhook_writer;
grant select on finance_v1.wallet_positions to tallyhook_finance;
grant select on finance_v1.wallet_positions to tallyhook_writer;
grant execute on function finance_v1.balances_as_of(timestamp with time zone,timestamp with time zone) to tallyhook_finance;
grant execute on function finance_v1.balances_as_of(timestamp with time zone,timestamp with time zone) to tallyhook_writer;
grant execute on function finance_v1.day_begin(date,text) to tallyhook_finance;
grant execute on function finance_v1.day_begin(date,text) to tallyhook_writer;
grant execute on function finance_v1.day_of(timestamp with time zone,text) to tallyhook_finance;
grant execute on function finance_v1.day_of(timestamp with time zone,text) to tallyhook_writer;
grant execute on function finance_v1.movements_daily(date,date,text) to tallyhook_finance;
grant execute on function finance_v1.movements_daily(date,date,text) to tallyhook_writer;
grant execute on function finance_v1.movements_daily(text,text,text) to tallyhook_finance;
grant execute on function finance_v1.movements_daily(text,text,text) to tallyhook_writer;
grant execute on function finance_v1.movements_daily(timestamp with time zone,timestamp with time zone,text) to tallyhook_finance;
grant execute on function finance_v1.movements_daily(timestamp with time zone,timestamp with time zone,text) to tallyhook_writer;
grant execute on function finance_v1.nft_holdings_as_of(timestamp with time zone,timestamp with time zone) to tallyhook_finance;
grant execute on function finance_v1.nft_holdings_as_of(timestamp with time zone,timestamp with time zone) to tallyhook_writer;
grant execute on function finance_v1.nft_supply(timestamp with time zone,timestamp with time zone) to tallyhook_finance;
grant execute on function finance_v1.nft_supply(timestamp with time zone,timestamp with time zone) to tallyhook_writer;
grant execute on function finance_v1.trial_balance(timestamp with time zone,timestamp with time zone) to tallyhook_finance;
grant execute on function finance_v1.trial_balance(timestamp with time zone,timestamp with time zone) to tallyhook_writer;
grant execute on function finance_v1.wallet_statement(text,timestamp with time zone,timestamp with time zone) to tallyhook_finance;
grant execute on function finance_v1.wallet_statement(text,timestamp with time zone,timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.body_of(tallyhook.events,text[]) to public;
grant execute on function tallyhook.changed_at(tallyhook.operations) to tallyhook_writer;
grant execute on function tallyhook.claim_deliveries(jsonb,uuid[],uuid,integer,timestamp with time zone,timestamp with time zone,integer,timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.claim_deliveries(jsonb,uuid[],uuid,integer,timestamp with time zone,timestamp with time zone,integer,timestamp with time zone,boolean) to tallyhook_writer;
grant execute on function tallyhook.compare(jsonb,jsonb) to tallyhook_writer;
grant execute on function tallyhook.database_identity() to tallyhook_writer;
grant execute on function tallyhook.day_begin(date,text) to tallyhook_writer;
grant execute on function tallyhook.day_of(timestamp with time zone,text) to tallyhook_writer;
grant execute on function tallyhook.decimal_of(jsonb) to tallyhook_writer;
grant execute on function tallyhook.delivery_id(uuid,text) to tallyhook_writer;
grant execute on function tallyhook.document_of(tallyhook.events,jsonb) to tallyhook_writer;
grant execute on function tallyhook.document_of(text) to tallyhook_writer;
grant execute on function tallyhook.drop_partition(text,date) to tallyhook_writer;
grant execute on function tallyhook.emit_events(timestamp with time zone,jsonb,jsonb) to tallyhook_writer;
grant execute on function tallyhook.epoch_ms(timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.event_body(tallyhook.events) to tallyhook_writer;
grant execute on function tallyhook.expected_balance(text,timestamp with time zone,timestamp with time zone,timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.is_listed(jsonb,jsonb) to tallyhook_writer;
grant execute on function tallyhook.is_open(text,text) to tallyhook_writer;
grant execute on function tallyhook.is_proved(text,timestamp with time zone,text,integer) to tallyhook_writer;
grant execute on function tallyhook.is_subscribed(tallyhook.endpoints,text,text) to tallyhook_writer;
grant execute on function tallyhook.lock_periods() to tallyhook_writer;
grant execute on function tallyhook.make_partition(date,integer) to tallyhook_writer;
grant execute on function tallyhook.matches_filter(jsonb,jsonb) to tallyhook_writer;
grant execute on function tallyhook.meets_condition(jsonb[],jsonb) to tallyhook_writer;
grant execute on function tallyhook.move_operations(jsonb,text[],timestamp with time zone,jsonb,jsonb) to tallyhook_writer;
grant execute on function tallyhook.movements(timestamp with time zone,timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.number_events(integer,boolean) to tallyhook_writer;
grant execute on function tallyhook.owner_key(text) to tallyhook_writer;
grant execute on function tallyhook.passes_filter(tallyhook.events,jsonb) to tallyhook_writer;
grant execute on function tallyhook.patterns_of(text) to tallyhook_writer;
grant execute on function tallyhook.prune_audit(timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.record_intents(jsonb,text[],timestamp with time zone,text,text,integer,integer) to tallyhook_writer;
grant execute on function tallyhook.remove_bodies(uuid[],timestamp with time zone[],timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.standing_movements(timestamp with time zone,timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.store_results(jsonb,jsonb,jsonb,timestamp with time zone) to tallyhook_writer;
grant execute on function tallyhook.usage(tallyhook.operations) to tallyhook_writer;
grant execute on function tallyhook.usage_hour(tallyhook.operations) to tallyhook_writer;
grant execute on function tallyhook.values_at(jsonb,text[]) to tallyhook_writer;
grant execute on function tallyhook.zone_or_default(text) to tallyhook_writer;
grant usage on schema finance_v1 to tallyhook_finance;
grant usage on schema finance_v1 to tallyhook_writer;
grant usage on schema tallyhook to tallyhook_writer;
grant insert, select, update on tallyhook.accounts to tallyhook_writer;
grant select on tallyhook.age_buckets to tallyhook_writer;
grant delete, insert, select, update on tallyhook.alerts to tallyhook_writer;
grant select on tallyhook.applied_migrations to tallyhook_writer;
grant insert, select on tallyhook.approvals to tallyhook_writer;
grant delete, insert, select, update on tallyhook.attempt_figures to tallyhook_writer;
grant delete, insert, select, update on tallyhook.attempt_minutes to tallyhook_writer;
grant insert, select on tallyhook.attempts to tallyhook_writer;
grant insert, select on tallyhook.audit to tallyhook_writer;
grant update on tallyhook.audit.result to tallyhook_writer;
grant insert, select on tallyhook.batches to tallyhook_writer;
grant select on tallyhook.bookings to tallyhook_writer;
grant select on tallyhook.burned_from to tallyhook_writer;
grant delete, insert, select, update on tallyhook.candidates to tallyhook_writer;
grant select on tallyhook.chain to tallyhook_writer;
grant select on tallyhook.chained_rows to tallyhook_writer;
grant select, update on tallyhook.clock to tallyhook_writer;
grant delete, insert, select, update on tallyhook.consumed_events to tallyhook_writer;
grant delete, insert, select, update on tallyhook.consumers to tallyhook_writer;
grant delete, insert, select, update on tallyhook.daemons to tallyhook_writer;
grant insert, select on tallyhook.day_balances to tallyhook_writer;
grant insert, select on tallyhook.day_ends to tallyhook_writer;
grant insert, select on tallyhook.decisions to tallyhook_writer;
grant delete, insert, select, update on tallyhook.deliveries to tallyhook_writer;
grant insert, select on tallyhook.drift_actions to tallyhook_writer;
grant insert, select, update on tallyhook.drifts to tallyhook_writer;
grant select on tallyhook.due_effects to tallyhook_writer;
grant delete, insert, select, update on tallyhook.due_postings to tallyhook_writer;
grant delete, insert, select, update on tallyhook.endpoint_health to tallyhook_writer;
grant delete, insert, select, update on tallyhook.endpoints to tallyhook_writer;
grant insert, select on tallyhook.entries to tallyhook_writer;
grant insert, select on tallyhook.event_shapes to tallyhook_writer;
grant insert, select on tallyhook.events to tallyhook_writer;
grant insert, select, update on tallyhook.fee_rules to tallyhook_writer;
grant insert, select, update on tallyhook.feed to tallyhook_writer;
grant insert, select on tallyhook.freezes to tallyhook_writer;
grant update on tallyhook.freezes.release_reason to tallyhook_writer;
grant update on tallyhook.freezes.released_at to tallyhook_writer;
grant update on tallyhook.freezes.released_by to tallyhook_writer;
grant update on tallyhook.freezes.send_queued to tallyhook_writer;
grant delete, insert, select, update on tallyhook.import_movements to tallyhook_writer;
grant delete, insert, select, update on tallyhook.import_rows to tallyhook_writer;
grant delete, insert, select, update on tallyhook.imports to tallyhook_writer;
grant insert, select, update on tallyhook.installation to tallyhook_writer;
grant delete, insert, select, update on tallyhook.key_usage to tallyhook_writer;
grant insert, select, update on tallyhook.keys to tallyhook_writer;
grant delete, insert, select, update on tallyhook.leases to tallyhook_writer;
grant select on tallyhook.mapped_operators to tallyhook_writer;
grant select on tallyhook.migrations to tallyhook_writer;
grant insert, select on tallyhook.nft_movements to tallyhook_writer;
grant insert, select on tallyhook.numbered_events to tallyhook_writer;
grant insert, select, update on tallyhook.observations to tallyhook_writer;
grant delete, insert, select, update on tallyhook.observed_holders to tallyhook_writer;
grant delete, insert, select, update on tallyhook.open_operations to tallyhook_writer;
grant insert, select on tallyhook.operation_effects to tallyhook_writer;
grant update on tallyhook.operation_effects.account to tallyhook_writer;
grant update on tallyhook.operation_effects.amount to tallyhook_writer;
grant update on tallyhook.operation_effects.phase to tallyhook_writer;
grant insert, select on tallyhook.operations to tallyhook_writer;
grant update on tallyhook.operations.ambiguous to tallyhook_writer;
grant update on tallyhook.operations.answer_body to tallyhook_writer;
grant update on tallyhook.operations.answer_headers to tallyhook_writer;
grant update on tallyhook.operations.answer_status to tallyhook_writer;
grant update on tallyhook.operations.answered_at to tallyhook_writer;
grant update on tallyhook.operations.daemon_id to tallyhook_writer;
grant update on tallyhook.operations.effective_at to tallyhook_writer;
grant update on tallyhook.operations.effective_basis to tallyhook_writer;
grant update on tallyhook.operations.error_class to tallyhook_writer;
grant update on tallyhook.operations.error_code to tallyhook_writer;
grant update on tallyhook.operations.error_message to tallyhook_writer;
grant update on tallyhook.operations.error_status to tallyhook_writer;
grant update on tallyhook.operations.event_seq to tallyhook_writer;
grant update on tallyhook.operations.evidence to tallyhook_writer;
grant update on tallyhook.operations.fee_mode to tallyhook_writer;
grant update on tallyhook.operations.key_held to tallyhook_writer;
grant update on tallyhook.operations.retry_at to tallyhook_writer;
grant update on tallyhook.operations.send_deadline_at to tallyhook_writer;
grant update on tallyhook.operations.sent_at to tallyhook_writer;
grant update on tallyhook.operations.settled_at to tallyhook_writer;
grant update on tallyhook.operations.state to tallyhook_writer;
grant update on tallyhook.operations.token_id to tallyhook_writer;
grant update on tallyhook.operations.tx_app_no to tallyhook_writer;
grant update on tallyhook.operations.tx_hash to tallyhook_writer;
grant update on tallyhook.operations.tx_log_no to tallyhook_writer;
grant insert, select on tallyhook.operator_wallets to tallyhook_writer;
grant update on tallyhook.operator_wallets.reject_reason to tallyhook_writer;
grant update on tallyhook.operator_wallets.rejected_at to tallyhook_writer;
grant update on tallyhook.operator_wallets.rejected_by to tallyhook_writer;
grant insert, select on tallyhook.owners to tallyhook_writer;
grant delete, insert, select, update on tallyhook.pending_deliveries to tallyhook_writer;
grant select on tallyhook.pending_effects to tallyhook_writer;
grant insert, select on tallyhook.period_actions to tallyhook_writer;
grant insert, select on tallyhook.periods to tallyhook_writer;
grant delete, insert, select, update on tallyhook.poll_minutes to tallyhook_writer;
grant insert, select, update on tallyhook.posting_requests to tallyhook_writer;
grant insert, select on tallyhook.quarantine_releases to tallyhook_writer;
grant insert, select, update on tallyhook.quota to tallyhook_writer;
grant delete, insert, select, update on tallyhook.replays to tallyhook_writer;
grant insert, select, update on tallyhook.report_files to tallyhook_writer;
grant insert, select on tallyhook.reports to tallyhook_writer;
grant delete, insert, select, update on tallyhook.service_changes to tallyhook_writer;
grant insert, select, update on tallyhook.service_state to tallyhook_writer;
grant delete, insert, select, update on tallyhook.subjects to tallyhook_writer;
grant delete, insert, select, update on tallyhook.targets to tallyhook_writer;
grant insert, select, update on tallyhook.tokens to tallyhook_writer;
grant insert, select on tallyhook.transactions to tallyhook_writer;
grant insert, select on tallyhook.transitions to tallyhook_writer;
grant select on tallyhook.unchained_rows to tallyhook_writer;
grant delete, insert, select on tallyhook.unnumbered_events to tallyhook_writer;
grant delete, insert, select, update on tallyhook.unprocessed_observations to tallyhook_writer;
grant insert, select on tallyhook.used_since_backup to tallyhook_writer;
grant delete, insert, select, update on tallyhook.waits to tallyhook_writer;
grant insert, select, update on tallyhook.wallets to tallyhook_writer;
grant delete, insert, select, update on tallyhook.watches to tallyhook_writer;
