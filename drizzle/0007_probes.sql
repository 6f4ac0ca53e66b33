-- compatible from 0002_rights
-- Of the health of an endpoint: that its circuit is to be tried now, and that what failed before waits no longer.
ALTER TABLE "tallyhook"."endpoint_health" ADD COLUMN "probe_requested" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoint_health" ADD COLUMN "recovered_at" timestamptz(3);
