-- Stable as `extract`, so that it is a part of the plans of its callers.
create or replace function tallyhook.epoch_ms(at timestamptz) returns float8 language sql stable parallel safe as $$
  select (extract(epoch from at) * 1000)::float8
$$;
--> statement-breakpoint
-- Claims due deliveries of the endpoints in `quotas`, and then examines which endpoints have more: the served ones, or
-- without them a page of all with pending deliveries. One round trip, and a commit that does not wait for the disk: a
-- claim that is lost in a crash of the database is made again, and the delivery repeats with the same id.
--
-- No statement counts or scans a backlog: endpoints are found by a few probes of indexes each, and a claim reads the first
-- rows of one in the order of `due_at`. Every row is found by an index, whatever the statistics of the tables say.
--
-- A quota holds while its endpoint is as the daemon last saw it; else the daemon sees it in the answer. Claims in order,
-- under a rate, and for a delivery that a person asked for lock the health row of the endpoint, so that one of them runs
-- at a time. Other claims may run beside each other, also those of probes by several daemons, since each of them takes
-- only what no lease holds when it gets the row. What a person asked for is claimed in spite of a pause: one delivery, the
-- first that is due.
--
-- `plain` leaves out endpoints with a destination or authentication, and what a person asked for in spite of a pause: what
-- a program of release 0.2.0 could not send.
create or replace function tallyhook.claim_deliveries(quotas jsonb, served uuid[], after uuid, page_max int, at timestamptz,
  lease timestamptz, ordered_max int, deferred_until timestamptz, plain boolean)
returns table (endpoints text, deliveries text, bodies text, deferred int, active text, next text, resting int,
  resumes_at float8)
language plpgsql set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_sort = off set plan_cache_mode = force_generic_plan as $$
declare
  locked text[];
  ids uuid[];
  counts int[];
  ordered_ids uuid[];
  ordered_counts int[];
  claimed tallyhook.pending_deliveries[];
  in_order tallyhook.pending_deliveries[];
begin
  perform set_config('synchronous_commit', 'off', true);
  deferred := 0;
  if quotas @> '[{"exclusive": true}]' then
    -- A statement of its own, so that the next one sees what the last holder of a lock has committed.
    locked := array(select h.endpoint_id from jsonb_to_recordset(quotas) as q(endpoint_id uuid, exclusive boolean)
      join tallyhook.endpoint_health h on h.endpoint_id = 'ep_' || q.endpoint_id
      where q.exclusive order by h.endpoint_id for update of h skip locked);
  end if;
  if quotas <> '[]' then
    -- In the order of ids, so that concurrent claims cannot deadlock.
    select array_agg(t.endpoint_id) filter (where not t.ordered), array_agg(t.n) filter (where not t.ordered),
      array_agg(t.endpoint_id) filter (where t.ordered), array_agg(t.n) filter (where t.ordered)
    into ids, counts, ordered_ids, ordered_counts
    from (select q.endpoint_id, case when h.paused_until > at then least(q.n, 1) else q.n end as n, p.ordering = 'subject' as ordered
      from jsonb_to_recordset(quotas) as q(endpoint_id uuid, n int, exclusive boolean, failures int, rate_per_s float8,
        rate_used_until timestamptz)
      join tallyhook.endpoints p on p.id = 'ep_' || q.endpoint_id
      join tallyhook.endpoint_health h on h.endpoint_id = p.id
      where p.state = 'enabled' and p.deleted_at is null and p.skip_before is null
        and (h.paused_until is null or h.paused_until <= at or h.probe_requested and q.exclusive and not plain)
        and (not plain or p.encrypted_destination is null and p.encrypted_auth is null)
        and h.consecutive_failures <= q.failures
        and p.rate_per_s is not distinct from q.rate_per_s
        and (q.rate_per_s is null or h.rate_used_until is not distinct from q.rate_used_until)
        and case when q.exclusive then p.id = any(locked) else p.ordering <> 'subject' end
      order by q.endpoint_id) t;
  end if;
  if ids is not null then
    with picked as (
      select d.tid from unnest(ids, counts) as q(endpoint_id, n)
      cross join lateral (
        select c.ctid as tid from tallyhook.pending_deliveries c
        where c.endpoint_id = q.endpoint_id and c.due_at <= at and (c.lease_until is null or c.lease_until <= at)
        order by c.due_at limit q.n) d
    ), taken as (
      update tallyhook.pending_deliveries d set lease_until = lease, fence = d.fence + 1
      from picked where d.ctid = picked.tid and d.due_at <= at and (d.lease_until is null or d.lease_until <= at)
      returning d
    )
    select array_agg(t.d) into claimed from taken t;
  end if;
  if ordered_ids is not null then
    -- The earliest delivery of each subject, unless the subject has one in flight. Other due ones are deferred, so that
    -- later claims do not examine them again.
    with due as (
      select d.* from unnest(ordered_ids, ordered_counts) as q(ordered_id, n)
      cross join lateral (
        select c.ctid as tid, c.endpoint_id, c.id, coalesce(c.subject, c.id::text) as subject, c.subject_seq, c.due_at,
          c.out_of_order or c.subject is null as free, q.n
        from tallyhook.pending_deliveries c
        where c.endpoint_id = q.ordered_id and c.due_at <= at and (c.lease_until is null or c.lease_until <= at)
        order by c.due_at limit ordered_max) d
    ), checked as (
      select due.tid, due.id, due.endpoint_id, due.due_at, due.n, due.subject_seq, head.due_at as head_due_at,
        (due.free or due.subject_seq = head.subject_seq) and not exists (
          select from tallyhook.pending_deliveries b
          where b.endpoint_id = due.endpoint_id and b.subject = due.subject and b.lease_until > at)
        and row_number() over (partition by due.endpoint_id, due.subject order by due.free, due.subject_seq) = 1 as free
      from due left join lateral (
        select b.subject_seq, b.due_at from tallyhook.pending_deliveries b
        where b.endpoint_id = due.endpoint_id and b.subject = due.subject and not b.out_of_order
        order by b.subject_seq limit 1) head on true
    ), ranked as (
      select tid, n, row_number() over (partition by endpoint_id order by due_at, subject_seq, id) as rank
      from checked where free
    ), blocked as (
      update tallyhook.pending_deliveries d
      set due_at = greatest(checked.head_due_at, deferred_until)
      from checked where not checked.free and d.ctid = checked.tid
      returning 1
    ), taken as (
      update tallyhook.pending_deliveries d set lease_until = lease, fence = d.fence + 1
      from ranked
      where ranked.rank <= ranked.n and d.ctid = ranked.tid and (d.lease_until is null or d.lease_until <= at)
      returning d
    )
    select (select array_agg(t.d) from taken t), (select count(*)::int from blocked) into in_order, deferred;
    claimed := claimed || in_order;
  end if;
  if claimed is not null then
    -- The n-th claim of an endpoint under a rate uses it up until the n-th of these times. A probe is claimed once.
    if quotas @> '[{"exclusive": true}]' then
      update tallyhook.endpoint_health h set rate_used_until = coalesce(q.rate_until[c.n], h.rate_used_until),
        probe_requested = false
      from (select d.endpoint_id, count(*) as n from unnest(claimed) d group by d.endpoint_id) c
      join jsonb_to_recordset(quotas) as q(endpoint_id uuid, rate_until timestamptz[], probe boolean)
        on q.endpoint_id = c.endpoint_id and (q.rate_until is not null or q.probe)
      where h.endpoint_id = 'ep_' || c.endpoint_id;
    end if;
    select json_agg(json_build_array('dlv_' || d.id, tallyhook.epoch_ms(d.created_at), 'ep_' || d.endpoint_id,
      'evt_' || d.event_id, d.event_type, d.subject, tallyhook.epoch_ms(d.queued_at), d.attempts, d.schedule_step,
      d.fence) order by d.due_at, d.id)
    into deliveries from unnest(claimed) d;
    select json_agg(json_build_array('evt_' || e.id, tallyhook.event_body(e), e.subject))
    into bodies
    from (select distinct d.created_at, d.event_id from unnest(claimed) d) c
    -- Without a body, because it was removed or pruned, a delivery is cancelled.
    join tallyhook.events e on e.recorded_at = c.created_at and e.id = c.event_id and e.shape <> -1;
    select json_agg(json_build_object('endpointId', p.id, 'url', p.url, 'signing', p.signing,
      'encryptedSecrets', p.encrypted_secrets, 'encryptedHeaders', p.encrypted_headers,
      'retrySchedule', p.retry_schedule, 'timeoutMs', p.timeout_ms, 'maxInFlight', p.max_in_flight,
      'encryptedDestination', p.encrypted_destination, 'encryptedAuth', p.encrypted_auth,
      'ordered', p.ordering = 'subject', 'consecutiveFailures', h.consecutive_failures,
      'lastSuccessAt', tallyhook.epoch_ms(h.last_success_at), 'enabledAt', tallyhook.epoch_ms(p.state_at)))
    into endpoints
    from (select distinct d.endpoint_id from unnest(claimed) d) c
    join tallyhook.endpoints p on p.id = 'ep_' || c.endpoint_id
    join tallyhook.endpoint_health h on h.endpoint_id = p.id;
  end if;

  with recursive pending(endpoint_id) as (
    (select d.endpoint_id from tallyhook.pending_deliveries d
      where served is null and d.endpoint_id > after order by d.endpoint_id limit 1)
    union all
    select n.endpoint_id from pending a cross join lateral (
      select d.endpoint_id from tallyhook.pending_deliveries d
      where d.endpoint_id > a.endpoint_id order by d.endpoint_id limit 1) n
  ), page as materialized (
    select a.endpoint_id as uuid, p.id, p.url, case when p.deleted_at is null then p.state else 'deleted' end as state,
      p.ordering = 'subject' as ordered, p.rate_per_s, p.max_in_flight, p.skip_before,
      h.rate_used_until, h.consecutive_failures, h.probe_requested, h.recovered_at,
      not plain or p.encrypted_destination is null and p.encrypted_auth is null as sendable,
      case when h.paused_until > at and (plain or not h.probe_requested) then h.paused_until end as paused_until
    from (select endpoint_id from (
        select endpoint_id from pending union all select unnest(served)) x limit page_max) a
    join tallyhook.endpoints p on p.id = 'ep_' || a.endpoint_id
    join tallyhook.endpoint_health h on h.endpoint_id = p.id
  )
  select case when count(*) = page_max then max(e.id collate "C") else '' end,
    tallyhook.epoch_ms(min(e.paused_until) filter (where e.state = 'enabled')),
    (count(*) filter (where e.state = 'disabled' or e.paused_until is not null))::int,
    json_agg(json_build_object('endpointId', e.id, 'url', e.url, 'state', e.state, 'ordered', e.ordered,
      'ratePerS', e.rate_per_s, 'maxInFlight', e.max_in_flight, 'rateUsedUntil', tallyhook.epoch_ms(e.rate_used_until),
      'consecutiveFailures', e.consecutive_failures, 'skipBefore', tallyhook.epoch_ms(e.skip_before),
      'probe', e.probe_requested, 'recoveredAt', tallyhook.epoch_ms(e.recovered_at),
      'firstDueAt', tallyhook.epoch_ms(f.due_at)))
      filter (where (e.state = 'deleted' or e.skip_before is not null or e.state = 'enabled' and e.paused_until is null)
        and e.sendable)
  into next, resumes_at, resting, active
  from page e
  left join lateral (
    -- Within, because a condition of the join is only looked at after the search.
    select d.due_at from tallyhook.pending_deliveries d
    where e.state = 'enabled' and e.paused_until is null and d.endpoint_id = e.uuid
      and (d.lease_until is null or d.lease_until <= at)
    order by d.due_at limit 1) f on true;
  return next;
end $$;
--> statement-breakpoint
-- For programs of release 0.2.0, which read the bodies as an object.
create or replace function tallyhook.claim_deliveries(quotas jsonb, served uuid[], after uuid, page_max int, at timestamptz,
  lease timestamptz, ordered_max int, deferred_until timestamptz)
returns table (endpoints text, deliveries text, bodies text, deferred int, active text, next text, resting int,
  resumes_at float8)
language sql as $$
  select c.endpoints, c.deliveries, (select json_object_agg(b ->> 0, b ->> 1) from json_array_elements(c.bodies::json) b)::text,
    c.deferred, c.active, c.next, c.resting, c.resumes_at
  from tallyhook.claim_deliveries(quotas, served, after, page_max, at, lease, ordered_max, deferred_until, true) c
$$;
--> statement-breakpoint
-- Stores the results of sends under the fences of their claims; returns the deliveries that changed. What has ended moves
-- to `deliveries`, with the attempt that ended it if the whole of it is given. Attempts are always logged: what another
-- claim has overtaken has a row of its own.
create or replace function tallyhook.store_results(ended jsonb, retried jsonb, logged jsonb, at timestamptz)
returns setof uuid language plpgsql set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_sort = off set plan_cache_mode = force_generic_plan as $$
declare
  moved uuid[] := '{}';
begin
  if ended <> '[]' then
    with x as (
      select * from jsonb_to_recordset(ended) as x(id uuid, fence int, state text, n int, at timestamptz,
        duration_ms int, status int, response_body text, response_headers jsonb)
    ), gone as (
      delete from tallyhook.pending_deliveries d using x where d.id = x.id and d.fence = x.fence
      returning d.id, d.created_at, d.endpoint_id, d.event_id, x.at, greatest(d.attempts, x.n) as attempts, d.fence,
        x.duration_ms, x.status, x.state, d.event_type, x.response_body, x.response_headers
    ), kept as (
      insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, finished_at, attempted_at, attempts,
        fence, duration_ms, status, state, event_type, response_body, response_headers)
      select id, created_at, endpoint_id, event_id, store_results.at, gone.at, attempts, fence, duration_ms, status,
        state, event_type, response_body, response_headers
      from gone
      -- Never, but it would keep a whole group from being stored. A conflict clause logs a record more for each row.
      where not exists (select from tallyhook.deliveries d where d.id = gone.id and d.created_at = gone.created_at)
      returning deliveries.id
    )
    select coalesce(array_agg(id), '{}') into moved from kept;
    if cardinality(moved) < jsonb_array_length(ended) then
      -- Not again what this function has stored, if the answer to its commit was lost.
      insert into tallyhook.attempts (delivery_id, n, at, duration_ms, result, status, response_body,
        response_headers)
      select x.id, x.n, x.at, x.duration_ms, x.state, x.status, x.response_body, x.response_headers
      from jsonb_to_recordset(ended) as x(id uuid, state text, n int, at timestamptz, duration_ms int, status int,
        response_body text, response_headers jsonb)
      where x.at is not null and x.id <> all (moved) and not exists (
        select from tallyhook.deliveries d where d.id = x.id and d.attempted_at = x.at)
      on conflict do nothing;
    end if;
  end if;
  if logged <> '[]' then
    insert into tallyhook.attempts (delivery_id, n, at, duration_ms, result, status, error, response_body,
      response_headers)
    select x.id, x.n, x.at, x.duration_ms, x.result, x.status, x.error, x.response_body, x.response_headers
    from jsonb_to_recordset(logged) as x(id uuid, n int, at timestamptz, duration_ms int, result text, status int,
      error text, response_body text, response_headers jsonb)
    on conflict do nothing;
  end if;
  return query select unnest(moved);
  if retried <> '[]' then
    return query
    update tallyhook.pending_deliveries d set due_at = coalesce(x.due_at, d.due_at), attempts = greatest(d.attempts, x.n),
      schedule_step = x.schedule_step, out_of_order = d.out_of_order or x.out_of_order, lease_until = null
    from jsonb_to_recordset(retried) as x(id uuid, fence int, due_at timestamptz, n int, schedule_step int,
      out_of_order boolean)
    where d.id = x.id and d.fence = x.fence
    returning d.id;
  end if;
end $$;
--> statement-breakpoint
revoke execute on function tallyhook.epoch_ms, tallyhook.claim_deliveries(jsonb, uuid[], uuid, int, timestamptz, timestamptz, int, timestamptz, boolean),
  tallyhook.claim_deliveries(jsonb, uuid[], uuid, int, timestamptz, timestamptz, int, timestamptz), tallyhook.store_results from public;
--> statement-breakpoint
grant execute on function tallyhook.epoch_ms, tallyhook.claim_deliveries(jsonb, uuid[], uuid, int, timestamptz, timestamptz, int, timestamptz, boolean),
  tallyhook.claim_deliveries(jsonb, uuid[], uuid, int, timestamptz, timestamptz, int, timestamptz), tallyhook.store_results to tallyhook_writer;
