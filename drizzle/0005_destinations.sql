-- compatible from 0002_rights
-- Destinations of deliveries other than HTTP, and authentication to receivers. Both hold credentials, and are encrypted.
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "encrypted_destination" text;--> statement-breakpoint
ALTER TABLE "tallyhook"."endpoints" ADD COLUMN "encrypted_auth" text;
