-- compatible from 0002_rights
-- Of a daemon: whether it says that it ends, so that it is not lost. Programs of release 0.2.0 do not.
ALTER TABLE "tallyhook"."daemons" ADD COLUMN "retires" boolean DEFAULT false NOT NULL;
