-- Constraints and triggers against fractions, unbalanced transactions, gaps in the versions of an account,
-- and changes of append-only rows. The daemon does not start if one of them is missing.

-- Numbers of the service are whole and of any size.
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
  add constraint operations_state_known check (state in ('queued', 'sending', 'accepted',
    'rejected', 'unknown', 'executed', 'not_executed', 'undecided', 'settled', 'failed', 'cancelled')),
  add constraint operations_key_held_only_with_key check (idempotency_key is not null or not key_held);
--> statement-breakpoint
-- The form in which owners are compared, as in src/kernel/addresses.ts: two spellings are one person. The collation is one
-- that maps the case of all letters on every server, in databases of every language.
do $do$
declare found text;
begin
  select quote_ident(c.collname) into found
    from unnest(array['pg_unicode_fast', 'und-x-icu', 'pg_c_utf8', 'default']) with ordinality as n(name, place)
    join pg_collation c on c.collname = n.name and c.collnamespace = 'pg_catalog'::regnamespace
    order by n.place limit 1;
  execute format($function$
create function tallyhook.owner_key(owner text) returns text language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp as $$
  select normalize(translate(lower(upper(btrim(regexp_replace(normalize(owner, NFKC),
    '[\s\u0085\u1680\u2028\u2029\ufeff]+', ' ', 'g')) collate %1$s) collate %1$s), chr(962), chr(963)), NFKC)
$$$function$, found);
end $do$;
--> statement-breakpoint
alter table tallyhook.owners add constraint owners_are_named check (tallyhook.owner_key(name) <> '');
--> statement-breakpoint
create unique index owners_once on tallyhook.owners (tallyhook.owner_key(name));
--> statement-breakpoint
-- An approval repeats the proposer of its decision (foreign key), and there is one per owner.
alter table tallyhook.decisions
  add constraint decisions_known check (case when subject like 'op\_%' then decision in ('executed', 'not_executed')
    when subject like 'drf\_%' then decision in ('book', 'link', 'dismiss')
    when subject like 'per\_%' then decision in ('close', 'reopen') else false end),
  add constraint decisions_link_an_operation check ((decision = 'link') = (operation_id is not null)),
  add constraint decisions_need_approval check (approvals_needed in (1, 2));
--> statement-breakpoint
alter table tallyhook.approvals add constraint approvals_by_another_owner
  check (tallyhook.owner_key(owner) <> tallyhook.owner_key(proposed_by));
--> statement-breakpoint
create unique index approvals_once on tallyhook.approvals (subject, n, tallyhook.owner_key(owner));
--> statement-breakpoint
alter table tallyhook.drifts
  add constraint drifts_cause_known check (cause in ('made_elsewhere', 'fee_rule', 'lost_operation', 'opening')),
  add constraint drifts_bounded check (amount_min <= amount_max
    and (amount is null or amount = amount_min and amount = amount_max)),
  add constraint drifts_closed_once check ((state in ('open', 'proposed')) = (closed_at is null)
    and (closed_at is null) = (closed_by is null));
--> statement-breakpoint
alter table tallyhook.entries add constraint entries_move_something check (amount <> 0);
--> statement-breakpoint
-- check_entries sums over all assets, which is only correct for a single one.
alter table tallyhook.accounts add constraint accounts_one_asset check (asset = 'service_token');
--> statement-breakpoint
alter table tallyhook.clock add constraint clock_one_row check (id = 1);
--> statement-breakpoint
insert into tallyhook.clock (id, steps, correction_ms, set_at, ends_at, highest_at)
  values (1, 0, 0, 'epoch', 'epoch', 'epoch');
--> statement-breakpoint
insert into tallyhook.feed (name, last_seq) values ('events', 0);
--> statement-breakpoint
-- Free space in each page: a new version in the page of the old one logs only what changed, and if it changes no index
-- (a balance, an accepted effect, the sequence number of a subject) it is a HOT update.
alter table tallyhook.accounts set (fillfactor = 70);
--> statement-breakpoint
alter table tallyhook.operations set (fillfactor = 80);
--> statement-breakpoint
alter table tallyhook.operation_effects set (fillfactor = 80);
--> statement-breakpoint
-- A claim of a delivery.
alter table tallyhook.pending_deliveries set (fillfactor = 60);
--> statement-breakpoint
-- By default autovacuum waits until a fifth of a table is dead, which of a large one is never soon.
do $$
declare t text;
begin
  foreach t in array array['accounts', 'imports', 'import_rows', 'open_operations', 'operations', 'operation_effects', 'pending_deliveries', 'subjects', 'targets', 'tokens', 'wallets']
  loop
    execute format('alter table tallyhook.%I set (autovacuum_vacuum_scale_factor = 0.05,
      autovacuum_analyze_scale_factor = 0.05)', t);
  end loop;
end $$;
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
  foreach t in array array['batches', 'transactions', 'entries', 'nft_movements', 'chain', 'transitions',
    'drift_actions', 'quarantine_releases', 'decisions', 'approvals', 'periods', 'period_actions',
    'chained_rows', 'day_ends', 'day_balances']
  loop
    execute format('create trigger %I before update or delete or truncate on tallyhook.%I
      for each statement execute function tallyhook.refuse_change()', t || '_append_only', t);
    execute format('alter table tallyhook.%I enable always trigger %I', t, t || '_append_only');
  end loop;
  foreach t in array array['operations', 'accounts', 'drifts', 'reports', 'posting_requests', 'freezes',
    'used_since_backup']
  loop
    execute format('create trigger %I before delete or truncate on tallyhook.%I
      for each statement execute function tallyhook.refuse_change()', t || '_kept', t);
    execute format('alter table tallyhook.%I enable always trigger %I', t, t || '_kept');
  end loop;
end $$;
--> statement-breakpoint
-- A drift begins as open, and its states follow one another as in src/reconciler/drifts/states.ts. People end it only by
-- an approved decision. An exact amount never changes, nor does any amount of a closed drift.
create function tallyhook.check_drift() returns trigger language plpgsql as $$
declare wrong text;
begin
  if tg_op = 'INSERT' then
    if new.state <> 'open' then wrong := 'begins as ' || new.state; end if;
  elsif new.state <> old.state then
    if (old.state, new.state) not in (('open', 'proposed'), ('open', 'returned'), ('open', 'explained'),
      ('open', 'merged'), ('proposed', 'merged'), ('proposed', 'booked'), ('proposed', 'linked'), ('proposed', 'dismissed'), ('proposed', 'returned'),
      ('proposed', 'explained'), ('booked', 'linked')) then
      wrong := 'is ' || old.state || ', not ' || new.state;
    elsif new.state in ('booked', 'linked', 'dismissed') and not exists (
      select from tallyhook.decisions d
      where d.subject = new.id and d.n = (select max(m.n) from tallyhook.decisions m where m.subject = new.id)
        and d.decision = case new.state when 'booked' then 'book' when 'linked' then 'link' else 'dismiss' end
        and d.approvals_needed <= (select count(*) from tallyhook.approvals a where a.subject = d.subject and a.n = d.n)
    ) then
      wrong := 'is not approved as ' || new.state;
    end if;
  end if;
  if tg_op = 'UPDATE' and (old.amount is not null or old.closed_at is not null)
    and (new.amount, new.amount_min, new.amount_max, coalesce(old.closed_at, new.closed_at)) is distinct from
      (old.amount, old.amount_min, old.amount_max, new.closed_at) then
    wrong := 'has an amount or an end that does not change';
  end if;
  if wrong is not null then
    raise exception 'drift % %', new.id, wrong using errcode = 'TH006';
  end if;
  return new;
end $$;
--> statement-breakpoint
create trigger drifts_in_order before insert or update on tallyhook.drifts
  for each row execute function tallyhook.check_drift();
--> statement-breakpoint
create trigger drifts_identity before update of id, wallet_key, addr, suspected_at, opened_at, window_from, window_to,
  evidence on tallyhook.drifts
  for each statement execute function tallyhook.refuse_change();
--> statement-breakpoint
alter table tallyhook.drifts enable always trigger drifts_in_order, enable always trigger drifts_identity;
--> statement-breakpoint
-- Closed periods in force do not overlap and have no gap: each begins where the newest one ends. The report of a period
-- is over exactly it, and was made after its end. The lock makes concurrent closes and reopenings see one another.
create function tallyhook.lock_periods() returns void language sql
set search_path = pg_catalog, pg_temp as $$
  select pg_advisory_xact_lock(7240126)
$$;
--> statement-breakpoint
create function tallyhook.check_period() returns trigger language plpgsql as $$
declare last_end timestamptz;
begin
  perform tallyhook.lock_periods();
  select max(p.period_to) into last_end from tallyhook.periods p
    where not exists (select from tallyhook.period_actions a where a.period_id = p.id and a.action = 'reopened');
  if new.period_from <> last_end then
    raise exception 'period % does not begin where the last closed one ends', new.id using errcode = 'TH007';
  end if;
  if not exists (select from tallyhook.reports r where r.id = new.report_id and r.hash = new.report_hash
    and r.period_from = new.period_from and r.period_to = new.period_to and not r.provisional) then
    raise exception 'period % has no final report of its own', new.id using errcode = 'TH007';
  end if;
  return new;
end $$;
--> statement-breakpoint
create trigger periods_consecutive before insert on tallyhook.periods
  for each row execute function tallyhook.check_period();
--> statement-breakpoint
-- A period is signed by an approval of its close, and reopened only while it is the newest one; once it is signed,
-- only by an approval of the newest proposal to do so, and for its reason.
create function tallyhook.check_period_action() returns trigger language plpgsql as $$
begin
  perform tallyhook.lock_periods();
  if exists (select from tallyhook.period_actions a where a.period_id = new.period_id and a.action = 'reopened') then
    raise exception 'period % is reopened', new.period_id using errcode = 'TH007';
  end if;
  if (new.action = 'signed' or new.action = 'reopened' and exists (select from tallyhook.period_actions s
      where s.period_id = new.period_id and s.action = 'signed')) and not exists (
    select from tallyhook.approvals v
    join tallyhook.decisions d on d.subject = v.subject and d.n = v.n
    where v.subject = new.period_id and tallyhook.owner_key(v.owner) = tallyhook.owner_key(new."by")
      and d.decision = case new.action when 'signed' then 'close' else 'reopen' end
      and (new.action = 'signed' or d.reason = new.reason)
      and d.n = (select max(m.n) from tallyhook.decisions m where m.subject = new.period_id)) then
    raise exception 'period % is not approved by %', new.period_id, new."by" using errcode = 'TH007';
  end if;
  if new.action = 'reopened' and exists (select from tallyhook.periods p
    where p.period_from >= (select o.period_to from tallyhook.periods o where o.id = new.period_id) and not exists (
      select from tallyhook.period_actions a where a.period_id = p.id and a.action = 'reopened')) then
    raise exception 'period % is not the newest one', new.period_id using errcode = 'TH007';
  end if;
  return new;
end $$;
--> statement-breakpoint
create trigger period_actions_in_order before insert on tallyhook.period_actions
  for each row execute function tallyhook.check_period_action();
--> statement-breakpoint
alter table tallyhook.periods enable always trigger periods_consecutive,
  add constraint periods_not_empty check (period_from < period_to);
--> statement-breakpoint
alter table tallyhook.period_actions enable always trigger period_actions_in_order,
  add constraint period_actions_known check (
    action in ('closed', 'signed_off', 'signed', 'reopen_proposed', 'reopened')),
  add constraint period_actions_have_reasons check (
    action not in ('signed_off', 'reopen_proposed', 'reopened') or reason is not null);
--> statement-breakpoint
-- Odd postings post an operation, even ones reverse it. A transaction is reversed at most once.
alter table tallyhook.transactions
  add constraint transactions_kind_known check (kind in ('give', 'receive_from', 'transfer', 'opening',
    'booking', 'reversal')),
  add constraint transactions_have_one_origin check ((operation_id is null) = (posting is null)
    and (operation_id is null) <> (posting_request_id is null)),
  add constraint transactions_posting_in_turn check (posting >= 1
    and (posting % 2 = 0) = (kind = 'reversal') and (posting % 2 = 0) = (reverses is not null)),
  add constraint transactions_have_entries check (entry_count >= 2),
  add constraint transactions_reverse_known foreign key (reverses) references tallyhook.transactions (id);
--> statement-breakpoint
create unique index transactions_reversed_once on tallyhook.transactions (reverses)
  where reverses is not null;
--> statement-breakpoint
alter table tallyhook.nft_movements
  add constraint nft_movements_kinds check (kind in ('opening', 'mint', 'transfer', 'burn', 'data_change',
    'reversal')),
  add constraint nft_movements_of_operations check ((operation_id is null) = (posting is null)),
  add constraint nft_movements_reversals check ((kind = 'reversal') = (reverses is not null)),
  add constraint nft_movements_reverse_known foreign key (reverses) references tallyhook.nft_movements (id);
--> statement-breakpoint
create unique index nft_movements_reversed_once on tallyhook.nft_movements (reverses)
  where reverses is not null;
--> statement-breakpoint
-- The functions below look up single rows in scalar subqueries instead of joins: a join planned while a
-- table was small would scan the whole table after it has grown.

-- Batches are numbered without gaps and rise in time.
create function tallyhook.check_batches() returns trigger language plpgsql
set enable_seqscan = off as $$
begin
  perform from new_rows n
    where n.id < 1 or n.id > 1 and coalesce((select p.recorded_at from tallyhook.batches p
      where p.id = n.id - 1), 'infinity') >= n.recorded_at;
  if found then
    raise exception 'a batch does not continue the ledger' using errcode = 'TH004';
  end if;
  return null;
end $$;
--> statement-breakpoint
create trigger batches_continue after insert on tallyhook.batches
  referencing new table as new_rows for each statement execute function tallyhook.check_batches();
--> statement-breakpoint
alter table tallyhook.batches enable always trigger batches_continue;
--> statement-breakpoint
-- Transactions are numbered without gaps, have the time of their batch, and have entries. A reversal negates
-- the transaction that it reverses.
create function tallyhook.check_transactions() returns trigger language plpgsql
set enable_seqscan = off as $$
declare bare bigint;
begin
  select n.id into bare from new_rows n
    where (select e.line from tallyhook.entries e where e.transaction_id = n.id and e.line = 1) is null
    limit 1;
  if found then
    raise exception 'transaction % has no entries', bare using errcode = 'TH002';
  end if;
  perform from (select min(id) as first, max(id) as last, count(*) as found from new_rows) n
    where n.first < 1 or n.last - n.first + 1 <> n.found
      or n.first > 1 and (select p.id from tallyhook.transactions p where p.id = n.first - 1) is null;
  if found then
    raise exception 'a transaction does not continue the ledger' using errcode = 'TH004';
  end if;
  perform from (select distinct batch_id, recorded_at from new_rows) n
    where n.recorded_at is distinct from (select b.recorded_at from tallyhook.batches b
      where b.id = n.batch_id)
      or (select c.batch_id from tallyhook.chain c where c.batch_id = n.batch_id) is not null;
  if found then
    raise exception 'a transaction was not recorded with its batch' using errcode = 'TH004';
  end if;
  select n.id into bare from new_rows n
    where n.reverses is not null and exists (
      select from tallyhook.entries e where e.transaction_id in (n.id, n.reverses)
      group by e.account_id having sum(e.amount) <> 0)
    limit 1;
  if found then
    raise exception 'transaction % does not negate what it reverses', bare using errcode = 'TH005';
  end if;
  return null;
end $$;
--> statement-breakpoint
create trigger transactions_have_entries after insert on tallyhook.transactions
  referencing new table as new_rows for each statement execute function tallyhook.check_transactions();
--> statement-breakpoint
alter table tallyhook.transactions enable always trigger transactions_have_entries;
--> statement-breakpoint
-- One statement inserts all entries of a transaction: lines 1 to entry_count, which sum to zero and have the
-- times of the transaction. A later statement would have to repeat these lines, which the primary key
-- refuses, so only the new rows are read. Each entry continues the versions and balances of its account,
-- whose row equals the last entry.
create function tallyhook.check_entries() returns trigger language plpgsql
set enable_seqscan = off as $$
declare broken bigint;
begin
  select n.transaction_id into broken
    from (select transaction_id, sum(amount) as total, count(*) as found, min(line) as first,
        max(line) as last, min(effective_at) as effective_at, max(effective_at) as effective_to,
        min(recorded_at) as recorded_at, max(recorded_at) as recorded_to
      from new_rows group by transaction_id) n
    where n.total <> 0 or n.first <> 1 or n.last <> n.found
      or n.effective_at <> n.effective_to or n.recorded_at <> n.recorded_to
      or row(n.found, n.effective_at, n.recorded_at) is distinct from (
        select row(t.entry_count::bigint, t.effective_at, t.recorded_at)
        from tallyhook.transactions t where t.id = n.transaction_id)
    limit 1;
  if found then
    raise exception 'transaction % does not balance or is not whole', broken using errcode = 'TH002';
  end if;
  perform from (select account_id, version, amount, balance_after, lag(version) over w as version_before,
        lag(balance_after) over w as before, lead(version) over w is null as is_last
      from new_rows window w as (partition by account_id order by version)) n
    where n.version <> coalesce(n.version_before + 1, greatest(n.version, 1))
      or n.balance_after is distinct from n.amount + coalesce(n.before, case n.version when 1 then 0 else (
        select p.balance_after from tallyhook.entries p
        where p.account_id = n.account_id and p.version = n.version - 1) end)
      or n.is_last and row(n.version, n.balance_after) is distinct from (
        select row(a.version, a.balance) from tallyhook.accounts a where a.id = n.account_id)
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
-- An account has the balance and version of its last entry, or zeros without entries.
create function tallyhook.check_accounts() returns trigger language plpgsql
set enable_seqscan = off as $$
begin
  perform from new_rows n
    where n.balance is distinct from case n.version when 0 then 0 else (select e.balance_after
        from tallyhook.entries e where e.account_id = n.id and e.version = n.version) end
      or (select e.line from tallyhook.entries e
        where e.account_id = n.id and e.version = n.version + 1) is not null
    limit 1;
  if found then
    raise exception 'an account does not equal its last entry' using errcode = 'TH003';
  end if;
  return null;
end $$;
--> statement-breakpoint
create trigger accounts_opened_true after insert on tallyhook.accounts
  referencing new table as new_rows for each statement execute function tallyhook.check_accounts();
--> statement-breakpoint
create trigger accounts_updated_true after update on tallyhook.accounts
  referencing new table as new_rows for each statement execute function tallyhook.check_accounts();
--> statement-breakpoint
create trigger accounts_identity before update of id, name, kind, asset, opened_at on tallyhook.accounts
  for each statement execute function tallyhook.refuse_change();
--> statement-breakpoint
create trigger posting_requests_identity before update of id, kind, account, counter, amount, effective_at,
  effective_basis, requested_by, reason, reverses, seen_at, seen_version, requested_at on
  tallyhook.posting_requests
  for each statement execute function tallyhook.refuse_change();
--> statement-breakpoint
alter table tallyhook.accounts enable always trigger accounts_opened_true,
  enable always trigger accounts_updated_true, enable always trigger accounts_identity;
--> statement-breakpoint
alter table tallyhook.posting_requests enable always trigger posting_requests_identity;
--> statement-breakpoint
-- A movement is recorded with its batch.
create function tallyhook.check_movements() returns trigger language plpgsql
set enable_seqscan = off as $$
begin
  perform from (select distinct batch_id, recorded_at from new_rows) n
    where n.recorded_at is distinct from (select b.recorded_at from tallyhook.batches b
      where b.id = n.batch_id)
      or (select c.batch_id from tallyhook.chain c where c.batch_id = n.batch_id) is not null;
  if found then
    raise exception 'a movement was not recorded with its batch' using errcode = 'TH004';
  end if;
  return null;
end $$;
--> statement-breakpoint
create trigger nft_movements_in_batch after insert on tallyhook.nft_movements
  referencing new table as new_rows for each statement execute function tallyhook.check_movements();
--> statement-breakpoint
alter table tallyhook.nft_movements enable always trigger nft_movements_in_batch;
--> statement-breakpoint
-- Evidence of all stages: a digest of each row with its columns, in the form that src/ledger/chain/lines.ts
-- reads again, is made when the row is inserted, so nothing can change the row before it is in the chain. One row of
-- unchained_rows holds those of a statement, at most a thousand. A change of these lines breaks the chain.
-- Of drifts these are the columns that drifts_identity keeps as they are; of the other tables all.
do $do$
declare s record;
begin
  for s in select * from (values
    ('transitions', 'transition', 'id', 'n.id, n.operation_id, n.from_state, n.to_state, n.at, n.cause, n.evidence,
          n.deadline_at, n.daemon_id, n.tx_log_no::text, n.tx_hash'),
    ('drifts', 'drift', 'id', 'n.id, n.wallet_key, n.addr, n.suspected_at, n.opened_at, n.window_from, n.window_to,
          n.evidence'),
    ('drift_actions', 'drift_action', 'id', 'n.id, n.drift_id, n.action, n.at, n.by, n.detail'),
    ('decisions', 'decision', 'subject n', 'n.subject, n.n, n.decision, n.operation_id, n.reason, n.approvals_needed,
          n.proposed_by, n.proposed_key, n.proposed_at'),
    ('approvals', 'approval', 'subject n owner', 'n.subject, n.n, n.proposed_by, n.owner, n.key_id, n.at'),
    ('quarantine_releases', 'quarantine_release', 'id', 'n.id, n.kind, n.subject, n.problem, n.released_at,
          n.released_by, n.released_key, n.reason'),
    ('periods', 'period', 'id', 'n.id, n.period_from, n.period_to, n.report_id, n.report_hash, n.last_batch, n.known_at,
          n.chain_head, n.decision, n.closed_by, n.closed_at'),
    ('period_actions', 'period_action', 'id', 'n.id, n.period_id, n.action, n.at, n.by, n.key_id, n.reason, n.detail')
  ) x (of_table, source, key, columns)
  loop
    execute format($function$
create function tallyhook.%1$I() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' as $$
begin
  insert into tallyhook.unchained_rows (source, row_ids, digests)
  select %2$L, array_agg(x.key order by x.place),
    string_agg(sha256(convert_to(x.line, 'UTF8')), ''::bytea order by x.place)
  from (select row_number() over (order by %3$s) as place, concat_ws('/', %3$s) as key,
      row_to_json((select r from (select %2$L as row, %4$s) r))::text as line
    from new_rows n) x
  group by (x.place - 1) / 1000 order by min(x.place);
  return null;
end $$$function$, s.of_table || '_to_chain', s.source, 'n.' || replace(s.key, ' ', ', n.'), s.columns);
    execute format('create trigger %1$I after insert on tallyhook.%2$I referencing new table as new_rows
      for each statement execute function tallyhook.%1$I()', s.of_table || '_to_chain', s.of_table);
    execute format('alter table tallyhook.%2$I enable always trigger %1$I', s.of_table || '_to_chain', s.of_table);
  end loop;
end $do$;
--> statement-breakpoint
-- Moves the oldest evidence, at most two thousand rows, to a batch; returns its digests in the order of the batch.
create function tallyhook.take_evidence(of_batch bigint) returns bytea language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare evidence bytea;
begin
  with oldest as (
    select u.id, sum(cardinality(u.row_ids)) over (order by u.id) as found
    from (select id, row_ids from tallyhook.unchained_rows order by id limit 2000) u
  ), taken as (
    delete from tallyhook.unchained_rows u
    where u.id = any(array(select o.id from oldest o where o.found <= 2000))
    returning u.id, u.source, u.row_ids, u.digests
  ), named as (
    insert into tallyhook.chained_rows (batch_id, source, row_ids)
    select of_batch, t.source, array_agg(k.key order by t.id, k.place)
    from taken t cross join unnest(t.row_ids) with ordinality as k(key, place) group by t.source
  )
  select string_agg(t.digests, ''::bytea order by t.source collate "C", t.id) into evidence from taken t;
  return coalesce(evidence, ''::bytea);
end $$;
--> statement-breakpoint
-- The hash chain: a digest of each row with every column, in the form that src/ledger/chain/lines.ts reads
-- again, and a head over the digests of the batch and the previous head. A change of these lines breaks the chain.
create function tallyhook.extend_chain(of_batch bigint, evidence bytea) returns void language plpgsql
set search_path = pg_catalog, pg_temp set timezone = 'UTC' set enable_seqscan = off as $$
declare
  before_transaction bigint := 0;
  before_head bytea := decode(repeat('00', 32), 'hex');
  b tallyhook.batches;
  posted record;
  batch bytea;
  moved bytea;
begin
  if of_batch <> 1 then
    select c.last_transaction, c.head into before_transaction, before_head
      from tallyhook.chain c where c.batch_id = of_batch - 1;
    if not found then
      raise exception 'batch % does not continue the chain', of_batch using errcode = 'TH004';
    end if;
  end if;
  select * into strict b from tallyhook.batches where id = of_batch;
  batch := sha256(convert_to(row_to_json((select r from (select 'batch' as row, b.id, b.recorded_at,
    b.transactions, b.entries) r))::text, 'UTF8'));
  select coalesce(string_agg(sha256(convert_to(row_to_json((select r from (select 'transaction' as row,
        t.id, t.batch_id, t.kind, t.operation_id, t.posting, t.posting_request_id, t.reverses,
        t.reason_type, t.reference, t.tx_app_no::text, t.tx_log_no::text, t.requested_by,
        t.effective_at, t.effective_basis, t.recorded_at, t.entry_count,
        array_to_json(array(select row_to_json(x) from (select e.line, e.account_id, a.name as account,
          e.amount::text, e.balance_after::text, e.version, e.effective_at, e.recorded_at
          from tallyhook.entries e join tallyhook.accounts a on a.id = e.account_id
          where e.transaction_id = t.id order by e.line) x)) as entries) r))::text, 'UTF8')), ''::bytea
      order by t.id), ''::bytea) as digests,
    count(*) as transactions, coalesce(sum(t.entry_count), 0) as entries
  into posted
  from tallyhook.transactions t
  where t.id > before_transaction and t.id <= before_transaction + b.transactions and t.batch_id = of_batch;
  if posted.transactions <> b.transactions or posted.entries <> b.entries
    or (select t.batch_id from tallyhook.transactions t
      where t.id = before_transaction + b.transactions + 1) = of_batch then
    raise exception 'batch % is not whole', of_batch using errcode = 'TH004';
  end if;
  select coalesce(string_agg(sha256(convert_to(row_to_json((select r from (select 'movement' as row,
      m.id, m.batch_id, m.kind, m.contract_id::text, m.token_id::text, m.from_addr, m.to_addr, m.tx_hash,
      m.operation_id, m.posting, m.reverses, m.not_before, m.effective_at, m.effective_basis, m.recorded_at) r))::text, 'UTF8')), ''::bytea
    order by m.id), ''::bytea)
  into moved from tallyhook.nft_movements m where m.batch_id = of_batch;
  insert into tallyhook.chain (batch_id, last_transaction, batch, transactions, movements, evidence, head)
  values (of_batch, before_transaction + posted.transactions, batch, posted.digests, moved, evidence,
    sha256(before_head || batch || posted.digests || moved || evidence));
end $$;
--> statement-breakpoint
create function tallyhook.chain_batch() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform tallyhook.extend_chain(new.id, tallyhook.take_evidence(new.id));
  return null;
end $$;
--> statement-breakpoint
-- At the end of the transaction, when all rows of the batch are written; none can be added later. The rights of the
-- owner move the evidence, so every batch has what waits, and the daemon cannot keep a row out.
create constraint trigger batches_chained after insert on tallyhook.batches
  deferrable initially deferred for each row execute function tallyhook.chain_batch();
--> statement-breakpoint
alter table tallyhook.batches enable always trigger batches_chained;
--> statement-breakpoint
-- Tables that are pruned by dropping monthly partitions, which are created ahead. The default partition takes
-- rows of other months, so that no insert fails.
create function tallyhook.storage_of_partition(of_table text) returns text language sql immutable
set search_path = pg_catalog, pg_temp as $$
  select case when of_table = 'observations'
    then 'with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05)' else '' end $$;
--> statement-breakpoint
do $$
declare t text;
begin
  foreach t in array array['events', 'numbered_events', 'observations', 'deliveries', 'attempts'] loop
    execute format('create table tallyhook.%I partition of tallyhook.%I default %s',
      t || '_default', t, tallyhook.storage_of_partition(t));
  end loop;
end $$;
--> statement-breakpoint
-- Makes one missing partition of the months; returns its name, or null when none is missing. It is attached, because
-- that lets statements on the table continue; only the default partition is locked, until it was searched for rows of
-- the month. While it has such rows or is large, it keeps taking them. A lock that is not free at once is not waited
-- for, because statements would queue behind the wait: a backup or report may hold it for hours.
create function tallyhook.make_partition(first_month date, months int) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare t text; m date; made text; range text;
begin
  perform pg_advisory_xact_lock(7240125), set_config('lock_timeout', '100ms', true);
  foreach t in array array['events', 'numbered_events', 'observations', 'deliveries', 'attempts'] loop
    continue when pg_relation_size(format('tallyhook.%I', t || '_default')) > 16 * 1024 * 1024;
    for i in 0 .. months - 1 loop
      m := (date_trunc('month', first_month) + make_interval(months => i))::date;
      made := t || to_char(m, '_YYYY_MM');
      range := format('from (%L) to (%L)', m || ' 00:00:00+00',
        (m + interval '1 month')::date || ' 00:00:00+00');
      if to_regclass(format('tallyhook.%I', made)) is null then
        begin
          execute format('create table tallyhook.%I (like tallyhook.%I including defaults
            including constraints including generated including storage) %s', made, t,
            tallyhook.storage_of_partition(t));
          execute format('alter table tallyhook.%I attach partition tallyhook.%I for values %s',
            t, made, range);
          return made;
        -- The default partition has rows of this month.
        exception when check_violation then null;
        end;
      end if;
    end loop;
  end loop;
  return null;
end $$;
--> statement-breakpoint
-- Drops the oldest monthly partition of a table that ended before the given day; else removes some older rows from
-- the default one. Returns the name of the partition, or null when there was nothing. The lock on the table is not
-- waited for, as above.
create function tallyhook.drop_partition(of_table text, ended_before date) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare oldest text; key text; removed int;
begin
  if of_table <> all (array['events', 'numbered_events', 'observations', 'deliveries', 'attempts']) then
    raise exception 'table % is never pruned', of_table using errcode = 'TH001';
  end if;
  perform pg_advisory_xact_lock(7240125), set_config('lock_timeout', '100ms', true);
  select min(c.relname) into oldest from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    join pg_class parent on parent.oid = i.inhparent
    join pg_namespace n on n.oid = parent.relnamespace
    where n.nspname = 'tallyhook' and parent.relname = of_table
      and c.relname ~ ('^' || of_table || '_\d{4}_\d{2}$')
      and to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month' <= ended_before;
  if oldest is not null then
    execute format('drop table tallyhook.%I', oldest);
    return oldest;
  end if;
  select a.attname into strict key from pg_partitioned_table p join pg_attribute a
    on a.attrelid = p.partrelid and a.attnum = p.partattrs[0]
    where p.partrelid = format('tallyhook.%I', of_table)::regclass;
  execute format('with old as (select ctid from tallyhook.%1$I where %2$I < %3$L limit 10000)
    delete from tallyhook.%1$I where ctid = any(array(select ctid from old))',
    of_table || '_default', key, ended_before || ' 00:00:00+00');
  get diagnostics removed = row_count;
  return case when removed > 0 then of_table || '_default' end;
end $$;
--> statement-breakpoint
-- Removes some entries of the audit from before an instant; returns how many. Those of the last year stay.
create function tallyhook.prune_audit(older_than timestamptz) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare removed int;
begin
  if older_than > now() - interval '365 days' then
    raise exception 'the audit of the last year is never pruned' using errcode = 'TH001';
  end if;
  delete from tallyhook.audit where id = any(array(select a.id from (
    select id, at from tallyhook.audit order by id limit 10000) a where a.at < older_than));
  get diagnostics removed = row_count;
  return removed;
end $$;
