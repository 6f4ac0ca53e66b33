-- How intents become durable: looked at and written in one call, under locks on the wallets, tokens and keys that
-- they name, so that of two writes that could not be told apart the later one sees the earlier. A function,
-- because the look must begin after the locks are held, and each step apart would be a round trip of its own.
--
-- What may go is decided outside: `sees` names the open writes that the decision took into account (null: it goes
-- whatever is open). If another one is open now, nothing is written for that intent, and what is open is answered.
--
-- verdict: sending or queued (written); held (its key is), frozen, limit, full (refused); hold (until then, on the
-- wallets in seen); seen (what is open); lease_lost for the whole call.
create function tallyhook.record_intents(intents jsonb, names text[], at timestamptz, by_daemon text,
  by_epoch bigint, queue_max int)
returns table (n int, verdict text, until timestamptz, seen jsonb) language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off
-- Planning it anew for every call costs more than running it.
set plan_cache_mode = force_generic_plan as $$
declare frozen boolean; holding boolean; queued_count int;
begin
  perform pg_advisory_xact_lock_shared(7240201, 0);
  perform pg_advisory_xact_lock(7240202, s.hash) from (
    select distinct hashtext(name) as hash from unnest(names) name order by hash offset 0) s;
  perform from tallyhook.daemons d where d.id = by_daemon and d.alive_until > at;
  if not found then
    return query select -1, 'lease_lost', null::timestamptz, null::jsonb;
    return;
  end if;
  frozen := exists (select from tallyhook.freezes f where f.released_at is null);
  holding := exists (select from tallyhook.holds h where h.until > at);
  queued_count := case when queue_max is null then 0 else (
    select count(*) from (select from tallyhook.operations o where o.state = 'queued' limit queue_max) q) end;
  return query
  with x as materialized (
    select * from jsonb_to_recordset(intents) as x(n int, id text, kind text, state text, owner text,
      "keyId" text, "idempotencyKey" text, fingerprint text, reference text, method text, path text,
      "contentType" text, body text, "fromAddr" text, "toAddr" text, "operationNo" numeric,
      "contractId" numeric, "tokenId" numeric, amount numeric, "feeAmount" numeric, "reasonType" text,
      "tokenUri" text, "metaData" text, "extraData" text, "preImage" jsonb, "sendDeadlineAt" timestamptz,
      "expiresAt" timestamptz, ambiguous boolean, users text[], wallets text[], sees text[], target boolean,
      "dayLimit" numeric, "dayBefore" numeric, "dayFrom" timestamptz, "dayUpTo" timestamptz,
      "dayMoved" numeric)
  ), spent as materialized (
    select k."keyId", k."dayMoved" + (
        select coalesce(sum(greatest(o.amount, 0) + greatest(o.fee_amount, 0)), 0) from tallyhook.operations o
        where o.key_id = k."keyId" and o.amount is not null and o.recorded_at > k."dayUpTo"
          and o.outcome <> 'not_executed')
      -- What waits may leave at any time, and what waited for days has just left: both are of this day.
      + (select coalesce(sum(greatest(o.amount, 0) + greatest(o.fee_amount, 0)), 0) from tallyhook.operations o
        where o.key_id = k."keyId" and o.amount is not null and o.expires_at is not null
          and o.recorded_at <= k."dayFrom" and o.recorded_at > at - interval '9 days'
          and (o.state = 'queued' or o.sent_at > at - interval '24 hours')
          and o.outcome <> 'not_executed') as moved
    from (select distinct x."keyId", x."dayFrom", x."dayUpTo", x."dayMoved" from x
      where x."dayLimit" is not null) k
  ), looked as materialized (
    select x.n, x.id, x.sees,
      x."idempotencyKey" is not null and exists (select from tallyhook.operations o
        where o.owner = x.owner and o.idempotency_key = x."idempotencyKey" and o.key_held) as held,
      x."dayLimit" is not null and x."dayLimit" < x."dayBefore" + (
        select s.moved from spent s where s."keyId" = x."keyId") as beyond,
      x.state = 'queued' or x."expiresAt" is not null and (exists (
          select from tallyhook.operations o where o.from_key = any(x.users)
            and o.state in ('queued', 'sending') and o.expires_at is not null)
        or exists (select from tallyhook.operations o where o.to_key = any(x.users)
            and o.state in ('queued', 'sending') and o.expires_at is not null)
        or x.target and exists (select from tallyhook.operations o where o.contract_id = x."contractId"
            and (o.token_id = x."tokenId" or x."tokenId" is null and o.token_id is null
              and o.to_key = lower(x."toAddr"))
            and o.state in ('queued', 'sending') and o.expires_at is not null)) as waits,
      case when holding then (select max(h.until) from tallyhook.holds h
        where h.wallet_key = any(x.wallets) and h.until > at) end as hold,
      case when x.sees is not null and x.state = 'sending' and (x.target or cardinality(x.users) > 0) then
        array(select k.id from (
          select f.id from unnest(x.users) u cross join lateral (
            select o.id from tallyhook.operations o
            where o.from_key = u and o.state in ('sending', 'unknown')
              and o.kind in ('give', 'receive_from', 'transfer')
            order by o.recorded_at, o.id limit 13) f
          union
          select t.id from unnest(x.users) u cross join lateral (
            select o.id from tallyhook.operations o
            where o.to_key = u and o.state in ('sending', 'unknown')
              and o.kind in ('give', 'receive_from', 'transfer')
            order by o.recorded_at, o.id limit 13) t
          union
          select o.id from tallyhook.operations o
          where x.target and x."tokenId" is not null and o.contract_id = x."contractId"
            and o.token_id = x."tokenId" and o.kind = x.kind and o.state in ('sending', 'unknown')
          union
          select o.id from tallyhook.operations o
          where x.target and x."tokenId" is null and o.contract_id = x."contractId"
            and o.token_id is null and o.to_key = lower(x."toAddr") and o.kind = x.kind
            and o.token_uri is not distinct from x."tokenUri"
            and o.meta_data is not distinct from x."metaData"
            and o.extra_data is not distinct from x."extraData" and o.state in ('sending', 'unknown')
        ) k order by k.id collate "C") else '{}' end as open
    from x
  ), judged as materialized (
    select l.n, l.id, l.hold, l.open, case when l.held then 'held' when frozen then 'frozen'
      when l.beyond then 'limit' when l.waits and queued_count >= queue_max then 'full'
      when l.waits then 'queued' when l.hold is not null then 'hold'
      when l.sees is not null and not l.open <@ l.sees then 'seen' else 'sending' end as verdict
    from looked l
  ), o as (
    insert into tallyhook.operations (id, kind, state, source, owner, key_id, idempotency_key, fingerprint,
      key_held, reference, method, path, content_type, request_body, from_addr, to_addr, operation_no,
      contract_id, token_id, amount, fee_amount, reason_type, token_uri, meta_data, extra_data, pre_image,
      recorded_at, sent_at, send_deadline_at, daemon_id, expires_at, ambiguous)
    select x.id, x.kind, j.verdict, 'gateway', x.owner, x."keyId", x."idempotencyKey", x.fingerprint,
      x."idempotencyKey" is not null, x.reference, x.method, x.path, x."contentType",
      decode(x.body, 'base64'), x."fromAddr", x."toAddr", x."operationNo", x."contractId", x."tokenId",
      x.amount, x."feeAmount", x."reasonType", x."tokenUri", x."metaData", x."extraData", x."preImage", at,
      case j.verdict when 'sending' then at end, case j.verdict when 'sending' then x."sendDeadlineAt" end,
      case j.verdict when 'sending' then by_daemon end, x."expiresAt",
      j.verdict = 'sending' and x.ambiguous
    from x join judged j on j.n = x.n where j.verdict in ('sending', 'queued')
    on conflict (owner, idempotency_key) where key_held do nothing
    returning operations.id, operations.state, operations.send_deadline_at
  ), t as (
    insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, daemon_id)
    select o.id, case s.n when 2 then 'recorded' end, case s.n when 1 then 'recorded' else o.state end, at,
      case when s.n = 1 then 'intent' when o.state = 'queued' then 'queue' else 'send' end, by_daemon
    from o cross join (values (1), (2)) as s(n)
    order by o.id, s.n
  ), s as (
    insert into tallyhook.sends (operation_id, n, started_at, deadline_at, daemon_id, epoch)
    select o.id, 1, at, o.send_deadline_at, by_daemon, by_epoch from o where o.state = 'sending'
  )
  select j.n, case when j.verdict in ('sending', 'queued') and o.id is null then 'held' else j.verdict end,
    j.hold, case j.verdict when 'hold' then (select jsonb_agg(h.wallet_key) from tallyhook.holds h, x
        where x.n = j.n and h.wallet_key = any(x.wallets) and h.until > at)
      when 'seen' then coalesce((select jsonb_agg(jsonb_build_object(
        'id', p.id, 'kind', p.kind, 'fromAddr', p.from_addr, 'toAddr', p.to_addr, 'operationNo', p.operation_no,
        'contractId', p.contract_id, 'tokenId', p.token_id, 'amount', p.amount, 'feeAmount', p.fee_amount,
        'tokenUri', p.token_uri, 'metaData', p.meta_data, 'extraData', p.extra_data)
        order by p.recorded_at, p.id) from tallyhook.operations p where p.id = any(j.open)), '[]') end
  from judged j left join o on o.id = j.id;
end $$;
--> statement-breakpoint
revoke execute on function tallyhook.record_intents from public;
--> statement-breakpoint
grant execute on function tallyhook.record_intents to tallyhook_writer;
