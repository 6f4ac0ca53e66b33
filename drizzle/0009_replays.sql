-- compatible from 0002_rights
-- The replays of an endpoint, newest first.
CREATE INDEX "replays_by_endpoint" ON "tallyhook"."replays" USING btree ("endpoint_id","id");
