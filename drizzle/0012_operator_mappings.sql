-- compatible from 0002_rights
-- Two owners map an operator to the wallet that it pays from: the decision is the address of the wallet.
ALTER TABLE "tallyhook"."decisions" ADD CONSTRAINT "decisions_by_decision" UNIQUE("subject","n","decision");--> statement-breakpoint
alter table tallyhook.decisions drop constraint decisions_known,
  add constraint decisions_known check (case when subject like 'op\_%' then decision in ('executed', 'not_executed')
    when subject like 'drf\_%' then decision in ('book', 'link', 'dismiss')
    when subject like 'per\_%' then decision in ('close', 'reopen')
    when subject like 'operator:%' then length(decision) = 42 else false end);
--> statement-breakpoint
CREATE TABLE "tallyhook"."operator_wallets" (
	"account" text NOT NULL,
	"n" smallint NOT NULL,
	"addr" text NOT NULL,
	"rejected_by" text,
	"rejected_at" timestamptz(3),
	"reject_reason" text,
	CONSTRAINT "operator_wallets_account_n_pk" PRIMARY KEY("account","n"),
	CONSTRAINT "operator_wallets_rejected_by_someone" CHECK ((rejected_at is null) = (rejected_by is null))
);
--> statement-breakpoint
ALTER TABLE "tallyhook"."operator_wallets" ADD CONSTRAINT "operator_wallets_decided" FOREIGN KEY ("account","n","addr") REFERENCES "tallyhook"."decisions"("subject","n","decision") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
-- An operator has one mapping that is proposed or in force, and so has a wallet.
CREATE UNIQUE INDEX "operator_wallets_once" ON "tallyhook"."operator_wallets" USING btree ("account") WHERE rejected_at is null;--> statement-breakpoint
CREATE UNIQUE INDEX "operator_wallets_by_wallet" ON "tallyhook"."operator_wallets" USING btree (lower("addr")) WHERE rejected_at is null;--> statement-breakpoint
grant select, insert, update (rejected_by, rejected_at, reject_reason) on tallyhook.operator_wallets to tallyhook_writer;
