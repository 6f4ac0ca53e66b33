-- The body of an event as webhooks and the feed carry it, byte for byte the same at every call: a change of this
-- function must leave the bodies of recorded events as they are. Null without the names of its members.
-- In plpgsql, which plans it once in a session, and not in every statement that calls it.
create or replace function tallyhook.body_of(e tallyhook.events, names text[]) returns text
language plpgsql stable parallel safe as $$
begin return (
  select '{"id":"evt_' || e.id || '","type":"' || e.type || '","timestamp":"'
    || to_char(e.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '","data":{' || (
      select coalesce(m.members || ',', '')
      from (select names where names is not null) s
      cross join lateral (
        select string_agg(to_json(v.name)::text || ':' || case v.line when '$'
          then to_json(substr(e.subject, strpos(e.subject, ':') + 1))::text
          else coalesce(nullif(v.line, ''), 'null') end, ',' order by v.n) as members
        from unnest(s.names, string_to_array(e.data, chr(10))) with ordinality as v(name, line, n)
      ) m
    ) || '"subject_seq":' || e.subject_seq || '}}');
end $$;
--> statement-breakpoint
-- Of a recorded event. Null without its shape, which is inserted with it. Roles that may read events may be granted it:
-- it calls only what every role may call.
create or replace function tallyhook.event_body(e tallyhook.events) returns text language plpgsql stable parallel safe as $$
begin return tallyhook.body_of(e, (select s.names from tallyhook.event_shapes s where s.id = e.shape limit 1));
end $$;
--> statement-breakpoint
-- Removes the bodies of events; returns those that had one. What is left of `data` is when it was removed and the hash of
-- the body that webhooks had: a shape of its own, -1, so that event_body makes the tombstone as any other body. In a
-- function, because the daemon may change no event otherwise.
create or replace function tallyhook.remove_bodies(ids uuid[], recorded timestamptz[], at timestamptz)
returns table (event uuid, event_at timestamptz) language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  insert into tallyhook.event_shapes (id, names)
  select -1, '{body_removed_at,body_sha256}'
  where not exists (select from tallyhook.event_shapes s where s.id = -1);
  return query
  update tallyhook.events e set shape = -1, data = to_json(to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    || chr(10) || to_json(encode(sha256(convert_to(tallyhook.event_body(e), 'UTF8')), 'hex'))
  from unnest(ids, recorded) as x(id, recorded_at)
  where e.recorded_at = x.recorded_at and e.id = x.id and e.shape <> -1
    and e.recorded_at between (select min(r) from unnest(recorded) r) and (select max(r) from unnest(recorded) r)
  returning e.id, e.recorded_at;
end $$;
--> statement-breakpoint
revoke execute on function tallyhook.remove_bodies from public;
--> statement-breakpoint
grant execute on function tallyhook.remove_bodies to tallyhook_writer;
--> statement-breakpoint
-- The patterns that match a type of events, as `patternsOf` of ../../src/resources/delivery/events.ts has them. What
-- subscribes has one of them, so an index finds the endpoints of an event: there may be ten thousand others.
create or replace function tallyhook.patterns_of(type text) returns text[] language sql immutable parallel safe as $$
  select array[type, split_part(type, '.', 1) || '.*', '*']
$$;
--> statement-breakpoint
-- Whether an endpoint subscribes to an event. An `endpoint.test` goes to its own endpoint only; an endpoint receives no
-- other event about itself.
create or replace function tallyhook.is_subscribed(p tallyhook.endpoints, type text, subject text) returns boolean
language sql immutable parallel safe as $$
  select p.deleted_at is null and case
    when type = 'endpoint.test' then subject = 'endpoint:' || p.id
    else p.event_types && tallyhook.patterns_of(type) and subject <> 'endpoint:' || p.id end
$$;
--> statement-breakpoint
-- What stands at a path of a document. A list on the way counts as each of its objects, and one at the end as each of
-- its items, and as itself; of either the first hundred, which bounds what a filter costs.
create or replace function tallyhook.values_at(document jsonb, path text[]) returns jsonb[]
language plpgsql immutable parallel safe as $$
declare
  v jsonb := document;
  found jsonb[] := '{}';
begin
  for n in 1..cardinality(path) loop
    if jsonb_typeof(v) = 'array' then
      for i in 0..least(jsonb_array_length(v), 100) - 1 loop
        if jsonb_typeof(v -> i) = 'object' then
          found := found || tallyhook.values_at(v -> i, path[n:]);
        end if;
      end loop;
      return found[:100];
    end if;
    v := v -> path[n];
    if v is null then
      return '{}';
    end if;
  end loop;
  if jsonb_typeof(v) = 'array' then
    for i in 0..least(jsonb_array_length(v), 100) - 1 loop
      found := array_append(found, v -> i);
    end loop;
  end if;
  return array_append(found, v);
end $$;
--> statement-breakpoint
-- The number that a value is, or that its text is in decimal digits; null for any other value. So long a text is no
-- number, because casting it would cost too much.
create or replace function tallyhook.decimal_of(v jsonb) returns numeric language plpgsql immutable strict parallel safe as $$
declare digits text;
begin
  if jsonb_typeof(v) = 'number' then
    return v::numeric;
  end if;
  digits := v #>> '{}';
  if jsonb_typeof(v) = 'string' and length(digits) <= 1000 and digits ~ '^-?[0-9]+(\.[0-9]+)?$' then
    return digits::numeric;
  end if;
  return null;
end $$;
--> statement-breakpoint
-- -1, 0 or 1 as a value is less than, equal to or greater than a plain one; null if they cannot be compared, because
-- only one of them is a number, or is a text. Texts compare by code points; those that may be addresses or hashes of
-- transactions, by their length, without case.
create or replace function tallyhook.compare(v jsonb, plain jsonb) returns int
language plpgsql immutable strict parallel safe as $$
declare
  x numeric := tallyhook.decimal_of(v);
  y numeric := tallyhook.decimal_of(plain);
  s text;
  t text;
begin
  if x is not null and y is not null then
    return case when x < y then -1 when x = y then 0 else 1 end;
  end if;
  if x is not null or y is not null or jsonb_typeof(v) <> jsonb_typeof(plain) then
    return null;
  end if;
  if jsonb_typeof(v) <> 'string' then
    return case when v = plain then 0 end;
  end if;
  s := v #>> '{}';
  t := plain #>> '{}';
  if length(s) in (42, 66) and length(t) = length(s) then
    s := lower(s);
    t := lower(t);
  end if;
  return case when s collate "C" < t collate "C" then -1 when s collate "C" = t collate "C" then 0 else 1 end;
end $$;
--> statement-breakpoint
-- Whether a value is equal to one of a list of plain ones. Texts that are no numbers are looked up, since comparing each
-- would cost a hundred times as much.
create or replace function tallyhook.is_listed(v jsonb, plains jsonb) returns boolean
language plpgsql immutable strict parallel safe as $$
declare s text;
begin
  if tallyhook.decimal_of(v) is not null then
    for i in 0..jsonb_array_length(plains) - 1 loop
      if tallyhook.compare(v, plains -> i) = 0 then
        return true;
      end if;
    end loop;
    return false;
  end if;
  if jsonb_typeof(v) <> 'string' then
    return jsonb_typeof(v) in ('boolean', 'null') and plains @> v;
  end if;
  s := v #>> '{}';
  return plains ? s or length(s) in (42, 66) and lower(plains::text)::jsonb ? lower(s);
end $$;
--> statement-breakpoint
-- Whether what stands at a path meets a condition: a plain value, or an object of operators, each of which must hold.
-- Loops and not queries: planning those would cost more than the comparisons.
create or replace function tallyhook.meets_condition(present jsonb[], condition jsonb) returns boolean
language plpgsql immutable strict parallel safe as $$
declare
  op text;
  operand jsonb;
  v jsonb;
  order_of int;
  holds boolean;
begin
  if jsonb_typeof(condition) <> 'object' then
    foreach v in array present loop
      if tallyhook.compare(v, condition) = 0 then
        return true;
      end if;
    end loop;
    return false;
  end if;
  for op, operand in select c.key, c.value from jsonb_each(condition) as c loop
    holds := false;
    if op in ('$eq', '$ne') then
      holds := tallyhook.meets_condition(present, operand) = (op = '$eq');
    elsif op in ('$in', '$nin') then
      foreach v in array present loop
        holds := tallyhook.is_listed(v, operand);
        exit when holds;
      end loop;
      holds := holds = (op = '$in');
    elsif op = '$exists' then
      holds := (cardinality(present) > 0) = operand::boolean;
    elsif op = '$not' then
      holds := not tallyhook.meets_condition(present, operand);
    else
      foreach v in array present loop
        order_of := tallyhook.compare(v, operand);
        holds := op = '$gt' and order_of > 0 or op = '$gte' and order_of >= 0 or op = '$lt' and order_of < 0
          or op = '$lte' and order_of <= 0;
        exit when holds;
      end loop;
    end if;
    if holds is not true then
      return false;
    end if;
  end loop;
  return true;
end $$;
--> statement-breakpoint
-- Whether the body of an event passes the filter of an endpoint, all of whose members must hold. The one definition of
-- filters; `src/webhooks/endpoints/filter.ts` checks their form and bounds their size before they are stored.
create or replace function tallyhook.matches_filter(body jsonb, filter jsonb) returns boolean
language plpgsql immutable strict parallel safe as $$
declare
  name text;
  condition jsonb;
  part jsonb;
  holds boolean;
begin
  for name, condition in select m.key, m.value from jsonb_each(filter) as m loop
    holds := false;
    if name in ('$and', '$or') then
      for part in select c.item from jsonb_array_elements(condition) as c(item) loop
        holds := tallyhook.matches_filter(body, part);
        exit when holds = (name = '$or');
      end loop;
    elsif name = '$not' then
      holds := not tallyhook.matches_filter(body, condition);
    else
      holds := tallyhook.meets_condition(tallyhook.values_at(body, string_to_array(name, '.')), condition);
    end if;
    if holds is not true then
      return false;
    end if;
  end loop;
  return true;
end $$;
--> statement-breakpoint
-- The body of an event for filters; null if jsonb cannot hold it, such as a text with NUL that the service sent.
create or replace function tallyhook.document_of(body text) returns jsonb language plpgsql immutable as $$
begin
  return body::jsonb;
exception when data_exception then
  return null;
end $$;
--> statement-breakpoint
-- Of an event that is being recorded, with the shapes that may be inserted with it.
create or replace function tallyhook.document_of(e tallyhook.events, shapes jsonb) returns jsonb
language plpgsql stable as $$
begin
  return tallyhook.document_of(tallyhook.body_of(e, coalesce(
    (select n.names from jsonb_to_recordset(shapes) as n(id bigint, names text[]) where n.id = e.shape limit 1),
    (select s.names from tallyhook.event_shapes s where s.id = e.shape limit 1))));
end $$;
--> statement-breakpoint
-- Whether the filter of an endpoint lets a recorded event pass; one that cannot be decided passes.
create or replace function tallyhook.passes_filter(e tallyhook.events, filter jsonb) returns boolean
language sql stable as $$
  select e.type = 'endpoint.test' or coalesce(
    tallyhook.matches_filter(tallyhook.document_of(tallyhook.event_body(e)), filter), true)
$$;
--> statement-breakpoint
-- The id of the delivery of an event to an endpoint: the time in the event's id and a hash of both, so making it again
-- changes nothing. One expression, which is planned with the statement that calls it.
create or replace function tallyhook.delivery_id(event uuid, endpoint text) returns uuid language sql immutable parallel safe as $$
  select overlay(overlay(substr(event::text, 1, 14) || '7' || substr(md5('evt_' || event || endpoint), 1, 18)
    placing '-8' from 19 for 0) placing '-' from 24 for 0)::uuid
$$;
--> statement-breakpoint
-- Records events with the next numbers of their subjects, and a delivery for every endpoint that subscribes to them and
-- whose filter they pass; those of a disabled endpoint wait until it is enabled. Bodies are only made of events to which
-- an endpoint with a filter subscribes. Returns the number of each event and how many deliveries there are.
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
    select x.id, x.type, x.subject, x.occurred_at, x.shape, x.data,
      -- None of an `endpoint.test`, which goes to its own endpoint in any case.
      case when x.type <> 'endpoint.test' then tallyhook.patterns_of(x.type) end as patterns,
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
  ), documents as materialized (
    -- Executed by the first filter that reads it, and not without one.
    select e.id, tallyhook.document_of(
      row(e.id, e.type, e.subject, e.seq, e.occurred_at, at, e.shape, e.data)::tallyhook.events, shapes) as document
    from e where exists (
      select from tallyhook.endpoints p
      where p.filter is not null and p.deleted_at is null and p.event_types && e.patterns
        and e.subject <> 'endpoint:' || p.id)
  ), delivered as (
    insert into tallyhook.pending_deliveries (id, created_at, endpoint_id, event_id, event_type, subject, subject_seq,
      due_at, queued_at)
    select tallyhook.delivery_id(e.id, p.id), at, substr(p.id, 4)::uuid, e.id, e.type,
      case p.ordering when 'subject' then e.subject end, case p.ordering when 'subject' then e.seq end, at, at
    from e cross join lateral (
      select p.id, p.ordering, p.filter from tallyhook.endpoints p
      -- As `is_subscribed` says, which would look for the patterns a second time.
      where p.deleted_at is null and p.event_types && e.patterns and e.subject <> 'endpoint:' || p.id
      union all
      select p.id, p.ordering, null from tallyhook.endpoints p
      where e.patterns is null and p.id = substr(e.subject, 10) and tallyhook.is_subscribed(p, e.type, e.subject)) p
    where p.filter is null or coalesce(
      tallyhook.matches_filter((select d.document from documents d where d.id = e.id limit 1), p.filter), true)
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
        select v.id, v.type, v.subject, v.subject_seq, v.recorded_at, v as event from tallyhook.events v
        where v.recorded_at = f.at and v.id = f.id and v.shape <> -1 offset 0) e
      where p.subscribed_at > since and tallyhook.is_subscribed(p, e.type, e.subject)
        and (p.filter is null or tallyhook.passes_filter(e.event, p.filter)) and not exists (
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
  tallyhook.values_at,
  tallyhook.decimal_of, tallyhook.compare, tallyhook.is_listed, tallyhook.meets_condition, tallyhook.matches_filter,
  tallyhook.document_of(text), tallyhook.document_of(tallyhook.events, jsonb), tallyhook.passes_filter,
  tallyhook.emit_events, tallyhook.number_events from public;
--> statement-breakpoint
grant execute on function tallyhook.event_body, tallyhook.is_subscribed, tallyhook.patterns_of, tallyhook.delivery_id,
  tallyhook.values_at,
  tallyhook.decimal_of, tallyhook.compare, tallyhook.is_listed, tallyhook.meets_condition, tallyhook.matches_filter,
  tallyhook.document_of(text), tallyhook.document_of(tallyhook.events, jsonb), tallyhook.passes_filter,
  tallyhook.emit_events, tallyhook.number_events to tallyhook_writer;
