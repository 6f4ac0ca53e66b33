-- compatible from 0002_rights
-- What one endpoint can be told: a filter over the body of events, its own retry schedule, timeout and attempts in
-- flight.
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "filter" jsonb;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "retry_schedule" integer[];--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "timeout_ms" integer;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "max_in_flight" integer;--> statement-breakpoint
CREATE INDEX "endpoints_filtered" ON "tallyhook"."endpoints" USING btree ("id") WHERE filter is not null and deleted_at is null;
