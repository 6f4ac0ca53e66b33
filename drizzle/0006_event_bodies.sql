-- The body of an event as webhooks and the feed carry it, byte for byte the same at every call: a change of this
-- function must leave the bodies of recorded events as they are. Null without its shape, which is inserted with it.
-- In plpgsql, which plans it once in a session, and not in every statement that calls it.
create function tallyhook.event_body(e tallyhook.events) returns text language plpgsql stable parallel safe as $$
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
revoke execute on function tallyhook.event_body from public;
--> statement-breakpoint
grant execute on function tallyhook.event_body to tallyhook_writer;
