-- What is proved of the database before this daemon sends by it. A daemon proves by its heartbeat that it is the
-- database that it knows (src/daemon/identity.ts). Any other database, and a copy of this one, runs in a server that
-- started later, or is another database of this server, with other files. So with each of these changes every daemon
-- that may send proves again. No daemon sends before all of them have: a copy may lack what only another one has sent.
-- The last send of this daemon must be there too.
create function tallyhook.is_proved(by_daemon text, at timestamptz, last_operation text, last_send int)
returns boolean language plpgsql stable as $$
declare
  start timestamptz := pg_postmaster_start_time();
  file text := pg_relation_filepath('tallyhook.daemons');
begin
  return coalesce((select bool_or(d.id = by_daemon) and bool_and(d.server_start = start and d.data_file = file)
      from tallyhook.daemons d
      where d.alive_until > at and (d.id = by_daemon or 'gateway' = any(d.roles))), false)
    and (last_operation is null or exists (select from tallyhook.sends s
      where s.operation_id = last_operation and s.n = last_send));
end $$;
--> statement-breakpoint
-- Which database this is. What a host does not let its logins read is null.
create function tallyhook.database_identity(out system text, out oid text, out timeline text, out "table" text)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  select d.oid::text into oid from pg_database d where d.datname = current_database();
  "table" := to_regclass('tallyhook.installation')::oid::text;
  begin
    select c.system_identifier::text into system from pg_control_system() c;
  exception when insufficient_privilege or undefined_function or feature_not_supported
    or object_not_in_prerequisite_state then null;
  end;
  begin
    -- The timeline that is written now; the control file still names the former one for minutes.
    timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  exception when insufficient_privilege or undefined_function or feature_not_supported
    or object_not_in_prerequisite_state then null;
  end;
end $$;
--> statement-breakpoint
revoke execute on function tallyhook.is_proved, tallyhook.database_identity from public;
--> statement-breakpoint
grant execute on function tallyhook.is_proved, tallyhook.database_identity to tallyhook_writer;
--> statement-breakpoint
-- Checks and records intents in one call, under locks on the wallets, tokens and keys that they name, so that of two
-- conflicting writes the later one sees the earlier. It is a function because the checks must begin after the locks
-- are granted, and separate statements would each cost a round trip.
--
-- The caller decides conflicts: `known` lists the open writes that do not conflict; null skips the check. Of the
-- wallets in `apart` one must have no other open write, nor may there be one with its conflict key; else nothing is
-- recorded and the open writes are returned.
--
-- result: sending or queued (recorded); key_in_use, frozen, key_used_since_backup, day_limit, queue_full (refused);
-- throttled (refused, with the deadline of the service in `open`, in milliseconds; another daemon may have received
-- it); others_open (with the writes in `open`); unproved for the whole call.
create function tallyhook.record_intents(intents jsonb, names text[], at timestamptz, by_daemon text,
  by_epoch bigint, last_operation text, last_send int, queue_max int)
returns table (n int, result text, open jsonb) language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off
-- Planning each call costs more than executing it.
set plan_cache_mode = force_generic_plan as $$
declare frozen boolean; blocked_until timestamptz; queue_length int;
begin
  perform pg_advisory_xact_lock_shared(7240201, 0);
  perform pg_advisory_xact_lock(7240202, s.hash) from (
    select distinct hashtext(name) as hash from unnest(names) name order by hash offset 0) s;
  if not tallyhook.is_proved(by_daemon, at, last_operation, last_send) then
    return query select -1, 'unproved', null::jsonb;
    return;
  end if;
  select exists (select from tallyhook.freezes f where f.released_at is null and f.cause <> 'failover'),
    (select q.blocked_until from tallyhook.quota q where q.name = 'app-write' and q.blocked_until > at)
    into frozen, blocked_until;
  queue_length := case when queue_max is null then 0 else (
    select count(*) from (select from tallyhook.operations o where o.state = 'queued' limit queue_max) q) end;
  return query
  with intent as materialized (
    select * from jsonb_to_recordset(intents) as x(n int, id text, kind text, state text, owner text,
      "keyId" text, "idempotencyKey" text, fingerprint text, reference text, method text, path text,
      "contentType" text, body text, "fromAddr" text, "toAddr" text, "operationNo" numeric,
      "contractId" numeric, "tokenId" numeric, amount numeric, "feeAmount" numeric, "reasonType" text,
      "tokenUri" text, "metaData" text, "extraData" text, "preImage" json, "sendDeadlineAt" timestamptz,
      "expiresAt" timestamptz, ambiguous boolean, effects jsonb, "feeMode" text, users text[],
      apart text[], "conflictKey" text, known text[], "dayLimit" numeric, "dayMoved" numeric)
  ), checked as materialized (
    select i.n, i.id, i.users, i."conflictKey",
      i."idempotencyKey" is not null and exists (select from tallyhook.operations o
        where o.owner = i.owner and o.idempotency_key = i."idempotencyKey" and o.key_held) as key_in_use,
      i."idempotencyKey" is not null and exists (select from tallyhook.used_since_backup s
        where s.name = i."idempotencyKey") as key_used_since_backup,
      i."dayLimit" is not null and i."dayLimit" < i."dayMoved" + (
        select coalesce(sum(u.moved), 0) from tallyhook.key_usage u
        where u.key_id = i."keyId" and u.hour > at - interval '25 hours') as over_day_limit,
      -- Writes that may queue keep their order per wallet and token.
      i.state = 'queued' or i."expiresAt" is not null and (
        blocked_until is not null
        or exists (select from tallyhook.operation_effects e join tallyhook.operations o on o.id = e.operation_id
          where lower(e.account) = any(i.users) and e.unsettled and e.phase in ('queued', 'open')
            and o.state in ('queued', 'sending') and o.expires_at is not null)
        or i."conflictKey" is not null and exists (select from tallyhook.operations o
          where o.contract_id = i."contractId"
            and (o.token_id = i."tokenId" or i."tokenId" is null and o.token_id is null
              and lower(o.to_addr) = lower(i."toAddr"))
            and o.state in ('queued', 'sending') and o.expires_at is not null)) as must_queue,
      i.known is not null and i.state <> 'queued' and (
        i.users <> '{}' and not exists (select from unnest(i.apart) u where array(
          select e.operation_id from tallyhook.operation_effects e
          where lower(e.account) = u and e.unsettled and e.phase = 'open' limit 13) <@ i.known)
        or exists (select from tallyhook.operations o
          where o.conflict_key = i."conflictKey" and o.state in ('sending', 'unknown')
            and o.id <> all(i.known))) as others_open
    from intent i
  ), decided as materialized (
    select c.n, c.id, c.users, c."conflictKey", case
      when c.key_in_use then 'key_in_use'
      when frozen then 'frozen'
      when c.key_used_since_backup then 'key_used_since_backup'
      when c.over_day_limit then 'day_limit'
      when c.must_queue and queue_length >= queue_max then 'queue_full'
      when c.must_queue then 'queued'
      when blocked_until is not null then 'throttled'
      when c.others_open then 'others_open'
      else 'sending' end as result
    from checked c
  ), recorded as (
    insert into tallyhook.operations (id, kind, state, source, owner, key_id, idempotency_key, fingerprint,
      key_held, reference, method, path, content_type, request_body, from_addr, to_addr, operation_no,
      contract_id, token_id, amount, fee_amount, reason_type, token_uri, meta_data, extra_data, pre_image,
      recorded_at, sent_at, send_deadline_at, daemon_id, expires_at, conflict_key, ambiguous, fee_mode)
    select i.id, i.kind, d.result, 'gateway', i.owner, i."keyId", i."idempotencyKey", i.fingerprint,
      i."idempotencyKey" is not null, i.reference, i.method, i.path, i."contentType",
      decode(i.body, 'base64'), i."fromAddr", i."toAddr", i."operationNo", i."contractId", i."tokenId",
      i.amount, i."feeAmount", i."reasonType", i."tokenUri", i."metaData", i."extraData", i."preImage", at,
      case d.result when 'sending' then at end, case d.result when 'sending' then i."sendDeadlineAt" end,
      case d.result when 'sending' then by_daemon end, i."expiresAt", i."conflictKey",
      d.result = 'sending' and i.ambiguous, i."feeMode"
    from intent i join decided d on d.n = i.n where d.result in ('sending', 'queued')
    on conflict (owner, idempotency_key) where key_held do nothing
    returning operations.id, operations.state, operations.send_deadline_at
  ), effects as (
    insert into tallyhook.operation_effects (operation_id, line, account, amount, phase)
    select r.id, e.line, e.effect ->> 'account', (e.effect ->> 'amount')::numeric,
      case r.state when 'queued' then 'queued' else 'open' end
    from recorded r join intent i on i.id = r.id
    cross join jsonb_array_elements(i.effects) with ordinality as e(effect, line)
  ), history as (
    insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause)
    select r.id, case s.n when 2 then 'recorded' end, case s.n when 1 then 'recorded' else r.state end, at,
      case when s.n = 1 then 'intent' when r.state = 'queued' then 'queue' else 'send' end
    from recorded r cross join (values (1), (2)) as s(n)
    order by r.id, s.n
  ), send as (
    insert into tallyhook.sends (operation_id, n, started_at, deadline_at, daemon_id, epoch)
    select r.id, 1, at, r.send_deadline_at, by_daemon, by_epoch from recorded r where r.state = 'sending'
  ), usage as (
    insert into tallyhook.key_usage as k (key_id, hour, moved)
    select i."keyId", case r.state when 'queued' then 'infinity' else date_trunc('hour', at, 'UTC') end,
      sum(greatest(i.amount, 0) + greatest(i."feeAmount", 0))
    from recorded r join intent i on i.id = r.id
    where i."dayLimit" is not null and i.amount is not null
    group by 1, 2 order by 1, 2
    on conflict (key_id, hour) do update set moved = k.moved + excluded.moved
  )
  select d.n, case when d.result in ('sending', 'queued') and r.id is null then 'key_in_use' else d.result end,
    case d.result
      when 'throttled' then to_jsonb(floor(extract(epoch from blocked_until) * 1000))
      when 'others_open' then coalesce((select jsonb_agg(jsonb_build_object(
        'id', o.id, 'kind', o.kind, 'fromAddr', o.from_addr, 'toAddr', o.to_addr, 'operationNo', o.operation_no,
        'contractId', o.contract_id, 'tokenId', o.token_id, 'amount', o.amount, 'feeAmount', o.fee_amount,
        'tokenUri', o.token_uri, 'metaData', o.meta_data, 'extraData', o.extra_data,
        'ambiguous', o.ambiguous, 'sentAt', floor(extract(epoch from coalesce(o.sent_at, o.recorded_at)) * 1000))
        order by o.recorded_at, o.id) from tallyhook.operations o where o.id = any(array(
          select o.id from unnest(d.users) u cross join lateral (
            select e.operation_id as id from tallyhook.operation_effects e
            where lower(e.account) = u and e.unsettled and e.phase = 'open' limit 13) o
          union
          select o.id from tallyhook.operations o
          where o.conflict_key = d."conflictKey" and o.state in ('sending', 'unknown')))), '[]') end
  from decided d left join recorded r on r.id = d.id;
end $$;
--> statement-breakpoint
revoke execute on function tallyhook.record_intents from public;
--> statement-breakpoint
grant execute on function tallyhook.record_intents to tallyhook_writer;
