-- What one endpoint can be told: a filter over the body of events, its own retry schedule, timeout and attempts in
-- flight. Of its health: that its circuit is to be tried now, and that what failed before waits no longer.
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "filter" jsonb;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "retry_schedule" integer[];--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "timeout_ms" integer;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "max_in_flight" integer;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoint_health" ADD COLUMN "probe_requested" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoint_health" ADD COLUMN "recovered_at" timestamptz(3);--> statement-breakpoint
CREATE INDEX "endpoints_filtered" ON "tallyhook"."endpoints" USING btree ("id") WHERE filter is not null and deleted_at is null;--> statement-breakpoint
CREATE INDEX "replays_by_endpoint" ON "tallyhook"."replays" USING btree ("endpoint_id","id");--> statement-breakpoint
-- It also takes the names of a shape that is not stored yet.
drop function if exists tallyhook.event_body(tallyhook.events);
