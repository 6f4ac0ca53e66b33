-- All tables, generated from src/*/tables.ts by drizzle-kit. The partitioning of the four pruned tables is
-- added by hand, because drizzle cannot express it.
CREATE TABLE "tallyhook"."clock" (
	"id" integer PRIMARY KEY NOT NULL,
	"steps" integer NOT NULL,
	"correction_ms" double precision NOT NULL,
	"set_at" timestamptz(3) NOT NULL,
	"ends_at" timestamptz(3) NOT NULL,
	"highest_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."daemons" (
	"id" text PRIMARY KEY NOT NULL,
	"started_at" timestamptz(3) NOT NULL,
	"alive_until" timestamptz(3) NOT NULL,
	"roles" text[] NOT NULL,
	"server_start" timestamptz(6) NOT NULL,
	"data_file" text NOT NULL,
	"app_per_s" double precision DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."installation" (
	"name" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL,
	"set_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."leases" (
	"name" text PRIMARY KEY NOT NULL,
	"daemon_id" text NOT NULL,
	"fence" bigint NOT NULL,
	"until" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."audit" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."audit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamptz(3) NOT NULL,
	"owner" text NOT NULL,
	"key_id" text NOT NULL,
	"client_address" text,
	"action" text NOT NULL,
	"detail" jsonb NOT NULL,
	"result" text
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."keys" (
	"id" text PRIMARY KEY NOT NULL,
	"hash" text NOT NULL,
	"name" text NOT NULL,
	"owner" text NOT NULL,
	"scopes" text[] NOT NULL,
	"limits" jsonb,
	"created_at" timestamptz(3) NOT NULL,
	"expires_at" timestamptz(3),
	"revoked_at" timestamptz(3),
	"last_used_at" timestamptz(3),
	CONSTRAINT "keys_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."owners" (
	"name" text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."accounts" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."accounts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"asset" text DEFAULT 'service_token' NOT NULL,
	"balance" numeric NOT NULL,
	"version" bigint NOT NULL,
	"opened_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."batches" (
	"id" bigint PRIMARY KEY NOT NULL,
	"recorded_at" timestamptz(3) NOT NULL,
	"transactions" integer NOT NULL,
	"entries" integer NOT NULL,
	CONSTRAINT "batches_recorded_at_unique" UNIQUE("recorded_at")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."chain" (
	"batch_id" bigint PRIMARY KEY NOT NULL,
	"last_transaction" bigint NOT NULL,
	"batch" "bytea" NOT NULL,
	"transactions" "bytea" NOT NULL,
	"movements" "bytea" NOT NULL,
	"evidence" "bytea" NOT NULL,
	"head" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."chained_rows" (
	"batch_id" bigint NOT NULL,
	"source" text NOT NULL,
	"row_ids" text[] NOT NULL,
	CONSTRAINT "chained_rows_batch_id_source_pk" PRIMARY KEY("batch_id","source")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."day_balances" (
	"account_id" bigint NOT NULL,
	"at" timestamptz(3) NOT NULL,
	"balance" numeric NOT NULL,
	"entries" bigint NOT NULL,
	CONSTRAINT "day_balances_account_id_at_pk" PRIMARY KEY("account_id","at")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."day_ends" (
	"at" timestamptz(3) PRIMARY KEY NOT NULL,
	"last_batch" bigint NOT NULL,
	"last_transaction" bigint NOT NULL,
	"entries" bigint NOT NULL,
	"made_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."due_postings" (
	"operation_id" text PRIMARY KEY NOT NULL,
	"due_at" timestamptz(3) NOT NULL,
	"quarantine_reason" text,
	"quarantined_at" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."entries" (
	"transaction_id" bigint NOT NULL,
	"line" smallint NOT NULL,
	"account_id" bigint NOT NULL,
	"amount" numeric NOT NULL,
	"balance_after" numeric NOT NULL,
	"version" bigint NOT NULL,
	"effective_at" timestamptz(3) NOT NULL,
	"recorded_at" timestamptz(3) NOT NULL,
	CONSTRAINT "entries_transaction_id_line_pk" PRIMARY KEY("transaction_id","line")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."nft_movements" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."nft_movements_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"batch_id" bigint NOT NULL,
	"kind" text NOT NULL,
	"contract_id" numeric NOT NULL,
	"token_id" numeric NOT NULL,
	"from_addr" text,
	"to_addr" text,
	"tx_hash" text,
	"operation_id" text,
	"posting" integer,
	"reverses" bigint,
	"not_before" timestamptz(3),
	"effective_at" timestamptz(3) NOT NULL,
	"effective_basis" text NOT NULL,
	"recorded_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."observed_holders" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."observed_holders_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"contract_id" numeric NOT NULL,
	"token_id" numeric NOT NULL,
	"owner" text,
	"is_new" boolean NOT NULL,
	"tx_hash" text,
	"not_before" timestamptz(3),
	"observed_at" timestamptz(3) NOT NULL,
	"requested_at" timestamptz(3) NOT NULL,
	"problem" text
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."posting_requests" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"account" text NOT NULL,
	"counter" text NOT NULL,
	"amount" numeric NOT NULL,
	"effective_at" timestamptz(3) NOT NULL,
	"effective_basis" text NOT NULL,
	"requested_by" text NOT NULL,
	"reason" text,
	"reverses" text,
	"seen_at" timestamptz(3),
	"seen_version" bigint,
	"requested_at" timestamptz(3) NOT NULL,
	"posted_at" timestamptz(3),
	"problem" text
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."transactions" (
	"id" bigint PRIMARY KEY NOT NULL,
	"batch_id" bigint NOT NULL,
	"kind" text NOT NULL,
	"operation_id" text,
	"posting" integer,
	"posting_request_id" text,
	"reverses" bigint,
	"reason_type" text,
	"reference" text,
	"tx_app_no" numeric,
	"tx_log_no" numeric,
	"requested_by" text,
	"effective_at" timestamptz(3) NOT NULL,
	"effective_basis" text NOT NULL,
	"recorded_at" timestamptz(3) NOT NULL,
	"entry_count" smallint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."unchained_rows" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."unchained_rows_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"source" text NOT NULL,
	"row_ids" text[] NOT NULL,
	"digests" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."observations" (
	"id" text NOT NULL,
	"target" text NOT NULL,
	"kind" text NOT NULL,
	"started_at" timestamptz(3) NOT NULL,
	"first_ended_at" timestamptz(3) NOT NULL,
	"last_started_at" timestamptz(3) NOT NULL,
	"ended_at" timestamptz(3) NOT NULL,
	"result" text NOT NULL,
	"cause" text,
	"record" jsonb,
	CONSTRAINT "observations_started_at_id_pk" PRIMARY KEY("started_at","id")
) PARTITION BY RANGE ("started_at");
--> statement-breakpoint
CREATE TABLE "tallyhook"."poll_minutes" (
	"at" timestamptz(3) PRIMARY KEY NOT NULL,
	"requests" integer NOT NULL,
	"allowed_per_s" double precision NOT NULL,
	"expected_delay_ms" double precision,
	"oldest_poll_ms" double precision
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."quota" (
	"name" text PRIMARY KEY NOT NULL,
	"blocked_until" timestamptz(3),
	"rate" double precision,
	"rises_from" timestamptz(3),
	"rise_ms" integer,
	"cleared_at" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."service_changes" (
	"at" timestamptz(3) PRIMARY KEY NOT NULL,
	"state" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."service_state" (
	"name" text PRIMARY KEY NOT NULL,
	"state" text NOT NULL,
	"since" timestamptz(3) NOT NULL,
	"down_from" timestamptz(3),
	"down_until" timestamptz(3),
	"announced" jsonb,
	"next_probe_at" timestamptz(3) NOT NULL,
	"failures" integer NOT NULL,
	"answered_at" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."targets" (
	"name" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"addr" text,
	"contract_id" numeric,
	"token_id" numeric,
	"next_poll_at" timestamptz(3) NOT NULL,
	"pending" boolean DEFAULT false NOT NULL,
	"idle" boolean DEFAULT false NOT NULL,
	"lease_until" timestamptz(3),
	"failures" integer DEFAULT 0 NOT NULL,
	"refused_at" timestamptz(3),
	"last_started_at" timestamptz(3),
	"last_result" text,
	"last_record" jsonb,
	"observation_id" text,
	"observation_started_at" timestamptz(3),
	"changes" double precision DEFAULT 0.5 NOT NULL,
	"changes_over_s" double precision DEFAULT 1800 NOT NULL,
	"process_again_at" timestamptz(3),
	"scan_progress" jsonb,
	"added_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."unprocessed_observations" (
	"target" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"observation_id" text NOT NULL,
	"unchanged_since" timestamptz(3) NOT NULL,
	"started_at" timestamptz(3) NOT NULL,
	"ended_at" timestamptz(3) NOT NULL,
	"result" text NOT NULL,
	"record" jsonb,
	"process_at" timestamptz(3) NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"problem" text
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."waits" (
	"name" text PRIMARY KEY NOT NULL,
	"counts" jsonb NOT NULL,
	"learned_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."watches" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"target" text NOT NULL,
	"addr" text,
	"contract_id" numeric,
	"token_id" numeric,
	"created_at" timestamptz(3) NOT NULL,
	"created_by" text NOT NULL,
	CONSTRAINT "watches_target_unique" UNIQUE("target")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."approvals" (
	"subject" text NOT NULL,
	"n" smallint NOT NULL,
	"proposed_by" text NOT NULL,
	"owner" text NOT NULL,
	"key_id" text NOT NULL,
	"at" timestamptz(3) NOT NULL,
	CONSTRAINT "approvals_subject_n_owner_pk" PRIMARY KEY("subject","n","owner")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."decisions" (
	"subject" text NOT NULL,
	"n" smallint NOT NULL,
	"decision" text NOT NULL,
	"operation_id" text,
	"reason" text NOT NULL,
	"approvals_needed" smallint NOT NULL,
	"proposed_by" text NOT NULL,
	"proposed_key" text NOT NULL,
	"proposed_at" timestamptz(3) NOT NULL,
	CONSTRAINT "decisions_subject_n_pk" PRIMARY KEY("subject","n"),
	CONSTRAINT "decisions_by_proposer" UNIQUE("subject","n","proposed_by")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."freezes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."freezes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"frozen_at" timestamptz(3) NOT NULL,
	"frozen_by" text NOT NULL,
	"reason" text NOT NULL,
	"released_at" timestamptz(3),
	"released_by" text,
	"release_reason" text,
	"cause" text DEFAULT 'ordered' NOT NULL,
	"send_queued" boolean
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."fee_rules" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."fee_rules_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"rules" text NOT NULL,
	"set_at" timestamptz(3) NOT NULL,
	"changed" bigint NOT NULL,
	"reposted" bigint NOT NULL,
	"applied_at" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."key_usage" (
	"key_id" text NOT NULL,
	"hour" timestamptz(3) NOT NULL,
	"moved" numeric NOT NULL,
	CONSTRAINT "key_usage_key_id_hour_pk" PRIMARY KEY("key_id","hour")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."operation_effects" (
	"operation_id" text NOT NULL,
	"line" smallint NOT NULL,
	"account" text NOT NULL,
	"amount" numeric NOT NULL,
	"phase" text NOT NULL,
	"unsettled" boolean GENERATED ALWAYS AS (case when phase in ('queued', 'open',
      'undecided', 'executed', 'taken_back') then true when phase = 'not_executed' then false end) STORED,
	CONSTRAINT "operation_effects_operation_id_line_pk" PRIMARY KEY("operation_id","line")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."operations" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"source" text NOT NULL,
	"owner" text NOT NULL,
	"key_id" text NOT NULL,
	"idempotency_key" text,
	"fingerprint" text NOT NULL,
	"reference" text,
	"method" text NOT NULL,
	"path" text NOT NULL,
	"content_type" text,
	"request_body" "bytea" NOT NULL,
	"from_addr" text,
	"to_addr" text,
	"operation_no" numeric,
	"contract_id" numeric,
	"token_id" numeric,
	"amount" numeric,
	"fee_amount" numeric,
	"reason_type" text,
	"token_uri" text,
	"meta_data" text,
	"extra_data" text,
	"pre_image" json,
	"recorded_at" timestamptz(3) NOT NULL,
	"expires_at" timestamptz(3),
	"conflict_key" text,
	"fee_mode" text,
	"sent_at" timestamptz(3),
	"send_deadline_at" timestamptz(3),
	"retry_at" timestamptz(3),
	"daemon_id" text,
	"ambiguous" boolean DEFAULT false NOT NULL,
	"key_held" boolean NOT NULL,
	"answer_status" integer,
	"answer_headers" json,
	"answer_body" "bytea",
	"tx_app_no" numeric,
	"tx_log_no" numeric,
	"tx_hash" text,
	"error_class" text,
	"error_status" integer,
	"error_code" text,
	"error_message" text,
	"answered_at" timestamptz(3),
	"effective_at" timestamptz(3),
	"effective_basis" text,
	"evidence" jsonb,
	"settled_at" timestamptz(3),
	"event_seq" bigint DEFAULT 0 NOT NULL,
	"state" text NOT NULL,
	"outcome" text GENERATED ALWAYS AS (case when state in ('accepted', 'executed', 'settled') then 'executed'
        when state in ('rejected', 'failed', 'not_executed', 'cancelled') then 'not_executed'
        else 'open' end) STORED NOT NULL,
	"in_ledger" boolean GENERATED ALWAYS AS (case when kind in ('give', 'receive_from', 'transfer')
        then state in ('accepted', 'executed', 'settled')
        when kind in ('mint', 'mint_sequential', 'burn', 'transfer_from', 'set_extra_data')
        then state = 'settled' else false end) STORED NOT NULL,
	"ended_as" text GENERATED ALWAYS AS (case when state in ('rejected', 'failed', 'not_executed', 'cancelled') then state end) STORED,
	"unnumbered" boolean GENERATED ALWAYS AS (case when tx_log_no is null and tx_hash is null and kind <> 'other'
        and state in ('undecided', 'executed', 'settled') then true end) STORED,
	"reported_as" text GENERATED ALWAYS AS (case when source = 'report'
        then coalesce(tx_app_no::text || ':' || tx_log_no::text, lower(tx_hash)) end) STORED,
	"fee_at" timestamptz(3) GENERATED ALWAYS AS (case when fee_mode is not null then coalesce(sent_at, effective_at, recorded_at) end) STORED,
	"happened_at" timestamptz(3) GENERATED ALWAYS AS (case when kind not in ('give', 'receive_from', 'transfer')
        then coalesce(effective_at, sent_at, recorded_at) end) STORED
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."open_operations" (
	"state" text NOT NULL,
	"changed_at" timestamptz(3) NOT NULL,
	"id" text NOT NULL,
	"recorded_at" timestamptz(3) NOT NULL,
	"contract_id" numeric,
	"conflict_key" text,
	CONSTRAINT "open_operations_state_changed_at_id_pk" PRIMARY KEY("state","changed_at","id")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."transitions" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."transitions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"operation_id" text NOT NULL,
	"from_state" text,
	"to_state" text NOT NULL,
	"at" timestamptz(3) NOT NULL,
	"cause" text NOT NULL,
	"evidence" jsonb,
	"deadline_at" timestamptz(3),
	"daemon_id" text,
	"tx_log_no" numeric,
	"tx_hash" text
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."used_since_backup" (
	"name" text PRIMARY KEY NOT NULL,
	"recorded_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."events" (
	"id" uuid NOT NULL,
	"type" text NOT NULL,
	"subject" text NOT NULL,
	"subject_seq" bigint NOT NULL,
	"occurred_at" timestamptz(3) NOT NULL,
	"recorded_at" timestamptz(3) NOT NULL,
	"shape" bigint NOT NULL,
	"data" text NOT NULL,
	CONSTRAINT "events_recorded_at_id_pk" PRIMARY KEY("recorded_at","id")
) PARTITION BY RANGE ("recorded_at");
--> statement-breakpoint
CREATE TABLE "tallyhook"."event_shapes" (
	"id" bigint NOT NULL,
	"names" text[] NOT NULL
);
--> statement-breakpoint
CREATE INDEX "event_shapes_by_id" ON "tallyhook"."event_shapes" USING btree ("id");
--> statement-breakpoint
CREATE TABLE "tallyhook"."feed" (
	"name" text PRIMARY KEY NOT NULL,
	"last_seq" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."numbered_events" (
	"first_seq" bigint NOT NULL,
	"recorded_at" timestamptz(3) NOT NULL,
	"ids" uuid[] NOT NULL,
	"recorded_ats" timestamptz(3)[] NOT NULL,
	CONSTRAINT "numbered_events_first_seq_recorded_at_pk" PRIMARY KEY("first_seq","recorded_at")
) PARTITION BY RANGE ("recorded_at");
--> statement-breakpoint
CREATE TABLE "tallyhook"."subjects" (
	"subject" text PRIMARY KEY NOT NULL,
	"last_seq" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."unnumbered_events" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."unnumbered_events_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"recorded_at" timestamptz(3) NOT NULL,
	"ids" uuid[] NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."alerts" (
	"id" text PRIMARY KEY NOT NULL,
	"rule" text NOT NULL,
	"subject" text NOT NULL,
	"raised_at" timestamptz(3) NOT NULL,
	"detail" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."candidates" (
	"operation_id" text PRIMARY KEY NOT NULL,
	"outcome" text NOT NULL,
	"basis" text NOT NULL,
	"evidence" jsonb NOT NULL,
	"seen_at" timestamptz(3) NOT NULL,
	"observation_started_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."drift_actions" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."drift_actions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"drift_id" text NOT NULL,
	"action" text NOT NULL,
	"at" timestamptz(3) NOT NULL,
	"by" text NOT NULL,
	"detail" jsonb
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."drifts" (
	"id" text PRIMARY KEY NOT NULL,
	"wallet_key" text NOT NULL,
	"addr" text NOT NULL,
	"amount" numeric,
	"amount_min" numeric NOT NULL,
	"amount_max" numeric NOT NULL,
	"state" text NOT NULL,
	"suspected_at" timestamptz(3) NOT NULL,
	"opened_at" timestamptz(3) NOT NULL,
	"closed_at" timestamptz(3),
	"window_from" timestamptz(3),
	"window_to" timestamptz(3) NOT NULL,
	"evidence" jsonb NOT NULL,
	"cause" text NOT NULL,
	"prepared" jsonb,
	"counterpart" text,
	"assignee" text,
	"closed_by" jsonb
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."quarantine_releases" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."quarantine_releases_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"problem" text NOT NULL,
	"released_at" timestamptz(3) NOT NULL,
	"released_by" text NOT NULL,
	"released_key" text NOT NULL,
	"reason" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."tokens" (
	"contract_id" numeric NOT NULL,
	"token_id" numeric NOT NULL,
	"owner" text,
	"creator" text,
	"uri" text,
	"metadata" text,
	"extra_data" text,
	"status" integer,
	"locked" integer,
	"last_tx_hash" text,
	"created_text" text,
	"owned_text" text,
	"observed_at" timestamptz(3) NOT NULL,
	"presence" text NOT NULL,
	"absent_since" timestamptz(3),
	"recorded_owner" text,
	"differs_since" timestamptz(3),
	"differs_after" timestamptz(3),
	CONSTRAINT "tokens_contract_id_token_id_pk" PRIMARY KEY("contract_id","token_id")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."wallets" (
	"key" text PRIMARY KEY NOT NULL,
	"addr" text NOT NULL,
	"status" integer,
	"observed_balance" numeric,
	"observed_at" timestamptz(3),
	"observation_ended_at" timestamptz(3),
	"opened_at" timestamptz(3),
	"consistent_at" timestamptz(3),
	"quiet_at" timestamptz(3),
	"ledger_at_observation" numeric,
	"observation_id" text,
	"evaluated_at" timestamptz(3),
	"verdict" text NOT NULL,
	"cause" text,
	"suspected_min" numeric,
	"suspected_max" numeric,
	"suspected_at" timestamptz(3),
	"vanished_at" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."period_actions" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tallyhook"."period_actions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"period_id" text NOT NULL,
	"action" text NOT NULL,
	"at" timestamptz(3) NOT NULL,
	"by" text NOT NULL,
	"key_id" text NOT NULL,
	"reason" text,
	"detail" jsonb
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."periods" (
	"id" text PRIMARY KEY NOT NULL,
	"period_from" timestamptz(3) NOT NULL,
	"period_to" timestamptz(3) NOT NULL,
	"report_id" text NOT NULL,
	"report_hash" text NOT NULL,
	"last_batch" bigint NOT NULL,
	"known_at" timestamptz(3) NOT NULL,
	"chain_head" text,
	"decision" smallint NOT NULL,
	"closed_by" text NOT NULL,
	"closed_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."report_files" (
	"report_id" text NOT NULL,
	"format" text NOT NULL,
	"due_at" timestamptz(3) NOT NULL,
	"attempts" integer NOT NULL,
	"path" text,
	"written_at" timestamptz(3),
	"problem" text,
	CONSTRAINT "report_files_report_id_format_pk" PRIMARY KEY("report_id","format")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."reports" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"period_from" timestamptz(3) NOT NULL,
	"period_to" timestamptz(3) NOT NULL,
	"known_at" timestamptz(3) NOT NULL,
	"requested_by" text NOT NULL,
	"verdict" text NOT NULL,
	"breaks" integer NOT NULL,
	"provisional" boolean NOT NULL,
	"content" jsonb NOT NULL,
	"hash" text NOT NULL,
	"created_at" timestamptz(3) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."attempt_minutes" (
	"endpoint_id" text NOT NULL,
	"at" timestamptz(3) NOT NULL,
	"delivered" integer NOT NULL,
	"failed" integer NOT NULL,
	"duration_ms" bigint NOT NULL,
	"slowest_ms" integer NOT NULL,
	CONSTRAINT "attempt_minutes_endpoint_id_at_pk" PRIMARY KEY("endpoint_id","at")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."attempts" (
	"delivery_id" uuid NOT NULL,
	"at" timestamptz(3) NOT NULL,
	"n" integer NOT NULL,
	"duration_ms" integer NOT NULL,
	"status" integer,
	"result" text NOT NULL,
	"error" text,
	"response_body" text,
	"response_headers" jsonb,
	CONSTRAINT "attempts_delivery_id_n_at_pk" PRIMARY KEY("delivery_id","n","at")
) PARTITION BY RANGE ("at");
--> statement-breakpoint
CREATE TABLE "tallyhook"."deliveries" (
	"id" uuid NOT NULL,
	"created_at" timestamptz(3) NOT NULL,
	"endpoint_id" uuid NOT NULL,
	"event_id" uuid NOT NULL,
	"finished_at" timestamptz(3) NOT NULL,
	"attempted_at" timestamptz(3),
	"attempts" integer NOT NULL,
	"fence" integer NOT NULL,
	"duration_ms" integer,
	"status" integer,
	"state" text NOT NULL,
	"event_type" text NOT NULL,
	"response_body" text,
	"response_headers" jsonb,
	CONSTRAINT "deliveries_id_created_at_pk" PRIMARY KEY("id","created_at")
) PARTITION BY RANGE ("created_at");
--> statement-breakpoint
CREATE TABLE "tallyhook"."pending_deliveries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"endpoint_id" uuid NOT NULL,
	"event_id" uuid NOT NULL,
	"created_at" timestamptz(3) NOT NULL,
	"queued_at" timestamptz(3) NOT NULL,
	"event_type" text NOT NULL,
	"subject" text,
	"subject_seq" bigint,
	"due_at" timestamptz(3) NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"schedule_step" integer DEFAULT 0 NOT NULL,
	"out_of_order" boolean DEFAULT false NOT NULL,
	"fence" integer DEFAULT 0 NOT NULL,
	"lease_until" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."replays" (
	"id" text PRIMARY KEY NOT NULL,
	"endpoint_id" text NOT NULL,
	"since" timestamptz(3) NOT NULL,
	"until" timestamptz(3) NOT NULL,
	"event_types" text[] NOT NULL,
	"which" text NOT NULL,
	"state" text NOT NULL,
	"position_at" timestamptz(3) NOT NULL,
	"position_id" text NOT NULL,
	"examined" integer DEFAULT 0 NOT NULL,
	"queued" integer DEFAULT 0 NOT NULL,
	"created_by" text NOT NULL,
	"created_at" timestamptz(3) NOT NULL,
	"finished_at" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."import_movements" (
	"import_id" text NOT NULL,
	"n" integer NOT NULL,
	"line" integer NOT NULL,
	"account" text NOT NULL,
	"at" timestamptz(3) NOT NULL,
	"amount" numeric NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."import_rows" (
	"import_id" text NOT NULL,
	"n" integer NOT NULL,
	"line" integer NOT NULL,
	"report" text,
	"result" text,
	"problem" jsonb,
	"identity" text,
	"named" text,
	"operation_id" text,
	"kind" text,
	"occurred_at" timestamptz(3),
	CONSTRAINT "import_rows_import_id_n_pk" PRIMARY KEY("import_id","n")
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."imports" (
	"id" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL,
	"key_id" text NOT NULL,
	"file_name" text NOT NULL,
	"options" jsonb NOT NULL,
	"created_at" timestamptz(3) NOT NULL,
	"state" text NOT NULL,
	"sha256" text DEFAULT '' NOT NULL,
	"fingerprint" text DEFAULT '' NOT NULL,
	"bytes" integer DEFAULT 0 NOT NULL,
	"ignored_columns" text[] DEFAULT '{}' NOT NULL,
	"lines" integer DEFAULT 0 NOT NULL,
	"skipped" integer DEFAULT 0 NOT NULL,
	"checked" integer DEFAULT 0 NOT NULL,
	"to_record" integer DEFAULT 0 NOT NULL,
	"recorded" integer DEFAULT 0 NOT NULL,
	"known" integer DEFAULT 0 NOT NULL,
	"refused" integer DEFAULT 0 NOT NULL,
	"place" integer DEFAULT 0 NOT NULL,
	"proved_account" text DEFAULT '' NOT NULL,
	"summary" jsonb,
	"checked_at" timestamptz(3),
	"turn" integer,
	"reason" text,
	"finished_at" timestamptz(3),
	"lease_until" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."endpoint_health" (
	"endpoint_id" text PRIMARY KEY NOT NULL,
	"consecutive_failures" integer NOT NULL,
	"failing_since" timestamptz(3),
	"paused_until" timestamptz(3),
	"last_success_at" timestamptz(3),
	"rate_used_until" timestamptz(3)
);
--> statement-breakpoint
CREATE TABLE "tallyhook"."endpoints" (
	"id" text PRIMARY KEY NOT NULL,
	"url" text NOT NULL,
	"description" text,
	"event_types" text[] NOT NULL,
	"ordering" text NOT NULL,
	"signing" text[] NOT NULL,
	"encrypted_secrets" text NOT NULL,
	"encrypted_headers" text,
	"public_key" text,
	"rate_per_s" double precision,
	"state" text NOT NULL,
	"state_reason" text,
	"state_at" timestamptz(3) NOT NULL,
	"subscribed_at" timestamptz(3) NOT NULL,
	"skip_before" timestamptz(3),
	"created_by" text NOT NULL,
	"created_at" timestamptz(3) NOT NULL,
	"deleted_at" timestamptz(3)
);
--> statement-breakpoint
ALTER TABLE "tallyhook"."keys" ADD CONSTRAINT "keys_owner_owners_name_fk" FOREIGN KEY ("owner") REFERENCES "tallyhook"."owners"("name") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."day_balances" ADD CONSTRAINT "day_balances_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "tallyhook"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."day_balances" ADD CONSTRAINT "day_balances_at_day_ends_at_fk" FOREIGN KEY ("at") REFERENCES "tallyhook"."day_ends"("at") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."day_ends" ADD CONSTRAINT "day_ends_last_batch_batches_id_fk" FOREIGN KEY ("last_batch") REFERENCES "tallyhook"."batches"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."nft_movements" ADD CONSTRAINT "nft_movements_batch_id_batches_id_fk" FOREIGN KEY ("batch_id") REFERENCES "tallyhook"."batches"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."approvals" ADD CONSTRAINT "approvals_of_decisions" FOREIGN KEY ("subject","n","proposed_by") REFERENCES "tallyhook"."decisions"("subject","n","proposed_by") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."decisions" ADD CONSTRAINT "decisions_operation_id_operations_id_fk" FOREIGN KEY ("operation_id") REFERENCES "tallyhook"."operations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."drift_actions" ADD CONSTRAINT "drift_actions_drift_id_drifts_id_fk" FOREIGN KEY ("drift_id") REFERENCES "tallyhook"."drifts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."period_actions" ADD CONSTRAINT "period_actions_period_id_periods_id_fk" FOREIGN KEY ("period_id") REFERENCES "tallyhook"."periods"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."report_files" ADD CONSTRAINT "report_files_report_id_reports_id_fk" FOREIGN KEY ("report_id") REFERENCES "tallyhook"."reports"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."periods" ADD CONSTRAINT "periods_report_id_reports_id_fk" FOREIGN KEY ("report_id") REFERENCES "tallyhook"."reports"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."periods" ADD CONSTRAINT "periods_closed_by_decision" FOREIGN KEY ("id","decision","closed_by") REFERENCES "tallyhook"."decisions"("subject","n","proposed_by") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoint_health" ADD CONSTRAINT "endpoint_health_endpoint_id_endpoints_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "tallyhook"."endpoints"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "accounts_by_name" ON "tallyhook"."accounts" USING btree (lower("name"),"asset");--> statement-breakpoint
CREATE INDEX "due_postings_in_order" ON "tallyhook"."due_postings" USING btree ("due_at","operation_id") WHERE quarantine_reason is null;--> statement-breakpoint
CREATE INDEX "due_postings_quarantined" ON "tallyhook"."due_postings" USING btree ("quarantined_at") WHERE quarantined_at is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "entries_by_version" ON "tallyhook"."entries" USING btree ("account_id","version");--> statement-breakpoint
CREATE UNIQUE INDEX "nft_movements_by_operation" ON "tallyhook"."nft_movements" USING btree ("operation_id","posting");--> statement-breakpoint
CREATE INDEX "nft_movements_by_token" ON "tallyhook"."nft_movements" USING btree ("contract_id","token_id","id");--> statement-breakpoint
CREATE INDEX "nft_movements_by_batch" ON "tallyhook"."nft_movements" USING btree ("batch_id","id");--> statement-breakpoint
CREATE INDEX "observed_holders_by_token" ON "tallyhook"."observed_holders" USING btree ("contract_id","token_id");--> statement-breakpoint
CREATE INDEX "posting_requests_unposted" ON "tallyhook"."posting_requests" USING btree ("requested_at") WHERE posted_at is null and problem is null;--> statement-breakpoint
CREATE INDEX "posting_requests_unposted_on" ON "tallyhook"."posting_requests" USING btree (lower(account)) WHERE posted_at is null and problem is null;--> statement-breakpoint
CREATE INDEX "posting_requests_openings" ON "tallyhook"."posting_requests" USING btree (lower(account),"effective_at") WHERE kind = 'opening';--> statement-breakpoint
CREATE INDEX "posting_requests_quarantined" ON "tallyhook"."posting_requests" USING btree ("requested_at") WHERE posted_at is null and problem is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "transactions_by_operation" ON "tallyhook"."transactions" USING btree ("operation_id","posting");--> statement-breakpoint
CREATE UNIQUE INDEX "transactions_by_request" ON "tallyhook"."transactions" USING btree ("posting_request_id") WHERE posting_request_id is not null;--> statement-breakpoint
CREATE INDEX "transactions_by_effective" ON "tallyhook"."transactions" USING btree ("effective_at");--> statement-breakpoint
CREATE INDEX "transactions_late" ON "tallyhook"."transactions" USING btree ("id") WHERE recorded_at - effective_at > interval '1 hour';--> statement-breakpoint
CREATE INDEX "observations_by_target" ON "tallyhook"."observations" USING btree ("target","started_at");--> statement-breakpoint
CREATE INDEX "targets_due" ON "tallyhook"."targets" USING btree ("next_poll_at");--> statement-breakpoint
CREATE INDEX "targets_pending" ON "tallyhook"."targets" USING btree ("next_poll_at") WHERE pending;--> statement-breakpoint
CREATE INDEX "targets_absent" ON "tallyhook"."targets" USING btree ("observation_started_at") WHERE last_result = 'absent';--> statement-breakpoint
CREATE INDEX "unprocessed_observations_due" ON "tallyhook"."unprocessed_observations" USING btree ("process_at") WHERE problem is null;--> statement-breakpoint
CREATE INDEX "unprocessed_observations_quarantined" ON "tallyhook"."unprocessed_observations" USING btree ("process_at") WHERE problem is not null;--> statement-breakpoint
CREATE INDEX "operation_effects_by_account" ON "tallyhook"."operation_effects" USING btree (lower(account),"unsettled","amount") WHERE unsettled is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "operations_idempotency" ON "tallyhook"."operations" USING btree ("idempotency_key","owner") WHERE key_held;--> statement-breakpoint
CREATE INDEX "operations_by_released_key" ON "tallyhook"."operations" USING btree ("idempotency_key") WHERE idempotency_key is not null and not key_held;--> statement-breakpoint
CREATE UNIQUE INDEX "operations_reported" ON "tallyhook"."operations" USING btree ("reported_as") WHERE reported_as is not null;--> statement-breakpoint
CREATE INDEX "operations_by_time" ON "tallyhook"."operations" USING btree ("recorded_at");--> statement-breakpoint
CREATE INDEX "operations_ended" ON "tallyhook"."operations" USING btree ("ended_as","recorded_at") WHERE ended_as is not null;--> statement-breakpoint
CREATE INDEX "operations_by_kind" ON "tallyhook"."operations" USING btree ("kind","recorded_at");--> statement-breakpoint
CREATE INDEX "operations_by_from" ON "tallyhook"."operations" USING btree (lower(from_addr),"recorded_at") WHERE from_addr is not null;--> statement-breakpoint
CREATE INDEX "operations_by_to" ON "tallyhook"."operations" USING btree (lower(to_addr),"recorded_at") WHERE to_addr is not null;--> statement-breakpoint
CREATE INDEX "operations_by_contract" ON "tallyhook"."operations" USING btree ("contract_id","recorded_at") WHERE contract_id is not null;--> statement-breakpoint
CREATE INDEX "operations_by_token" ON "tallyhook"."operations" USING btree ("contract_id","token_id","recorded_at") WHERE contract_id is not null;--> statement-breakpoint
CREATE INDEX "operations_by_reference" ON "tallyhook"."operations" USING btree ("reference","recorded_at") WHERE reference is not null;--> statement-breakpoint
CREATE INDEX "operations_unnumbered" ON "tallyhook"."operations" USING btree ("recorded_at") WHERE unnumbered;--> statement-breakpoint
CREATE INDEX "operations_by_fee_mode" ON "tallyhook"."operations" USING btree ("fee_mode","fee_at") WHERE fee_mode is not null;--> statement-breakpoint
CREATE INDEX "operations_by_effect" ON "tallyhook"."operations" USING btree ("happened_at") WHERE happened_at is not null;--> statement-breakpoint
CREATE INDEX "open_operations_by_contract" ON "tallyhook"."open_operations" USING btree ("contract_id") WHERE contract_id is not null;--> statement-breakpoint
CREATE INDEX "open_operations_by_conflict" ON "tallyhook"."open_operations" USING btree ("conflict_key") WHERE conflict_key is not null;--> statement-breakpoint
CREATE INDEX "transitions_by_id" ON "tallyhook"."transitions" USING brin ("id") WITH (autosummarize=on);--> statement-breakpoint
CREATE INDEX "transitions_by_operation" ON "tallyhook"."transitions" USING btree ("operation_id");--> statement-breakpoint
CREATE INDEX "transitions_by_tx" ON "tallyhook"."transitions" USING btree ("tx_log_no") WHERE tx_log_no is not null;--> statement-breakpoint
CREATE INDEX "transitions_by_hash" ON "tallyhook"."transitions" USING btree (lower(tx_hash)) WHERE tx_hash is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "alerts_once" ON "tallyhook"."alerts" USING btree ("rule","subject");--> statement-breakpoint
CREATE INDEX "drift_actions_by_drift" ON "tallyhook"."drift_actions" USING btree ("drift_id","id");--> statement-breakpoint
CREATE INDEX "drifts_open" ON "tallyhook"."drifts" USING btree ("wallet_key") WHERE closed_at is null;--> statement-breakpoint
CREATE INDEX "drifts_open_amount" ON "tallyhook"."drifts" USING btree ("amount") WHERE closed_at is null;--> statement-breakpoint
CREATE INDEX "drifts_by_wallet" ON "tallyhook"."drifts" USING btree ("wallet_key","opened_at");--> statement-breakpoint
CREATE INDEX "drifts_closed" ON "tallyhook"."drifts" USING btree ("closed_at") WHERE closed_at is not null;--> statement-breakpoint
CREATE INDEX "tokens_by_uri" ON "tallyhook"."tokens" USING btree ("contract_id",hashtextextended(uri, 0)) WHERE uri is not null;--> statement-breakpoint
CREATE INDEX "wallets_by_observation" ON "tallyhook"."wallets" USING btree ("observed_at");--> statement-breakpoint
CREATE INDEX "wallets_vanished" ON "tallyhook"."wallets" USING btree ("vanished_at") WHERE vanished_at is not null;--> statement-breakpoint
CREATE INDEX "period_actions_by_period" ON "tallyhook"."period_actions" USING btree ("period_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "period_actions_ended_once" ON "tallyhook"."period_actions" USING btree ("period_id","action") WHERE action in ('closed', 'signed', 'reopened');--> statement-breakpoint
CREATE INDEX "report_files_due" ON "tallyhook"."report_files" USING btree ("due_at") WHERE written_at is null;--> statement-breakpoint
CREATE INDEX "periods_by_end" ON "tallyhook"."periods" USING btree ("period_to");--> statement-breakpoint
CREATE UNIQUE INDEX "reports_once_per_period" ON "tallyhook"."reports" USING btree ("kind","period_from","period_to") WHERE requested_by = 'schedule';--> statement-breakpoint
CREATE INDEX "reports_by_time" ON "tallyhook"."reports" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "attempt_minutes_by_time" ON "tallyhook"."attempt_minutes" USING btree ("at");--> statement-breakpoint
CREATE INDEX "attempts_by_time" ON "tallyhook"."attempts" USING btree ("at");--> statement-breakpoint
CREATE UNIQUE INDEX "replays_running" ON "tallyhook"."replays" USING btree ("endpoint_id") WHERE state = 'running';--> statement-breakpoint
CREATE INDEX "deliveries_by_endpoint" ON "tallyhook"."deliveries" USING btree ("endpoint_id","id");--> statement-breakpoint
CREATE INDEX "deliveries_failed" ON "tallyhook"."deliveries" USING btree ("state","id") WHERE state in ('exhausted', 'cancelled');--> statement-breakpoint
CREATE INDEX "pending_deliveries_due" ON "tallyhook"."pending_deliveries" USING btree ("endpoint_id","due_at");--> statement-breakpoint
CREATE INDEX "pending_deliveries_by_subject" ON "tallyhook"."pending_deliveries" USING btree ("endpoint_id","subject","subject_seq") WHERE subject is not null;--> statement-breakpoint
CREATE INDEX "import_movements_account" ON "tallyhook"."import_movements" USING btree ("import_id","account","at");--> statement-breakpoint
CREATE INDEX "import_rows_result" ON "tallyhook"."import_rows" USING btree ("result","import_id","n");--> statement-breakpoint
CREATE INDEX "import_rows_identity" ON "tallyhook"."import_rows" USING btree ("identity") WHERE identity is not null;--> statement-breakpoint
CREATE INDEX "import_rows_named" ON "tallyhook"."import_rows" USING btree ("named") WHERE named is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "imports_going" ON "tallyhook"."imports" USING btree ("fingerprint") WHERE state in ('checking', 'recording', 'ready', 'refused');--> statement-breakpoint
CREATE INDEX "imports_working" ON "tallyhook"."imports" USING btree ("created_at") WHERE state in ('checking', 'recording');