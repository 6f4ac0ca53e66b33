-- What Postgres itself refuses, whoever asks: fractions, unbalanced transactions, gaps in an account's
-- versions, and any change of what was recorded. A start that finds one of these missing does not run.

-- Every service number is whole, whatever its size.
do $$
declare c record;
begin
  for c in
    select table_name, column_name from information_schema.columns
    where table_schema = 'tallyhook' and data_type = 'numeric' order by table_name, column_name
  loop
    execute format('alter table tallyhook.%I add constraint %I check (scale(%I) = 0)',
      c.table_name, c.table_name || '_' || c.column_name || '_whole', c.column_name);
  end loop;
end $$;
--> statement-breakpoint
alter table tallyhook.operations
  add constraint operations_kind_known check (kind in ('mint', 'mint_sequential', 'burn', 'set_extra_data',
    'transfer_from', 'give', 'receive_from', 'transfer', 'other')),
  add constraint operations_state_known check (state in ('recorded', 'queued', 'sending', 'accepted',
    'rejected', 'unknown', 'executed', 'not_executed', 'undecided', 'settled', 'failed', 'cancelled')),
  add constraint operations_key_held_only_with_key check (idempotency_key is not null or not key_held);
--> statement-breakpoint
alter table tallyhook.entries add constraint entries_move_something check (amount <> 0);
--> statement-breakpoint
create function tallyhook.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of %.% are never changed or removed', tg_table_schema, tg_table_name
    using errcode = 'TH001';
end $$;
--> statement-breakpoint
do $$
declare t text;
begin
  foreach t in array array['batches', 'transactions', 'entries', 'nft_movements', 'transitions', 'sends',
    'drift_actions']
  loop
    execute format('create trigger %I before update or delete or truncate on tallyhook.%I
      for each statement execute function tallyhook.refuse_change()', t || '_append_only', t);
    execute format('alter table tallyhook.%I enable always trigger %I', t, t || '_append_only');
  end loop;
  foreach t in array array['operations', 'accounts', 'drifts', 'reports', 'wanted_postings']
  loop
    execute format('create trigger %I before delete or truncate on tallyhook.%I
      for each statement execute function tallyhook.refuse_change()', t || '_kept', t);
    execute format('alter table tallyhook.%I enable always trigger %I', t, t || '_kept');
  end loop;
end $$;
--> statement-breakpoint
-- After a statement that inserted entries: each of its transactions has all its entries, they sum to zero
-- per asset, and each entry continues its account without a gap.
create function tallyhook.check_entries() returns trigger language plpgsql as $$
declare broken record;
begin
  select t.id, t.entry_count, count(*) as found, bool_or(s.total <> 0) as unbalanced
    into broken
    from (select distinct transaction_id from new_rows) n
    join tallyhook.transactions t on t.id = n.transaction_id
    join tallyhook.entries e on e.transaction_id = t.id
    join lateral (select sum(x.amount) as total from tallyhook.entries x
      join tallyhook.accounts a on a.id = x.account_id
      where x.transaction_id = t.id
        and a.asset = (select asset from tallyhook.accounts where id = e.account_id)) s on true
    group by t.id, t.entry_count
    having count(*) <> t.entry_count or bool_or(s.total <> 0)
    limit 1;
  if found then
    raise exception 'transaction % does not balance or is not whole (% of % entries)', broken.id,
      broken.found, broken.entry_count using errcode = 'TH002';
  end if;
  perform 1 from new_rows n
    left join tallyhook.entries p on p.account_id = n.account_id and p.version = n.version - 1
    where n.version < 1 or (n.version > 1 and p.account_id is null)
      or n.balance_after <> coalesce(p.balance_after, 0) + n.amount
    limit 1;
  if found then
    raise exception 'an entry does not continue its account' using errcode = 'TH003';
  end if;
  return null;
end $$;
--> statement-breakpoint
create trigger entries_balance after insert on tallyhook.entries
  referencing new table as new_rows for each statement execute function tallyhook.check_entries();
--> statement-breakpoint
alter table tallyhook.entries enable always trigger entries_balance;
--> statement-breakpoint
create function tallyhook.check_transactions() returns trigger language plpgsql as $$
declare bare bigint;
begin
  select n.id into bare from new_rows n
    where n.entry_count < 2 or not exists (select from tallyhook.entries e where e.transaction_id = n.id)
    limit 1;
  if found then
    raise exception 'transaction % has no entries', bare using errcode = 'TH002';
  end if;
  return null;
end $$;
--> statement-breakpoint
create trigger transactions_have_entries after insert on tallyhook.transactions
  referencing new table as new_rows for each statement execute function tallyhook.check_transactions();
--> statement-breakpoint
alter table tallyhook.transactions enable always trigger transactions_have_entries;
--> statement-breakpoint
-- What is pruned by dropping partitions. A month each, made ahead; the default partition takes what no
-- month was made for, so that an insert never fails for lack of one.
do $$
declare t text;
begin
  foreach t in array array['events', 'looks', 'deliveries', 'attempts'] loop
    execute format('create table tallyhook.%I partition of tallyhook.%I default', t || '_default', t);
  end loop;
end $$;
--> statement-breakpoint
create function tallyhook.make_partitions(first_month date, months int) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare t text; m date;
begin
  perform pg_advisory_xact_lock(7240125);
  foreach t in array array['events', 'looks', 'deliveries', 'attempts'] loop
    for i in 0 .. months - 1 loop
      m := (date_trunc('month', first_month) + make_interval(months => i))::date;
      if to_regclass(format('tallyhook.%I', t || to_char(m, '_YYYY_MM'))) is null then
        execute format('create table tallyhook.%I partition of tallyhook.%I for values from (%L) to (%L)',
          t || to_char(m, '_YYYY_MM'), t, m::text || ' 00:00:00+00',
          (m + interval '1 month')::date::text || ' 00:00:00+00');
      end if;
    end loop;
  end loop;
end $$;
--> statement-breakpoint
-- Drops the months of one prunable table that ended before the given day; answers their names.
create function tallyhook.drop_partitions(of_table text, ended_before date) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare p record;
begin
  if of_table <> all (array['events', 'looks', 'deliveries', 'attempts']) then
    raise exception 'table % is never pruned', of_table using errcode = 'TH001';
  end if;
  perform pg_advisory_xact_lock(7240125);
  for p in
    select c.relname from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      join pg_class parent on parent.oid = i.inhparent
      join pg_namespace n on n.oid = parent.relnamespace
      where n.nspname = 'tallyhook' and parent.relname = of_table
        and c.relname ~ ('^' || of_table || '_\d{4}_\d{2}$')
        and to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month' <= ended_before
      order by c.relname
  loop
    execute format('drop table tallyhook.%I', p.relname);
    return next p.relname;
  end loop;
end $$;
