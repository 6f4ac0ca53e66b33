-- compatible from 0002_rights
-- The attempts of a minute are counted again, from the attempts that are kept: also by event type, of all endpoints
-- together, and by how long they took. Programs of release 0.2.0 count theirs in attempt_minutes.
CREATE TABLE "tallyhook"."attempt_figures" (
	"endpoint_id" text NOT NULL,
	"at" timestamptz(3) NOT NULL,
	"event_type" text NOT NULL,
	"delivered" integer NOT NULL,
	"failed" integer NOT NULL,
	"duration_ms" bigint NOT NULL,
	"slowest_ms" integer NOT NULL,
	"latencies" integer[] NOT NULL,
	CONSTRAINT "attempt_figures_endpoint_id_at_event_type_pk" PRIMARY KEY("endpoint_id","at","event_type")
);
--> statement-breakpoint
CREATE INDEX "attempt_figures_by_time" ON "tallyhook"."attempt_figures" USING btree ("at");--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON "tallyhook"."attempt_figures" TO tallyhook_writer;
