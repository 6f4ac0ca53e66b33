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
-- The attempts of a minute are counted again, from the attempts that are kept: also by event type, of all endpoints
-- together, and by how long they took.
TRUNCATE "tallyhook"."attempt_minutes";--> statement-breakpoint
ALTER TABLE "tallyhook"."attempt_minutes" DROP CONSTRAINT "attempt_minutes_endpoint_id_at_pk";--> statement-breakpoint
ALTER TABLE "tallyhook"."attempt_minutes" ADD COLUMN "event_type" text NOT NULL;--> statement-breakpoint
ALTER TABLE "tallyhook"."attempt_minutes" ADD COLUMN "latencies" integer[] NOT NULL;--> statement-breakpoint
ALTER TABLE "tallyhook"."attempt_minutes" ADD CONSTRAINT "attempt_minutes_endpoint_id_at_event_type_pk" PRIMARY KEY("endpoint_id","at","event_type");--> statement-breakpoint
-- It also takes the names of a shape that is not stored yet.
drop function if exists tallyhook.event_body(tallyhook.events);
