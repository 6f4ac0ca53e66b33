-- Privileges. The daemon works as tallyhook_writer, which owns nothing and can change neither triggers nor
-- partitions nor append-only rows. tallyhook_finance reads only finance_v1. The roles belong to the cluster
-- and are created before the migrations run.
grant usage on schema tallyhook to tallyhook_writer;
--> statement-breakpoint
grant select on all tables in schema tallyhook to tallyhook_writer;
--> statement-breakpoint
grant insert, update on
  tallyhook.daemons, tallyhook.leases, tallyhook.installation, tallyhook.keys,
  tallyhook.subjects, tallyhook.feed, tallyhook.open_operations, tallyhook.accounts, tallyhook.posting_requests,
  tallyhook.watches, tallyhook.targets, tallyhook.observations, tallyhook.quota, tallyhook.service_state,
  tallyhook.waits, tallyhook.service_changes, tallyhook.poll_minutes, tallyhook.attempt_minutes,
  tallyhook.wallets, tallyhook.tokens, tallyhook.drifts, tallyhook.candidates, tallyhook.alerts,
  tallyhook.endpoints, tallyhook.endpoint_health, tallyhook.deliveries, tallyhook.pending_deliveries, tallyhook.replays,
  tallyhook.unprocessed_observations, tallyhook.key_usage, tallyhook.due_postings, tallyhook.observed_holders,
  tallyhook.report_files,
  tallyhook.fee_rules,
  tallyhook.imports, tallyhook.import_rows, tallyhook.import_movements
  to tallyhook_writer;
--> statement-breakpoint
grant insert on
  tallyhook.events, tallyhook.event_shapes, tallyhook.unnumbered_events, tallyhook.numbered_events,
  tallyhook.transitions, tallyhook.batches, tallyhook.transactions, tallyhook.entries,
  tallyhook.nft_movements, tallyhook.drift_actions, tallyhook.quarantine_releases, tallyhook.attempts, tallyhook.reports,
  tallyhook.operations, tallyhook.operation_effects, tallyhook.freezes, tallyhook.decisions, tallyhook.approvals,
  tallyhook.periods, tallyhook.period_actions, tallyhook.day_ends, tallyhook.day_balances,
  tallyhook.audit, tallyhook.used_since_backup, tallyhook.owners
  to tallyhook_writer;
--> statement-breakpoint
grant update on tallyhook.clock to tallyhook_writer;
--> statement-breakpoint
grant delete on tallyhook.open_operations, tallyhook.daemons, tallyhook.leases, tallyhook.waits, tallyhook.service_changes, tallyhook.watches, tallyhook.targets, tallyhook.subjects,
  tallyhook.endpoints, tallyhook.endpoint_health, tallyhook.deliveries, tallyhook.pending_deliveries, tallyhook.unnumbered_events, tallyhook.candidates, tallyhook.unprocessed_observations, tallyhook.key_usage,
  tallyhook.due_postings, tallyhook.observed_holders, tallyhook.alerts, tallyhook.replays, tallyhook.poll_minutes,
  tallyhook.attempt_minutes, tallyhook.imports, tallyhook.import_rows, tallyhook.import_movements to tallyhook_writer;
--> statement-breakpoint
-- An update may only change what a transition or another fee rule sets; the request of an operation never changes.
grant update (state, key_held, tx_app_no, tx_log_no, tx_hash, token_id, error_class, error_status, error_code,
  error_message, answer_status, answer_headers, answer_body, evidence, sent_at, send_deadline_at, retry_at, daemon_id,
  answered_at, effective_at, effective_basis, settled_at, ambiguous, fee_mode, event_seq)
  on tallyhook.operations to tallyhook_writer;
--> statement-breakpoint
grant update (result) on tallyhook.audit to tallyhook_writer;
--> statement-breakpoint
grant update (phase, amount) on tallyhook.operation_effects to tallyhook_writer;
--> statement-breakpoint
grant update (released_at, released_by, release_reason, send_queued) on tallyhook.freezes to tallyhook_writer;
--> statement-breakpoint
do $$
declare p record;
begin
  for p in select c.oid::regclass as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'tallyhook' and c.relkind = 'r'
  loop
    execute format('revoke all on %s from tallyhook_writer', p.name);
  end loop;
end $$;
--> statement-breakpoint
revoke execute on all functions in schema tallyhook from public;
--> statement-breakpoint
grant execute on function tallyhook.make_partition(date, int), tallyhook.drop_partition(text, date),
  tallyhook.prune_audit(timestamptz), tallyhook.lock_periods(), tallyhook.owner_key(text) to tallyhook_writer;
