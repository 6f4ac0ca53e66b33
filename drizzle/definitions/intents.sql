-- What is proved of the database before this daemon sends by it. A daemon proves by its heartbeat that it is the
-- database that it knows (src/daemon/identity.ts). Any other database, and a copy of this one, runs in a server that
-- started later, or is another database of this server, with other files. So with each of these changes every daemon
-- that may send proves again. No daemon sends before all of them have: a copy may lack what only another one has sent.
-- The last send of this daemon must be there too.
create or replace function tallyhook.is_proved(by_daemon text, at timestamptz, last_operation text, last_send int)
returns boolean language plpgsql stable as $$
declare
  start timestamptz := pg_postmaster_start_time();
  file text := pg_relation_filepath('tallyhook.daemons');
begin
  return coalesce((select bool_or(d.id = by_daemon) and bool_and(d.server_start = start and d.data_file = file)
      from tallyhook.daemons d
      where d.alive_until > at and (d.id = by_daemon or 'gateway' = any(d.roles))), false)
    and (last_operation is null or last_send <= (select count(*) from tallyhook.transitions t
      where t.operation_id = last_operation and t.deadline_at is not null));
end $$;
--> statement-breakpoint
-- Which database this is. What a host does not let its logins read is null.
create or replace function tallyhook.database_identity(out system text, out oid text, out timeline text, out "table" text)
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
create or replace function tallyhook.record_intents(intents jsonb, names text[], at timestamptz, by_daemon text,
  last_operation text, last_send int, queue_max int)
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
    select count(*) from (select from tallyhook.open_operations w where w.state = 'queued' limit queue_max) q) end;
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
        or i."conflictKey" is not null and exists (
          select from tallyhook.open_operations w join tallyhook.operations o on o.id = w.id
          where w.contract_id = i."contractId"
            and (o.token_id = i."tokenId" or i."tokenId" is null and o.token_id is null
              and lower(o.to_addr) = lower(i."toAddr"))
            and o.state in ('queued', 'sending') and o.expires_at is not null)) as must_queue,
      i.known is not null and i.state <> 'queued' and (
        i.users <> '{}' and not exists (select from unnest(i.apart) u where array(
          select e.operation_id from tallyhook.operation_effects e
          where lower(e.account) = u and e.unsettled and e.phase = 'open' limit 13) <@ i.known)
        or exists (select from tallyhook.open_operations w
          where w.conflict_key = i."conflictKey" and w.state in ('sending', 'unknown')
            and w.id <> all(i.known))) as others_open
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
    returning operations.id, operations.state, operations.send_deadline_at, operations.contract_id,
      operations.conflict_key
  ), opened as (
    insert into tallyhook.open_operations (state, changed_at, id, recorded_at, contract_id, conflict_key)
    select r.state, at, r.id, at, r.contract_id, r.conflict_key from recorded r
  ), effects as (
    insert into tallyhook.operation_effects (operation_id, line, account, amount, phase)
    select r.id, e.line, e.effect ->> 'account', (e.effect ->> 'amount')::numeric,
      case r.state when 'queued' then 'queued' else 'open' end
    from recorded r join intent i on i.id = r.id
    cross join jsonb_array_elements(i.effects) with ordinality as e(effect, line)
  ), history as (
    insert into tallyhook.transitions (operation_id, to_state, at, cause, deadline_at, daemon_id)
    select r.id, r.state, at, case r.state when 'queued' then 'queue' else 'send' end, r.send_deadline_at,
      case r.state when 'sending' then by_daemon end
    from recorded r order by r.id
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
          select w.id from tallyhook.open_operations w
          where w.conflict_key = d."conflictKey" and w.state in ('sending', 'unknown')))), '[]') end
  from decided d left join recorded r on r.id = d.id;
end $$;
--> statement-breakpoint
-- Whether an operation in this state has not ended; see the table open_operations.
create or replace function tallyhook.is_open(kind text, state text) returns boolean language sql immutable parallel safe as $$
  select state in ('queued', 'sending', 'unknown', 'undecided', 'executed') or state = 'accepted' and kind <> 'other'
$$;
--> statement-breakpoint
-- The latest change of an operation, by which open_operations has it.
create or replace function tallyhook.changed_at(o tallyhook.operations) returns timestamptz
language sql immutable parallel safe as $$
  select coalesce(o.answered_at, o.sent_at, o.recorded_at)
$$;
--> statement-breakpoint
-- What an operation counts for the daily limit of its key, and its hour: that in which it is sent, and infinity while it
-- waits in the request queue. The last 25 hours are never less than the last 24 hours of writes.
create or replace function tallyhook.usage(o tallyhook.operations) returns numeric language sql immutable parallel safe as $$
  select case when o.source = 'gateway' and o.outcome <> 'not_executed'
    then greatest(o.amount, 0) + greatest(o.fee_amount, 0) end
$$;
--> statement-breakpoint
create or replace function tallyhook.usage_hour(o tallyhook.operations) returns timestamptz language sql stable parallel safe as $$
  select case o.state when 'queued' then 'infinity'
    else date_trunc('hour', coalesce(o.sent_at, o.recorded_at), 'UTC') end
$$;
--> statement-breakpoint
-- Changes the states of operations, each once, together with their transitions, effects, key usage and due postings. An
-- operation whose state is not among `before`, or may not precede the new one, stays as it is. Returns the rows that
-- changed, with the state before and the reason why the ledger must not post one.
--
-- `locks` are names to lock before anything is read. `drafts` are events to record in the same statement, each if its
-- operation reaches the state that it is about; what they say must be known before.
create or replace function tallyhook.move_operations(moves jsonb, locks text[], at timestamptz, drafts jsonb, shapes jsonb)
returns table (moved tallyhook.operations, from_state text, quarantine_reason text, deliveries int) language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off
-- Planning each call costs more than executing it.
set plan_cache_mode = force_generic_plan as $$
begin
  perform pg_advisory_xact_lock(7240202, s.hash) from (
    select distinct hashtext(name) as hash from unnest(locks) name order by hash offset 0) s;
  return query
  with x as materialized (
    select * from jsonb_to_recordset(moves) as x(id text, "to" text, at timestamptz, cause text, "daemonId" text,
      evidence jsonb, "keyHeld" boolean, decided boolean, requeue boolean, repeated boolean, "quarantineReason" text,
      "txAppNo" numeric, "txLogNo" numeric, "txHash" text, "tokenId" numeric,
      "errorClass" text, "errorStatus" int, "errorCode" text, "errorMessage" text,
      "answerStatus" int, "answerHeaders" json, "answerBody" text, "sentAt" timestamptz, "sendDeadlineAt" timestamptz,
      "answeredAt" timestamptz, "effectiveAt" timestamptz, "effectiveBasis" text, "settledAt" timestamptz,
      "retryAt" timestamptz, ambiguous boolean, before text[])
  ), locked as materialized (
    select o.id, o.key_id, o.state, o.in_ledger, tallyhook.changed_at(o) as changed_at, tallyhook.usage(o) as usage,
      tallyhook.usage_hour(o) as usage_hour,
      case when x.requeue and o.state = 'sending' and o.expires_at > x.at then 'queued' else x."to" end as to_state
    from tallyhook.operations o join x on x.id = o.id
    -- Else a plan that was made while the table was small scans all of it, until it is analyzed.
    where o.id = any(array(select x.id from x)) and o.state = any(x.before)
      and (x.decided or x."to" <> 'not_executed' or o.state not in ('accepted', 'settled'))
    order by o.id for update of o
  ), history as (
    insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence, deadline_at, daemon_id,
      tx_log_no, tx_hash)
    select l.id, l.state, l.to_state, x.at, x.cause, x.evidence,
      case l.to_state when 'sending' then x."sendDeadlineAt" end, case l.to_state when 'sending' then x."daemonId" end,
      x."txLogNo", x."txHash"
    from locked l join x on x.id = l.id order by l.id
  ), changed as (
    update tallyhook.operations o set
      state = l.to_state, daemon_id = case l.to_state when 'sending' then x."daemonId" end,
      -- A write is sent again after a second, then after twice as long each time, at most a minute.
      retry_at = case l.to_state when 'queued' then greatest(x."retryAt", x.at + make_interval(secs =>
        least(60, 2 ^ (select least(count(*), 10) - 1 from tallyhook.transitions t
          where t.operation_id = o.id and t.deadline_at is not null)))) end,
      key_held = o.key_held and (coalesce(x."keyHeld", true) or l.to_state = 'queued'),
      sent_at = coalesce(x."sentAt", o.sent_at),
      send_deadline_at = coalesce(x."sendDeadlineAt", o.send_deadline_at),
      ambiguous = coalesce(x.ambiguous, o.ambiguous),
      tx_app_no = coalesce(x."txAppNo", o.tx_app_no), tx_log_no = coalesce(x."txLogNo", o.tx_log_no),
      tx_hash = coalesce(x."txHash", o.tx_hash), token_id = coalesce(x."tokenId", o.token_id),
      error_class = x."errorClass", error_status = x."errorStatus",
      error_code = x."errorCode", error_message = x."errorMessage",
      answer_status = coalesce(x."answerStatus", o.answer_status),
      answer_headers = coalesce(x."answerHeaders", o.answer_headers),
      answer_body = coalesce(decode(x."answerBody", 'base64'), o.answer_body),
      answered_at = case when l.to_state <> 'queued' then coalesce(x."answeredAt", o.answered_at) end,
      -- What is in the ledger has the time of its entries: a late answer does not move it.
      effective_at = coalesce(case when o.in_ledger then o.effective_at end, x."effectiveAt", o.effective_at),
      effective_basis = coalesce(x."effectiveBasis", o.effective_basis),
      settled_at = case when l.to_state in ('executed', 'not_executed') then null
        else coalesce(x."settledAt", o.settled_at) end,
      evidence = coalesce(x.evidence, o.evidence),
      -- The other states have no event.
      event_seq = o.event_seq + case when l.to_state in ('queued', 'sending', 'cancelled') then 0 else 1 end
    from locked l join x on x.id = l.id
    where o.id = l.id
    returning o as row, l.state as before, l.changed_at, l.in_ledger as was_in_ledger, x.at,
      case when x."txLogNo" is not null and (x.repeated or exists (
          select from tallyhook.transitions t join tallyhook.operations p on p.id = t.operation_id
          where t.tx_log_no = x."txLogNo" and p.id <> o.id and p.in_ledger
            and (p.tx_app_no = x."txAppNo") is not false))
        then 'repeated_tx_log_no' else x."quarantineReason" end as reason
  ), effects as (
    update tallyhook.operation_effects e set phase = p.phase
    from changed c cross join lateral (select case
        when (c.row).state in ('queued', 'undecided', 'settled') then (c.row).state
        when (c.row).outcome = 'not_executed' and c.before in ('accepted', 'executed', 'settled') then 'taken_back'
        else (c.row).outcome end as phase) p
    where e.operation_id = (c.row).id and e.phase <> p.phase
      and not (e.phase = 'taken_back' and p.phase = 'not_executed')
  ), usage as (
    insert into tallyhook.key_usage as k (key_id, hour, moved)
    select u.key_id, u.usage_hour, sum(u.usage) from (
      select l.key_id, l.usage_hour, -l.usage as usage from locked l
      union all
      select (c.row).key_id, tallyhook.usage_hour(c.row), tallyhook.usage(c.row) from changed c) u
    where exists (select from tallyhook.key_usage k where k.key_id = u.key_id)
    group by u.key_id, u.usage_hour having sum(u.usage) <> 0
    order by u.key_id, u.usage_hour
    on conflict (key_id, hour) do update set moved = k.moved + excluded.moved
  ), due as (
    insert into tallyhook.due_postings as d (operation_id, due_at, quarantine_reason, quarantined_at)
    select (c.row).id, c.at, c.reason, case when c.reason is not null then c.at end
    from changed c where (c.row).in_ledger <> c.was_in_ledger order by 1
    on conflict (operation_id) do update
      set quarantine_reason = coalesce(d.quarantine_reason, excluded.quarantine_reason),
        quarantined_at = coalesce(d.quarantined_at, excluded.quarantined_at)
  ), kept as (
    update tallyhook.open_operations w set state = (c.row).state, changed_at = tallyhook.changed_at(c.row)
    from changed c
    where w.state = c.before and w.changed_at = c.changed_at and w.id = (c.row).id
      and tallyhook.is_open((c.row).kind, (c.row).state)
  ), closed as (
    delete from tallyhook.open_operations w using changed c
    where w.state = c.before and w.changed_at = c.changed_at and w.id = (c.row).id
      and not tallyhook.is_open((c.row).kind, (c.row).state)
  ), opened as (
    insert into tallyhook.open_operations (state, changed_at, id, recorded_at, contract_id, conflict_key)
    select (c.row).state, tallyhook.changed_at(c.row), (c.row).id, (c.row).recorded_at, (c.row).contract_id,
      (c.row).conflict_key
    from changed c
    where tallyhook.is_open((c.row).kind, (c.row).state) and not tallyhook.is_open((c.row).kind, c.before)
  ), emitted as (
    select e.made from (
      select jsonb_agg(d.draft || jsonb_build_object('seq', (c.row).event_seq) order by d.n) as drafts
      from changed c join jsonb_array_elements(drafts) with ordinality as d(draft, n)
        on d.draft ->> 'operation' = (c.row).id and d.draft ->> 'state' = (c.row).state) a
    cross join lateral tallyhook.emit_events(at, a.drafts, shapes) e
    where a.drafts is not null
  )
  select c.row, c.before, c.reason, m.made
  from changed c cross join (select coalesce(max(made), 0) as made from emitted) m;
end $$;
--> statement-breakpoint
revoke execute on function tallyhook.record_intents, tallyhook.is_open, tallyhook.changed_at, tallyhook.usage,
  tallyhook.usage_hour, tallyhook.move_operations from public;
--> statement-breakpoint
grant execute on function tallyhook.record_intents, tallyhook.is_open, tallyhook.changed_at, tallyhook.usage,
  tallyhook.usage_hour, tallyhook.move_operations to tallyhook_writer;
