-- The body of an event as webhooks and the feed carry it, byte for byte the same at every call: a change of this
-- function must leave the bodies of recorded events as they are. Null without its shape, which is inserted with it.
-- In plpgsql, which plans it once in a session, and not in every statement that calls it.
create or replace function tallyhook.event_body(e tallyhook.events) returns text language plpgsql stable parallel safe as $$
begin return (
  select '{"id":"evt_' || e.id || '","type":"' || e.type || '","timestamp":"'
    || to_char(e.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '","data":{' || (
      select coalesce(m.members || ',', '')
      from (select s.names from tallyhook.event_shapes s where s.id = e.shape limit 1) s
      cross join lateral (
        select string_agg(to_json(v.name)::text || ':' || case v.line when '$'
          then to_json(substr(e.subject, strpos(e.subject, ':') + 1))::text
          else coalesce(nullif(v.line, ''), 'null') end, ',' order by v.n) as members
        from unnest(s.names, string_to_array(e.data, chr(10))) with ordinality as v(name, line, n)
      ) m
    ) || '"subject_seq":' || e.subject_seq || '}}');
end $$;
--> statement-breakpoint
-- Whether an endpoint subscribes to an event. An `endpoint.test` goes to its own endpoint only; an endpoint receives no
-- other event about itself.
create or replace function tallyhook.is_subscribed(p tallyhook.endpoints, type text, subject text) returns boolean
language sql immutable parallel safe as $$
  select p.deleted_at is null and case
    when type = 'endpoint.test' then subject = 'endpoint:' || p.id
    else p.event_types && array['*', type, split_part(type, '.', 1) || '.*'] and subject <> 'endpoint:' || p.id end
$$;
--> statement-breakpoint
-- The patterns of types one of which an endpoint has that subscribes to events of this type; null for `endpoint.test`,
-- which goes to its own endpoint, whatever that subscribes to. By them an index finds the endpoints of an event: there
-- may be ten thousand others.
create or replace function tallyhook.patterns_of(type text) returns text[] language sql immutable parallel safe as $$
  select case when type <> 'endpoint.test' then array['*', type, split_part(type, '.', 1) || '.*'] end
$$;
--> statement-breakpoint
-- The id of the delivery of an event to an endpoint: the time in the event's id and a hash of both, so making it again
-- changes nothing. One expression, which is planned with the statement that calls it.
create or replace function tallyhook.delivery_id(event uuid, endpoint text) returns uuid language sql immutable parallel safe as $$
  select overlay(overlay(substr(event::text, 1, 14) || '7' || substr(md5('evt_' || event || endpoint), 1, 18)
    placing '-8' from 19 for 0) placing '-' from 24 for 0)::uuid
$$;
--> statement-breakpoint
-- Records events with the next numbers of their subjects, and a delivery for every endpoint that subscribes to them; those
-- of a disabled endpoint wait until it is enabled. Returns the number of each event and how many deliveries there are.
-- A producer that numbers the events of a subject itself, under a lock of its own, gives `seq`. The other subjects are
-- locked in the order of their names, so that concurrent producers cannot deadlock; those with their last event have no
-- other producer.
create or replace function tallyhook.emit_events(at timestamptz, drafts jsonb, shapes jsonb)
returns table (event uuid, number bigint, made int) language plpgsql
set search_path = pg_catalog, pg_temp
-- Planning each call costs more than executing it.
set plan_cache_mode = force_generic_plan as $$
begin
  return query
  with x as materialized (
    select * from jsonb_to_recordset(drafts) as x(n int, id uuid, type text, subject text, seq bigint,
      occurred_at timestamptz, shape bigint, data text, last boolean)
  ), counted as materialized (
    select x.subject, count(*) as added, bool_or(x.last is true) as ended from x where x.seq is null
    group by x.subject
  ), kept as (
    insert into tallyhook.subjects as s (subject, last_seq)
    select c.subject, c.added from counted c where not c.ended order by c.subject
    on conflict (subject) do update set last_seq = s.last_seq + excluded.last_seq
    returning s.subject, s.last_seq
  ), ended as (
    delete from tallyhook.subjects s where s.subject = any(array(select c.subject from counted c where c.ended))
    returning s.subject, s.last_seq
  ), numbered as (
    select k.subject, k.last_seq from kept k
    union all
    select c.subject, coalesce(d.last_seq, 0) + c.added
    from counted c left join ended d on d.subject = c.subject where c.ended
  ), e as materialized (
    select x.id, x.type, x.subject, x.occurred_at, x.shape, x.data, tallyhook.patterns_of(x.type) as patterns,
      coalesce(x.seq, s.last_seq + 1 - row_number() over (partition by x.subject order by x.n desc)) as seq
    from x left join numbered s on s.subject = x.subject
  ), unnumbered as (
    -- Numbered by the identity column only after every subject is locked.
    insert into tallyhook.unnumbered_events (recorded_at, ids)
    select at, array(select x.id from x order by x.n)
    from (select count(*) as locked from numbered) l where l.locked >= 0 and exists (select from x)
  ), shaped as (
    insert into tallyhook.event_shapes (id, names)
    select n.id, n.names from jsonb_to_recordset(shapes) as n(id bigint, names text[])
    where not exists (select from tallyhook.event_shapes k where k.id = n.id)
  ), recorded as (
    insert into tallyhook.events (id, type, subject, subject_seq, occurred_at, recorded_at, shape, data)
    select e.id, e.type, e.subject, e.seq, e.occurred_at, at, e.shape, e.data from e
  ), delivered as (
    insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, event_type, subject, subject_seq,
      due_at, queued_at)
    select tallyhook.delivery_id(e.id, p.id), at, substr(p.id, 4)::uuid, e.id, e.type,
      case p.ordering when 'subject' then e.subject end, case p.ordering when 'subject' then e.seq end, at, at
    from e cross join lateral (
      select p.id, p.ordering from tallyhook.endpoints p
      where p.deleted_at is null and p.event_types && e.patterns and tallyhook.is_subscribed(p, e.type, e.subject)
      union all
      select p.id, p.ordering from tallyhook.endpoints p
      where e.patterns is null and p.id = substr(e.subject, 10) and tallyhook.is_subscribed(p, e.type, e.subject)) p
    returning 1
  )
  select e.id, e.seq, (select count(*)::int from delivered) from e;
end $$;
--> statement-breakpoint
-- Numbers committed events for the pull feed, of at most so many calls of emit_events; returns how many events. The row
-- lock on the feed elects one daemon: another gets 0 at once, or waits. Until its transaction ends no other event is
-- numbered, so an endpoint that is added in it gets every later event. Events that were recorded before an endpoint
-- subscribed, by producers that may not have seen it, get their missing deliveries here.
create or replace function tallyhook.number_events(emits int, waits boolean) returns int language plpgsql
set search_path = pg_catalog, pg_temp
-- The planner would read whole tables, however large.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
declare last bigint; found int; since timestamptz; missed uuid[];
begin
  -- Statements of their own: one that locks and reads at once may read the number from before the previous commit.
  if waits then
    select f.last_seq into last from tallyhook.feed f where f.name = 'events' for update;
  else
    select f.last_seq into last from tallyhook.feed f where f.name = 'events' for update skip locked;
  end if;
  if last is null then
    return 0;
  end if;
  with taken as (
    delete from tallyhook.unnumbered_events u where u.id = any(array(
      select o.id from tallyhook.unnumbered_events o order by o.id limit emits))
    returning u.id, u.recorded_at, u.ids
  ), placed as (
    select t.recorded_at, x.id, row_number() over (order by t.id, x.n) as place
    from taken t cross join lateral unnest(t.ids) with ordinality as x(id, n)
  ), numbered as (
    insert into tallyhook.numbered_events as n (first_seq, recorded_at, ids, recorded_ats)
    select last + min(p.place), min(p.recorded_at), array_agg(p.id order by p.place),
      array_agg(p.recorded_at order by p.place)
    from placed p group by (p.place - 1) / 256
    returning cardinality(n.ids) as events, n.recorded_at
  ), moved as (
    update tallyhook.feed f set last_seq = last + (select sum(n.events) from numbered n)
    where f.name = 'events' and exists (select from numbered)
  )
  select coalesce(sum(n.events), 0), min(n.recorded_at) - interval '1 minute' into found, since from numbered n;
  if exists (select from tallyhook.endpoints p where p.subscribed_at > since) then
    with f as materialized (
      select x.id, x.at from tallyhook.numbered_events n
      cross join lateral unnest(n.ids, n.recorded_ats) as x(id, at) where n.first_seq > last
    ), made as (
      insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, event_type, subject, subject_seq,
        due_at, queued_at)
      select tallyhook.delivery_id(e.id, p.id), e.recorded_at, substr(p.id, 4)::uuid, e.id, e.type,
        case p.ordering when 'subject' then e.subject end, case p.ordering when 'subject' then e.subject_seq end,
        e.recorded_at, e.recorded_at
      from tallyhook.endpoints p join f on f.at < p.subscribed_at + interval '1 minute'
      cross join lateral (
        select v.id, v.type, v.subject, v.subject_seq, v.recorded_at from tallyhook.events v
        where v.recorded_at = f.at and v.id = f.id offset 0) e
      where p.subscribed_at > since and tallyhook.is_subscribed(p, e.type, e.subject) and not exists (
        select from tallyhook.deliveries d
        where d.created_at = e.recorded_at and d.id = tallyhook.delivery_id(e.id, p.id))
      on conflict do nothing returning pending_deliveries.id
    )
    select array_agg(made.id) into missed from made;
    -- Those that had ended.
    delete from tallyhook.pending_deliveries q using tallyhook.deliveries d
      where q.id = any(missed) and d.id = q.id and d.created_at = q.created_at;
  end if;
  return found;
end $$;
--> statement-breakpoint
revoke execute on function tallyhook.event_body, tallyhook.is_subscribed, tallyhook.patterns_of, tallyhook.delivery_id,
  tallyhook.emit_events, tallyhook.number_events from public;
--> statement-breakpoint
grant execute on function tallyhook.event_body, tallyhook.is_subscribed, tallyhook.patterns_of, tallyhook.delivery_id,
  tallyhook.emit_events, tallyhook.number_events to tallyhook_writer;
