-- compatible from 0002_rights
-- Named consumers of the feed: a position of each, and the events that it has read and not acknowledged.
create table tallyhook.consumers (
  id text primary key not null,
  name text not null,
  event_types text[] not null,
  redeliver_after_s integer not null,
  created_by text not null,
  created_at timestamptz(3) not null,
  seeks integer default 0 not null,
  missed bigint default 0 not null,
  read_to bigint not null
);
--> statement-breakpoint
create unique index consumers_by_name on tallyhook.consumers (created_by, name);
--> statement-breakpoint
create table tallyhook.consumed_events (
  consumer_id text not null,
  seq bigint not null,
  event_id uuid not null,
  recorded_at timestamptz(3) not null,
  subject text not null,
  handed_out integer default 0 not null,
  lease_until timestamptz(3),
  constraint consumed_events_consumer_id_seq_pk primary key (consumer_id, seq),
  constraint consumed_events_consumer_id_consumers_id_fk foreign key (consumer_id)
    references tallyhook.consumers (id) on delete cascade
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
--> statement-breakpoint
create index consumed_events_by_subject on tallyhook.consumed_events (consumer_id, subject);
--> statement-breakpoint
grant select, insert, update, delete on tallyhook.consumers, tallyhook.consumed_events to tallyhook_writer;
