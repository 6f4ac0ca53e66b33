-- in steps
-- A probable cause more: the wallet pays the gives of an operator whose wallet no setting names.
alter table tallyhook.drifts add column if not exists operator jsonb,
  drop constraint if exists drifts_cause_known,
  add constraint drifts_cause_known check (cause in ('made_elsewhere', 'fee_rule', 'lost_operation', 'opening',
    'operator_wallet'));
--> statement-breakpoint
-- Once the setting names it, what was recorded for the operator is moved to the wallet.
grant update (account) on tallyhook.operation_effects to tallyhook_writer;
--> statement-breakpoint
create index concurrently if not exists operation_effects_of_operators on tallyhook.operation_effects
  using btree (account, operation_id) where account like 'operator:%';
