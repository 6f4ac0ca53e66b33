-- compatible from 0002_rights
-- Each event finds its endpoints among ten thousand by an index, which has no list of pending entries: every event would
-- read that.
CREATE INDEX "endpoints_by_type" ON "tallyhook"."endpoints" USING gin ("event_types") WITH (fastupdate=off) WHERE deleted_at is null;--> statement-breakpoint
CREATE INDEX "endpoints_by_subscription" ON "tallyhook"."endpoints" USING btree ("subscribed_at");
