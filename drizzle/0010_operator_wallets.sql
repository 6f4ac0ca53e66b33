-- compatible from 0002_rights
-- A probable cause more: the wallet pays the gives of an operator whose wallet no setting names.
ALTER TABLE "tallyhook"."drifts" ADD COLUMN "operator" jsonb;--> statement-breakpoint
alter table tallyhook.drifts drop constraint drifts_cause_known,
  add constraint drifts_cause_known check (cause in ('made_elsewhere', 'fee_rule', 'lost_operation', 'opening',
    'operator_wallet'));
--> statement-breakpoint
-- Up to which entry of its account an evaluation counted gives that were moved to the wallet.
ALTER TABLE "tallyhook"."wallets" ADD COLUMN "ledger_version" bigint;--> statement-breakpoint
-- Once the setting names it, what was recorded for the operator is moved to the wallet.
grant update (account) on tallyhook.operation_effects to tallyhook_writer;
