-- Each event finds its endpoints among ten thousand by an index.
CREATE INDEX "endpoints_by_type" ON "tallyhook"."endpoints" USING gin ("event_types") WHERE deleted_at is null;--> statement-breakpoint
CREATE INDEX "endpoints_by_subscription" ON "tallyhook"."endpoints" USING btree ("subscribed_at");
