-- finance_v1: the read-only, documented interface for finance; compatible within v1. Views run with the
-- rights of their owner and functions are security definer with a fixed search path, so tallyhook_finance
-- needs no access to the tables behind them.
create schema if not exists finance_v1;
--> statement-breakpoint
comment on schema finance_v1 is 'The ledger for finance: read-only, stable within v1. Amounts are whole service tokens of any size; a positive entry increases its account.';
--> statement-breakpoint
-- The time of all daemons: what src/db/clock/slew.ts computes.
create or replace view tallyhook.present as
select now() + interval '1 ms' * correction_ms * case when now() >= ends_at then 0 when now() <= set_at then 1
  else extract(epoch from ends_at - now())::float8 / extract(epoch from ends_at - set_at)::float8 end as now
from tallyhook.clock;
--> statement-breakpoint
-- The calendar. Where a day begins is decided here only: at its first instant, so that days follow each other without a
-- gap or an overlap. On some days clocks show midnight twice (Atlantic/Azores), on some never (Africa/Cairo), and some
-- days do not exist (Pacific/Apia, 30 December 2011): these have no length.
create or replace function tallyhook.day_begin(day date, time_zone text) returns timestamptz
language plpgsql immutable strict parallel safe as $$
declare
  midnight timestamp := $1;
  usual timestamptz := midnight at time zone $2;
  first timestamptz;
  late timestamptz;
  middle timestamptz;
begin
  if (usual + interval '2 days') at time zone $2 - (usual - interval '2 days') at time zone $2 = interval '4 days'
    and usual at time zone $2 = midnight then return usual; end if;
  -- An instant at which clocks show midnight is midnight less an offset from around it.
  select min(c.at) filter (where c.at at time zone $2 = midnight), coalesce(min(c.at), usual), coalesce(max(c.at), usual)
    into middle, first, late
  from generate_series(usual - interval '2 days', usual + interval '2 days', '12 hours') p(at)
  cross join lateral (select p.at + (midnight - p.at at time zone $2) as at) c;
  if middle is not null then return middle; end if;
  -- Midnight was skipped: the day begins when clocks were set forward.
  while late - first > interval '1 ms' loop
    middle := date_trunc('milliseconds', first + (late - first) / 2);
    if middle at time zone $2 < midnight then first := middle; else late := middle; end if;
  end loop;
  return late;
end
$$;
--> statement-breakpoint
-- The day that an instant is in. Where clocks were set back over midnight, the next day has begun already.
create or replace function tallyhook.day_of(at timestamptz, time_zone text) returns date
language sql immutable parallel safe as $$
select case when $1 at time zone $2 - ($1 - interval '1 day') at time zone $2 >= interval '1 day'
    or tallyhook.day_begin(($1 at time zone $2)::date + 1, $2) > $1
  then ($1 at time zone $2)::date else ($1 at time zone $2)::date + 1 end
$$;
--> statement-breakpoint
-- A day, a local time of the zone, or an instant with an offset; the zone of the session has no effect.
create or replace function tallyhook.moment(text text, time_zone text) returns timestamptz
language plpgsql stable strict set timezone = 'UTC' as $$
begin
  if $1 ~ '^\s*\d+-\d+-\d+\s*$' then return tallyhook.day_begin($1::date, $2); end if;
  perform set_config('timezone', $2, true);
  return $1::timestamptz;
end
$$;
--> statement-breakpoint
-- That of the reports by default.
create or replace function tallyhook.zone_or_default(time_zone text) returns text language sql stable as $$
select coalesce($1, (select value from tallyhook.installation where name = 'report_time_zone'), 'UTC')
$$;
--> statement-breakpoint
revoke execute on function tallyhook.day_begin, tallyhook.day_of, tallyhook.moment, tallyhook.zone_or_default from public;
--> statement-breakpoint
grant execute on function tallyhook.day_begin, tallyhook.day_of, tallyhook.zone_or_default to tallyhook_writer;
--> statement-breakpoint
create or replace function finance_v1.day_begin(day date, time_zone text default null) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
select tallyhook.day_begin($1, tallyhook.zone_or_default($2))
$$;
--> statement-breakpoint
comment on function finance_v1.day_begin(date, text) is 'The first instant of a day: midnight, or where the clocks skip midnight the first instant after it. time_zone: such as Asia/Seoul, by default that of the reports. The zone of the session has no effect. A day ends where the next one begins.';
--> statement-breakpoint
create or replace function finance_v1.day_of(at timestamptz, time_zone text default null) returns date
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
select tallyhook.day_of($1, tallyhook.zone_or_default($2))
$$;
--> statement-breakpoint
comment on function finance_v1.day_of(timestamptz, text) is 'The day that an instant is in. time_zone: such as Asia/Seoul, by default that of the reports. The zone of the session has no effect.';
--> statement-breakpoint
-- What due postings will change: executed effects that are not posted, and posted ones to be reversed. What is due is
-- unsettled or quarantined, so that each account finds its own by an index, however many postings are due.
create or replace view tallyhook.due_effects as
select e.operation_id, lower(e.account) as account_key, e.account,
  case when o.in_ledger then e.amount else -e.amount end as amount
from (
  select e.* from tallyhook.operation_effects e where e.unsettled and e.phase in ('executed', 'taken_back')
  union all
  select e.* from tallyhook.due_postings q join tallyhook.operation_effects e on e.operation_id = q.operation_id
  where q.quarantined_at is not null and e.phase in ('settled', 'not_executed')
) e
join tallyhook.due_postings d on d.operation_id = e.operation_id
join tallyhook.operations o on o.id = e.operation_id
where o.in_ledger <> coalesce((
  select max(t.posting) % 2 = 1 from tallyhook.transactions t where t.operation_id = e.operation_id), false);
--> statement-breakpoint
-- Amounts per account that are not in the ledger yet: due postings, reversals and posting requests (unposted), sent
-- writes (in_flight), unknown and undecided ones (unknown); and the increases and decreases among the open ones.
create or replace view tallyhook.pending_effects as
select p.account_key, min(p.account) as account, sum(p.unposted) as unposted, sum(p.in_flight) as in_flight,
  sum(p.unknown) as unknown, sum(p.open_up) as open_up, sum(p.open_down) as open_down
from (
  select lower(e.account) as account_key, e.account, 0::numeric as unposted,
    case o.state when 'sending' then e.amount else 0 end as in_flight,
    case o.state when 'sending' then 0 else e.amount end as unknown,
    greatest(e.amount, 0) as open_up, least(e.amount, 0) as open_down
  from tallyhook.operation_effects e join tallyhook.operations o on o.id = e.operation_id
  where e.unsettled and e.phase in ('open', 'undecided')
  union all
  select d.account_key, d.account, d.amount, 0, 0, 0, 0 from tallyhook.due_effects d
  union all
  select lower(r.account), r.account, r.amount, 0, 0, 0, 0
  from tallyhook.posting_requests r where r.posted_at is null and r.problem is null
) p
group by p.account_key;
--> statement-breakpoint
-- The mappings of operators to wallets that two owners made.
create or replace view tallyhook.mapped_operators as
select substr(w.account, 10)::numeric as operator_no, w.addr
from tallyhook.operator_wallets w join tallyhook.decisions d on d.subject = w.account and d.n = w.n
where w.rejected_at is null
  and d.approvals_needed <= (select count(*) from tallyhook.approvals a where a.subject = d.subject and a.n = d.n);
--> statement-breakpoint
create or replace view finance_v1.operators as
with named as (
  select x.key::numeric as operator_no, x.value as addr
  from tallyhook.installation i
  cross join lateral jsonb_each_text((case i.name when 'ledger_settings' then i.value end)::jsonb -> 'operators') x
), known as (
  select operator_no, addr, 'wallet:' || addr as account from named
  union all select m.operator_no, m.addr, 'wallet:' || m.addr from tallyhook.mapped_operators m
    where not exists (select from named n where n.operator_no = m.operator_no)
  union all select substr(name, 10)::numeric, null, name from tallyhook.accounts where kind = 'operator'
)
select k.operator_no, k.addr, coalesce(a.name, k.account) as account, coalesce(a.balance, 0) as balance
from known k left join tallyhook.accounts a on lower(a.name) = lower(k.account) and a.asset = 'service_token';
--> statement-breakpoint
comment on view finance_v1.operators is 'The operator wallets that pay gives: the address that the setting ledger.operators names for a number, or two owners mapped to it, and the account of what was paid without one.';
comment on column finance_v1.operators.operator_no is 'Number of the operator wallet, as in operations.operation_no.';
comment on column finance_v1.operators.addr is 'Address of its wallet; empty for the account of gives whose operator had no address.';
comment on column finance_v1.operators.account is 'Account that its gives are paid from.';
comment on column finance_v1.operators.balance is 'Posted balance of that account, in service tokens.';
--> statement-breakpoint
create or replace view finance_v1.accounts as
select a.name as account, a.kind, a.asset,
  case a.kind when 'operator' then substr(a.name, 10)::numeric else o.operator_no end as operator_no,
  case a.kind when 'wallet' then substr(a.name, 8) end as addr, a.opened_at::timestamptz as opened_at
from tallyhook.accounts a
left join (select lower(account) as key, min(operator_no) as operator_no
  from finance_v1.operators where addr is not null group by 1) o on o.key = lower(a.name);
--> statement-breakpoint
comment on view finance_v1.accounts is 'Every account of the ledger.';
comment on column finance_v1.accounts.account is 'Name: wallet:<address>, operator:<number>, fees, collection, opening (balances before the first known entry) or external (suspense: unexplained differences).';
comment on column finance_v1.accounts.kind is 'wallet, operator, fees, collection, opening or external.';
comment on column finance_v1.accounts.asset is 'Always service_token.';
comment on column finance_v1.accounts.operator_no is 'Operator that pays from it; of several with one wallet the lowest number. See operators.';
comment on column finance_v1.accounts.addr is 'Address of a wallet account.';
comment on column finance_v1.accounts.opened_at is 'When the account was opened.';
--> statement-breakpoint
-- What people decided of the drift behind a posting: its booking, or the link that reverses it.
create or replace view tallyhook.bookings as
select r.id as posting_request_id, split_part(r.id, ':', 2) as drift_id, d.reason, d.decided_by
from tallyhook.posting_requests r
left join lateral (
  select x.reason, x.proposed_by || ', ' || string_agg(y.owner, ', ' order by y.at, y.owner) as decided_by
  from tallyhook.decisions x join tallyhook.approvals y on y.subject = x.subject and y.n = x.n
  where x.subject = split_part(r.id, ':', 2) and x.decision = case r.kind when 'booking' then 'book' else 'link' end
  group by x.subject, x.n having count(*) >= x.approvals_needed order by x.n desc limit 1) d on true
where r.kind in ('booking', 'reversal') and r.id like '%:drf\_%';
--> statement-breakpoint
create or replace view finance_v1.journal as
select t.id * 1000 + e.line as seq, t.id as transaction_id, b.drift_id, b.reason, b.decided_by,
  a.name as account, a.asset, e.amount,
  e.balance_after, t.kind, t.reason_type, t.reference, t.operation_id,
  coalesce(t.tx_app_no, o.tx_app_no) as tx_app_no, coalesce(t.tx_log_no, o.tx_log_no) as tx_log_no,
  e.effective_at::timestamptz as effective_at, t.effective_basis,
  e.recorded_at::timestamptz as recorded_at, t.reverses, t.requested_by
from tallyhook.entries e
join tallyhook.transactions t on t.id = e.transaction_id
join tallyhook.accounts a on a.id = e.account_id
left join tallyhook.operations o on o.id = t.operation_id
left join tallyhook.bookings b on b.posting_request_id = t.posting_request_id;
--> statement-breakpoint
comment on view finance_v1.journal is 'Every entry of the ledger, one row per account that a transaction changes. Entries of one transaction sum to zero. Entries never change: corrections are reversals.';
comment on column finance_v1.journal.seq is 'Number of the entry: transaction_id times 1000 plus its line. Rises in the order of recording; has gaps.';
comment on column finance_v1.journal.transaction_id is 'The transaction; numbered from 1 without gaps.';
comment on column finance_v1.journal.drift_id is 'The drift that it books, or whose booking it reverses; null for any other.';
comment on column finance_v1.journal.reason is 'Why people decided that, as the proposer wrote it.';
comment on column finance_v1.journal.decided_by is 'Who decided it: the owner that proposed it, then those that approved it.';
comment on column finance_v1.journal.account is 'The account that changes.';
comment on column finance_v1.journal.asset is 'Always service_token.';
comment on column finance_v1.journal.amount is 'Change of the account, in service tokens; positive increases it.';
comment on column finance_v1.journal.balance_after is 'Balance of the account after this entry, in the order of recording, in service tokens.';
comment on column finance_v1.journal.kind is 'give, receive_from, transfer, opening, booking or reversal.';
comment on column finance_v1.journal.reason_type is 'Reason as sent with the write; null for postings that are not of a write.';
comment on column finance_v1.journal.reference is 'Reference that the app gave to the write.';
comment on column finance_v1.journal.operation_id is 'The write that it posts; null for openings and bookings.';
comment on column finance_v1.journal.tx_app_no is 'App number of the service.';
comment on column finance_v1.journal.tx_log_no is 'Transaction number of the service, also when it became known after the posting; null while unknown.';
comment on column finance_v1.journal.effective_at is 'When it took effect, as far as known.';
comment on column finance_v1.journal.effective_basis is 'How that is known: answer, observed, recorded, reported or decision (of people).';
comment on column finance_v1.journal.recorded_at is 'When it was recorded.';
comment on column finance_v1.journal.reverses is 'The transaction that this one reverses.';
comment on column finance_v1.journal.requested_by is 'Owner of the key, or the part of Tallyhook that requested the posting.';
--> statement-breakpoint
create or replace view finance_v1.balances as
select a.name as account, a.asset, a.balance, (select e.transaction_id * 1000 + e.line
  from tallyhook.entries e where e.account_id = a.id and e.version = a.version) as last_seq
from tallyhook.accounts a;
--> statement-breakpoint
comment on view finance_v1.balances is 'The balance of every account now, as posted.';
comment on column finance_v1.balances.account is 'Name: wallet:<address>, operator:<number>, fees, collection, opening (balances before the first known entry) or external (suspense: unexplained differences).';
comment on column finance_v1.balances.asset is 'Always service_token.';
comment on column finance_v1.balances.balance is 'Sum of all its entries, in service tokens.';
comment on column finance_v1.balances.last_seq is 'Its last entry in journal; empty before the first.';
--> statement-breakpoint
-- One rule for all instants: as of t counts what took effect before t, t excluded, and a period has its first instant
-- and not its last. So an entry at midnight belongs to the day that begins, and a closing balance is the next opening.
-- Since when the balance of a wallet is known: its opening, or the earliest correction of it. Recorded when posted.
create or replace view tallyhook.known_balances as
select lower(account) as account_key, effective_at as known_from, posted_at
from tallyhook.posting_requests where kind = 'opening' and posted_at is not null;
--> statement-breakpoint
create or replace function finance_v1.balances_as_of(as_of timestamptz default null, known_at timestamptz default null)
returns table (account text, asset text, balance numeric)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
select a.name, a.asset, case when a.kind <> 'wallet' or o.known_from < coalesce($1, 'infinity')
    then coalesce(s.total, 0) end
  from tallyhook.accounts a
  left join (
    select e.account_id, sum(e.amount) as total from tallyhook.entries e
    where e.effective_at < coalesce($1, 'infinity') and e.recorded_at <= coalesce($2, 'infinity')
    group by e.account_id) s on s.account_id = a.id
  left join (
    select k.account_key, min(k.known_from) as known_from from tallyhook.known_balances k
    where k.posted_at <= coalesce($2, 'infinity') group by k.account_key) o on o.account_key = lower(a.name)
  where a.opened_at <= coalesce($2, 'infinity')
  order by a.name
$$;
--> statement-breakpoint
comment on function finance_v1.balances_as_of(timestamptz, timestamptz) is 'Balances of all accounts. as_of: only what took effect before then, that instant excluded, so that as of midnight is the end of the day before; known_at: only what was recorded until then, that instant included, such as known_at of reports; empty means everything. Columns: account; asset (service_token); balance in service tokens, empty for a wallet before the first evidence of its balance.';
--> statement-breakpoint
create or replace function finance_v1.trial_balance(as_of timestamptz default null, known_at timestamptz default null)
returns table (account text, asset text, debit numeric, credit numeric)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
select a.name, a.asset, greatest(s.total, 0), greatest(-s.total, 0)
  from (
    select e.account_id, sum(e.amount) as total from tallyhook.entries e
    where e.effective_at < coalesce($1, 'infinity') and e.recorded_at <= coalesce($2, 'infinity')
    group by e.account_id) s
  join tallyhook.accounts a on a.id = s.account_id
  order by a.name
$$;
--> statement-breakpoint
comment on function finance_v1.trial_balance(timestamptz, timestamptz) is 'Trial balance. as_of: only what took effect before then, that instant excluded, as in balances_as_of; known_at: only what was recorded until then, that instant included; empty means everything. Columns: account; asset (service_token); debit: the balance when positive; credit: the balance without its sign when negative, both in service tokens. The sums of debit and credit are equal.';
--> statement-breakpoint
create or replace function finance_v1.wallet_statement(addr text, "from" timestamptz, "to" timestamptz)
returns table (seq bigint, effective_at timestamptz, kind text, reason_type text, reference text, operation_id text,
  tx_log_no numeric, counterparty text, amount numeric, fee numeric, balance_after numeric)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
select l.seq, l.effective_at, l.kind, l.reason_type, l.reference, l.operation_id, l.tx_log_no, l.counterparty, l.amount,
    l.fee, case when l.effective_at >= (select min(k.known_from) from tallyhook.known_balances k
      where k.account_key = 'wallet:' || lower($1))
    then sum(l.amount) over (order by l.effective_at, l.seq) + coalesce((
      select sum(b.amount) from tallyhook.entries b
      where b.account_id = l.account_id and b.effective_at < coalesce($2, '-infinity')), 0) end
  from (
    select e.transaction_id * 1000 + e.line as seq, e.effective_at, t.kind, t.reason_type, t.reference, t.operation_id,
      coalesce(t.tx_log_no, w.tx_log_no) as tx_log_no,
      case when (e.amount > 0) = (t.reverses is null) then 0
        else coalesce(w.fee_amount, 0) * case when t.reverses is null then 1 else -1 end end as fee,
      (select string_agg(o.name, ', ' order by x.line) from tallyhook.entries x
        join tallyhook.accounts o on o.id = x.account_id
        where x.transaction_id = e.transaction_id and x.line <> e.line) as counterparty,
      e.amount, e.account_id
    from tallyhook.accounts a
    join tallyhook.entries e on e.account_id = a.id
    join tallyhook.transactions t on t.id = e.transaction_id
    left join tallyhook.operations w on w.id = t.operation_id
    where lower(a.name) = 'wallet:' || lower($1) and a.asset = 'service_token'
      and e.effective_at >= coalesce($2, '-infinity') and e.effective_at < coalesce($3, 'infinity')) l
  order by l.effective_at, l.seq
$$;
--> statement-breakpoint
comment on function finance_v1.wallet_statement(text, timestamptz, timestamptz) is 'Statement of one wallet: its entries that took effect from "from" (included) to "to" (excluded), in the order in which they took effect; empty bounds mean everything. balances_as_of("from") plus its amounts is balances_as_of("to"). The case of the address does not matter. Columns: seq: the entry in journal; effective_at; kind; reason_type; reference that the app gave to the write; operation_id: our id of the write; tx_log_no: number of the service; counterparty: the other accounts of the transaction; amount in service tokens, positive is incoming; fee: part of an outgoing amount that is the fee of the write, negative where a reversal returns it, else 0; balance_after: balance after this line in the order of the statement, in service tokens; empty before the first evidence of its balance.';
--> statement-breakpoint
-- Three parts of the same types, so that a condition is applied in each, and accounts are read only where they are asked
-- for: a scan of all wallets for drifts takes an eighth of the time of one join of wallets and accounts.
create or replace view finance_v1.wallet_positions as
with pending as (
  select substr(account_key, 8) as key, substr(account, 8) as addr, unposted, in_flight, unknown, open_up, open_down
  from tallyhook.pending_effects where account_key like 'wallet:%'
), drifting as (
  select wallet_key as key, sum(amount) as amount
  from tallyhook.drifts where closed_at is null group by 1
), known as (
  select w.key, w.addr, w.status, w.opened_at is not null as opened, a.balance, w.observed_balance, w.observed_at,
    w.ledger_at_observation, coalesce(d.amount, 0) as drift
  from tallyhook.wallets w
  left join drifting d on d.key = w.key
  left join tallyhook.accounts a on lower(a.name) = 'wallet:' || w.key and a.asset = 'service_token'
  union all
  select lower(substr(a.name, 8)), substr(a.name, 8), null::int, false, a.balance, null::numeric, null::timestamptz(3), null::numeric, 0::numeric
  from tallyhook.accounts a where a.kind = 'wallet'
    and not exists (select from tallyhook.wallets w where w.key = lower(substr(a.name, 8)))
  union all
  select p.key, p.addr, null::int, false, null::numeric, null::numeric, null::timestamptz(3), null::numeric, 0::numeric
  from pending p where not exists (select from tallyhook.wallets w where w.key = p.key)
    and not exists (select from tallyhook.accounts a where lower(a.name) = 'wallet:' || p.key and a.asset = 'service_token')
), summed as (
  select k.addr, k.status, k.opened,
    coalesce(k.balance, 0) as ledger_balance,
    coalesce(p.unposted, 0) as unposted,
    coalesce(p.in_flight, 0) as in_flight, coalesce(p.unknown, 0) as unknown,
    coalesce(p.open_up, 0) as open_up, coalesce(p.open_down, 0) as open_down,
    k.observed_balance, k.observed_at, k.ledger_at_observation, k.drift
  from known k
  left join pending p on p.key = k.key
)
select addr, status, opened, ledger_balance, unposted, in_flight, unknown,
  ledger_balance + unposted + open_up as best_case, ledger_balance + unposted + open_down as worst_case,
  observed_balance, observed_at::timestamptz as observed_at, ledger_at_observation, drift
from summed;
--> statement-breakpoint
comment on view finance_v1.wallet_positions is 'Every wallet that is observed, has entries, or is named by an open write: its posted balance, the open amounts, and the observed balance.';
comment on column finance_v1.wallet_positions.addr is 'Address of the wallet.';
comment on column finance_v1.wallet_positions.status is 'Status that the service showed: 1 normal, 2 suspended, 3 user request, 9 withdrawn; null before the first observation.';
comment on column finance_v1.wallet_positions.opened is 'Whether its opening balance was taken; before that it has no drift.';
comment on column finance_v1.wallet_positions.ledger_balance is 'Posted balance, in service tokens.';
comment on column finance_v1.wallet_positions.unposted is 'Sum of executed writes and posting requests that are not posted yet, in service tokens; normally for less than a second.';
comment on column finance_v1.wallet_positions.in_flight is 'Sum of the writes that are sent and not answered yet, in service tokens.';
comment on column finance_v1.wallet_positions.unknown is 'Sum of the writes whose answer was lost and whose outcome is unknown, in service tokens.';
comment on column finance_v1.wallet_positions.best_case is 'ledger_balance + unposted + every open write that increases it.';
comment on column finance_v1.wallet_positions.worst_case is 'ledger_balance + unposted + every open write that decreases it.';
comment on column finance_v1.wallet_positions.observed_balance is 'Balance that the service showed at the newest processed observation.';
comment on column finance_v1.wallet_positions.observed_at is 'When that observation began.';
comment on column finance_v1.wallet_positions.ledger_at_observation is 'What the ledger held when that observation was processed, posting requests included.';
comment on column finance_v1.wallet_positions.drift is 'Sum of its open drifts, in service tokens; positive when the wallet holds more than is explained.';
--> statement-breakpoint
create or replace view finance_v1.operations as
select id as operation_id, kind, state, outcome, tx_app_no, tx_log_no, tx_hash, from_addr, to_addr,
  operation_no, contract_id, token_id, amount, fee_amount, reason_type, reference,
  sent_at::timestamptz as sent_at,
  case when answer_status is not null then answered_at::timestamptz end as answered_at,
  settled_at::timestamptz as settled_at, effective_at::timestamptz as effective_at
from tallyhook.operations;
--> statement-breakpoint
comment on view finance_v1.operations is 'Every write, one row each, whether it was executed or not.';
comment on column finance_v1.operations.operation_id is 'Our id of the write.';
comment on column finance_v1.operations.kind is 'give, receive_from, transfer, mint, mint_sequential, burn, set_extra_data, transfer_from or other.';
comment on column finance_v1.operations.state is 'State of the write: undecided, unknown, queued, sending, accepted, executed, settled, not_executed, rejected, failed or cancelled.';
comment on column finance_v1.operations.outcome is 'What its state means for the ledger: executed, not_executed or open.';
comment on column finance_v1.operations.tx_app_no is 'App number that the service answered, of which `tx_log_no` is one.';
comment on column finance_v1.operations.tx_log_no is 'Transaction number that the service answered.';
comment on column finance_v1.operations.tx_hash is 'Hash that the service answered to an NFT write.';
comment on column finance_v1.operations.from_addr is 'Wallet that pays, or the owner before.';
comment on column finance_v1.operations.to_addr is 'Wallet that receives, or the owner after.';
comment on column finance_v1.operations.operation_no is 'Operator wallet that pays a give.';
comment on column finance_v1.operations.contract_id is 'NFT contract.';
comment on column finance_v1.operations.token_id is 'NFT token.';
comment on column finance_v1.operations.amount is 'Requested amount, in service tokens.';
comment on column finance_v1.operations.fee_amount is 'Requested fee, in service tokens.';
comment on column finance_v1.operations.reason_type is 'Reason as sent with the write.';
comment on column finance_v1.operations.reference is 'Reference that the app gave to the write.';
comment on column finance_v1.operations.sent_at is 'When it was sent.';
comment on column finance_v1.operations.answered_at is 'When the service answered; null when it did not or its answer was lost.';
comment on column finance_v1.operations.settled_at is 'When a balance or the chain confirmed it.';
comment on column finance_v1.operations.effective_at is 'When it took effect, as far as known; its entries in the ledger have that time, also if the service answers later.';
--> statement-breakpoint
create or replace view finance_v1.operations_without_tx_number as
select id as operation_id, kind, state, outcome, tx_app_no, tx_log_no, tx_hash, from_addr, to_addr,
  operation_no, contract_id, token_id, amount, fee_amount, reason_type, reference,
  sent_at::timestamptz as sent_at,
  case when answer_status is not null then answered_at::timestamptz end as answered_at,
  settled_at::timestamptz as settled_at, effective_at::timestamptz as effective_at
from tallyhook.operations
where outcome = 'executed' and (
  kind in ('give', 'receive_from', 'transfer') and tx_log_no is null
  or kind in ('mint', 'mint_sequential', 'burn', 'set_extra_data', 'transfer_from') and tx_hash is null);
--> statement-breakpoint
comment on view finance_v1.operations_without_tx_number is 'Writes that were executed although the service''s answer was lost: token writes without tx_log_no, NFT writes without tx_hash.';
comment on column finance_v1.operations_without_tx_number.operation_id is 'Our id of the write.';
comment on column finance_v1.operations_without_tx_number.kind is 'give, receive_from, transfer, mint, mint_sequential, burn, set_extra_data, transfer_from or other.';
comment on column finance_v1.operations_without_tx_number.state is 'State of the write: undecided, unknown, queued, sending, accepted, executed, settled, not_executed, rejected, failed or cancelled.';
comment on column finance_v1.operations_without_tx_number.outcome is 'What its state means for the ledger: executed, not_executed or open.';
comment on column finance_v1.operations_without_tx_number.tx_app_no is 'App number that the service answered, of which `tx_log_no` is one.';
comment on column finance_v1.operations_without_tx_number.tx_log_no is 'Transaction number that the service answered.';
comment on column finance_v1.operations_without_tx_number.tx_hash is 'Hash that the service answered to an NFT write.';
comment on column finance_v1.operations_without_tx_number.from_addr is 'Wallet that pays, or the owner before.';
comment on column finance_v1.operations_without_tx_number.to_addr is 'Wallet that receives, or the owner after.';
comment on column finance_v1.operations_without_tx_number.operation_no is 'Operator wallet that pays a give.';
comment on column finance_v1.operations_without_tx_number.contract_id is 'NFT contract.';
comment on column finance_v1.operations_without_tx_number.token_id is 'NFT token.';
comment on column finance_v1.operations_without_tx_number.amount is 'Requested amount, in service tokens.';
comment on column finance_v1.operations_without_tx_number.fee_amount is 'Requested fee, in service tokens.';
comment on column finance_v1.operations_without_tx_number.reason_type is 'Reason as sent with the write.';
comment on column finance_v1.operations_without_tx_number.reference is 'Reference that the app gave to the write.';
comment on column finance_v1.operations_without_tx_number.sent_at is 'When it was sent.';
comment on column finance_v1.operations_without_tx_number.answered_at is 'When the service answered; null when it did not or its answer was lost.';
comment on column finance_v1.operations_without_tx_number.settled_at is 'When a balance or the chain confirmed it.';
comment on column finance_v1.operations_without_tx_number.effective_at is 'When it took effect, as far as known; its entries in the ledger have that time, also if the service answers later.';
--> statement-breakpoint
-- Postings of token writes; a reversal is minus one operation.
create or replace function tallyhook.movements("from" timestamptz, "to" timestamptz)
returns table (effective_at timestamptz, kind text, reason_type text, operations integer, amount numeric, fees numeric)
language sql stable as $$
select t.effective_at, o.kind, t.reason_type, 2 * (t.posting % 2) - 1, (2 * (t.posting % 2) - 1) * o.amount,
    (2 * (t.posting % 2) - 1) * coalesce(o.fee_amount, 0)
  from tallyhook.transactions t
  join tallyhook.operations o on o.id = t.operation_id
  where t.effective_at >= coalesce($1, '-infinity') and t.effective_at < coalesce($2, 'infinity')
$$;
--> statement-breakpoint
create or replace function tallyhook.movements_daily("from" timestamptz, "to" timestamptz, time_zone text)
returns table (day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric)
language sql stable as $$
select tallyhook.day_of(m.effective_at, $3) as day, m.kind, m.reason_type, sum(m.operations), sum(m.amount), sum(m.fees)
  from tallyhook.movements($1, $2) m
  group by 1, 2, 3
  order by 1, 2, 3
$$;
--> statement-breakpoint
revoke execute on function tallyhook.movements, tallyhook.movements_daily from public;
--> statement-breakpoint
grant execute on function tallyhook.movements to tallyhook_writer;
--> statement-breakpoint
-- Postgres takes the first of the three for what is written in quotes, so that a day or a local time is one of the
-- argument time_zone, and not of the session.
create or replace function finance_v1.movements_daily("from" text default null, "to" text default null,
  time_zone text default null)
returns table (day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
select m.* from tallyhook.zone_or_default($3) z
cross join lateral tallyhook.movements_daily(tallyhook.moment($1, z), tallyhook.moment($2, z), z) m
$$;
--> statement-breakpoint
create or replace function finance_v1.movements_daily("from" date, "to" date, time_zone text default null)
returns table (day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
select m.* from tallyhook.zone_or_default($3) z
cross join lateral tallyhook.movements_daily(tallyhook.day_begin($1, z), tallyhook.day_begin($2, z), z) m
$$;
--> statement-breakpoint
create or replace function finance_v1.movements_daily("from" timestamptz, "to" timestamptz, time_zone text default null)
returns table (day date, kind text, reason_type text, operations bigint, amount numeric, fees numeric)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
select m.* from tallyhook.zone_or_default($3) z cross join lateral tallyhook.movements_daily($1, $2, z) m
$$;
--> statement-breakpoint
comment on function finance_v1.movements_daily(text, text, text) is 'Posted token writes per day, kind and reason that took effect from "from" (included) to "to" (excluded): days such as 2026-11-01, local times, or instants with an offset; empty bounds mean everything. A reversal counts minus one on the effective day of the write. time_zone: the zone of the days and of bounds without an offset, such as Europe/Berlin, by default that of the reports. The zone of the session has no effect. Columns: day; kind: give, receive_from or transfer; reason_type; operations: writes; amount: sum of the requested amounts, in service tokens; fees: sum of the requested fees, in service tokens.';
comment on function finance_v1.movements_daily(date, date, text) is 'movements_daily of whole days of time_zone, from "from" (included) to "to" (excluded).';
comment on function finance_v1.movements_daily(timestamptz, timestamptz, text) is 'movements_daily between two instants, in days of time_zone.';
--> statement-breakpoint
-- Ages of drifts in groups, in their order.
create or replace view tallyhook.age_buckets as
select bucket_order, bucket, from_age, to_age from (values
  (1, '<15 min', interval '-100 years', interval '15 minutes'), (2, '<2 h', '15 minutes', '2 hours'),
  (3, '<24 h', '2 hours', '24 hours'), (4, '1–3 d', '24 hours', '72 hours'), (5, '3–30 d', '72 hours', '720 hours'),
  (6, '>30 d', '720 hours', '10000 years')) b (bucket_order, bucket, from_age, to_age);
--> statement-breakpoint
create or replace view finance_v1.drifts as
select d.id as drift_id, d.addr, d.amount, d.state, d.opened_at::timestamptz as opened_at, a.age, b.bucket, d.assignee,
  case when p.subject is not null then jsonb_build_object('n', p.n, 'kind', p.decision, 'operation_id', p.operation_id,
    'reason', p.reason, 'proposed_by', p.proposed_by, 'approvals_needed', p.approvals_needed) end as proposal,
  q.approved_by, d.closed_at::timestamptz as closed_at, d.amount_min, d.amount_max, b.bucket_order, d.cause,
  d.counterpart, p.proposed_by, d.closed_by, (d.operator ->> 'operator_no')::numeric as operator_no,
  d.operator -> 'gives' as gives
from tallyhook.drifts d
cross join tallyhook.present n
cross join lateral (select make_interval(secs =>
  extract(epoch from coalesce(d.closed_at, n.now) - d.suspected_at)::float8) as age) a
join tallyhook.age_buckets b on a.age >= b.from_age and a.age < b.to_age
left join lateral (select x.subject, x.n, x.decision, x.operation_id, x.reason, x.proposed_by, x.approvals_needed
  from tallyhook.decisions x where x.subject = d.id order by x.n desc limit 1) p on true
left join lateral (select string_agg(y.owner, ', ' order by y.at) as approved_by from tallyhook.approvals y
  where y.subject = p.subject and y.n = p.n having count(*) >= p.approvals_needed) q on true;
--> statement-breakpoint
comment on view finance_v1.drifts is 'Every confirmed difference between the observed and the expected balance of a wallet, open or closed; one row each, never netted.';
comment on column finance_v1.drifts.drift_id is 'Our id of the drift.';
comment on column finance_v1.drifts.addr is 'Wallet whose observed balance differs from the expected one.';
comment on column finance_v1.drifts.amount is 'Observed minus expected balance, in service tokens; positive if the wallet holds more than is explained, null until it is exact.';
comment on column finance_v1.drifts.state is 'open, proposed, booked, linked, dismissed, returned, explained or merged.';
comment on column finance_v1.drifts.opened_at is 'When a second observation confirmed it.';
comment on column finance_v1.drifts.age is 'Time since the first observation of it, until it closed or until now.';
comment on column finance_v1.drifts.bucket is 'Age group: <15 min, <2 h, <24 h, 1–3 d, 3–30 d or >30 d.';
comment on column finance_v1.drifts.assignee is 'Who works on it.';
comment on column finance_v1.drifts.proposal is 'The newest proposal to end it; JSON.';
comment on column finance_v1.drifts.approved_by is 'Owners of the keys that approved the newest proposal; empty until it is approved.';
comment on column finance_v1.drifts.closed_at is 'When it was closed; null while it is open.';
comment on column finance_v1.drifts.amount_min is 'The least amount that the observations allow, in service tokens; equal to amount once that is exact.';
comment on column finance_v1.drifts.amount_max is 'The greatest amount that the observations allow, in service tokens.';
comment on column finance_v1.drifts.bucket_order is 'Number of the age group, to sort by; 1 is the youngest.';
comment on column finance_v1.drifts.cause is 'Probable cause: made_elsewhere, fee_rule, lost_operation, opening or operator_wallet.';
comment on column finance_v1.drifts.counterpart is 'The other drift of one transfer made elsewhere between two wallets; both are ended together.';
comment on column finance_v1.drifts.proposed_by is 'Owner of the key that made the newest proposal.';
comment on column finance_v1.drifts.closed_by is 'The observation or the decision that closed it.';
comment on column finance_v1.drifts.operator_no is 'With the cause operator_wallet: the operator that seems to pay from the wallet.';
comment on column finance_v1.drifts.gives is 'With the cause operator_wallet: the ids of its gives that sum to the drift; JSON.';
--> statement-breakpoint
create or replace view finance_v1.drifts_ageing as
select drift_id, addr, amount, state, opened_at, age, bucket, assignee, proposal,
  approved_by, closed_at, amount_min, amount_max, bucket_order, cause, counterpart, proposed_by, closed_by,
  operator_no, gives
from finance_v1.drifts where closed_at is null;
--> statement-breakpoint
comment on view finance_v1.drifts_ageing is 'The drifts that are still open, with their age.';
comment on column finance_v1.drifts_ageing.drift_id is 'Our id of the drift.';
comment on column finance_v1.drifts_ageing.addr is 'Wallet whose observed balance differs from the expected one.';
comment on column finance_v1.drifts_ageing.amount is 'Observed minus expected balance, in service tokens; positive if the wallet holds more than is explained, null until it is exact.';
comment on column finance_v1.drifts_ageing.state is 'open, proposed, booked, linked, dismissed, returned, explained or merged.';
comment on column finance_v1.drifts_ageing.opened_at is 'When a second observation confirmed it.';
comment on column finance_v1.drifts_ageing.age is 'Time since the first observation of it, until it closed or until now.';
comment on column finance_v1.drifts_ageing.bucket is 'Age group: <15 min, <2 h, <24 h, 1–3 d, 3–30 d or >30 d.';
comment on column finance_v1.drifts_ageing.assignee is 'Who works on it.';
comment on column finance_v1.drifts_ageing.proposal is 'The newest proposal to end it; JSON.';
comment on column finance_v1.drifts_ageing.approved_by is 'Owners of the keys that approved the newest proposal; empty until it is approved.';
comment on column finance_v1.drifts_ageing.closed_at is 'When it was closed; null while it is open.';
comment on column finance_v1.drifts_ageing.amount_min is 'The least amount that the observations allow, in service tokens; equal to amount once that is exact.';
comment on column finance_v1.drifts_ageing.amount_max is 'The greatest amount that the observations allow, in service tokens.';
comment on column finance_v1.drifts_ageing.bucket_order is 'Number of the age group, to sort by; 1 is the youngest.';
comment on column finance_v1.drifts_ageing.cause is 'Probable cause: made_elsewhere, fee_rule, lost_operation, opening or operator_wallet.';
comment on column finance_v1.drifts_ageing.counterpart is 'The other drift of one transfer made elsewhere between two wallets; both are ended together.';
comment on column finance_v1.drifts_ageing.proposed_by is 'Owner of the key that made the newest proposal.';
comment on column finance_v1.drifts_ageing.closed_by is 'The observation or the decision that closed it.';
comment on column finance_v1.drifts_ageing.operator_no is 'With the cause operator_wallet: the operator that seems to pay from the wallet.';
comment on column finance_v1.drifts_ageing.gives is 'With the cause operator_wallet: the ids of its gives that sum to the drift; JSON.';
--> statement-breakpoint
create or replace view finance_v1.drift_history as
select drift_id, at::timestamptz as at, action, by, detail from tallyhook.drift_actions;
--> statement-breakpoint
comment on view finance_v1.drift_history is 'What happened to drifts, append-only.';
comment on column finance_v1.drift_history.drift_id is 'Our id of the drift.';
comment on column finance_v1.drift_history.at is 'When it happened.';
comment on column finance_v1.drift_history.action is 'opened, revised (its bounds are known better), paired (with its counterpart), recognised (as gives of an operator), assigned, proposed, approved, or the state in which it ended.';
comment on column finance_v1.drift_history.by is 'Owner of the key, or reconciler.';
comment on column finance_v1.drift_history.detail is 'What was changed, with the evidence; JSON.';
--> statement-breakpoint
create or replace view finance_v1.decisions as
select d.subject, d.decision, d.reason, d.proposed_by, q.approved_by, q.at::timestamptz as at, d.n, d.operation_id,
  d.proposed_at::timestamptz as proposed_at, d.approvals_needed
from tallyhook.decisions d
left join lateral (select string_agg(y.owner, ', ' order by y.at) as approved_by, max(y.at) as at
  from tallyhook.approvals y where y.subject = d.subject and y.n = d.n having count(*) >= d.approvals_needed) q on true;
--> statement-breakpoint
comment on view finance_v1.decisions is 'Every proposal of people about the outcome of an operation or the end of a drift, every close of a period, which its signature approves, every reopening of a signed one, and every mapping of an operator to its wallet. It has an effect only once it is approved.';
comment on column finance_v1.decisions.subject is 'Our id of the operation, drift or period, or the account of the operator.';
comment on column finance_v1.decisions.decision is 'executed or not_executed; for a drift book, link or dismiss; for a period close or reopen; for an operator the address of its wallet.';
comment on column finance_v1.decisions.reason is 'Why, as the proposer wrote it.';
comment on column finance_v1.decisions.proposed_by is 'Owner of the key that proposed it.';
comment on column finance_v1.decisions.approved_by is 'Owners of the keys that approved it, never its proposer; null until it has all approvals.';
comment on column finance_v1.decisions.at is 'When it was approved; empty until then.';
comment on column finance_v1.decisions.n is 'Number of the proposal about its subject, from 1; the newest counts.';
comment on column finance_v1.decisions.operation_id is 'The operation that a drift is linked to.';
comment on column finance_v1.decisions.proposed_at is 'When it was proposed.';
comment on column finance_v1.decisions.approvals_needed is 'How many other owners must approve it: 1, or 2 above `decisions.second_approver_above`.';
--> statement-breakpoint
create or replace view finance_v1.in_doubt as
select o.id as operation_id, o.kind, o.amount, o.state,
  coalesce(t.at, o.sent_at, o.recorded_at)::timestamptz as since, o.owner,
  case o.state when 'undecided' then o.evidence else f.finding end as evidence, t.cause,
  p.decision as proposal, p.proposed_by
from tallyhook.open_operations w join tallyhook.operations o on o.id = w.id
left join lateral (select x.at, x.cause from tallyhook.transitions x
  where x.operation_id = o.id and x.to_state in ('unknown', 'undecided') order by x.id limit 1) t on true
left join lateral (select jsonb_build_object('outcome', c.outcome, 'basis', c.basis, 'seen_at', c.seen_at,
    'evidence', c.evidence) as finding
  from tallyhook.candidates c where c.operation_id = o.id) f on true
left join lateral (select d.decision, d.proposed_by from tallyhook.decisions d
  where d.subject = o.id order by d.n desc limit 1) p on true
where w.state in ('unknown', 'undecided');
--> statement-breakpoint
comment on view finance_v1.in_doubt is 'Writes whose answer was lost and whose outcome is not known yet. Evidence ends the unknown ones, people decide the undecided ones.';
comment on column finance_v1.in_doubt.operation_id is 'Our id of the write; its parties and numbers are in operations.';
comment on column finance_v1.in_doubt.kind is 'give, receive_from, transfer, mint, mint_sequential, burn, set_extra_data, transfer_from or other.';
comment on column finance_v1.in_doubt.amount is 'Requested amount, in service tokens.';
comment on column finance_v1.in_doubt.state is 'unknown, while observations may still show the outcome, or undecided, when it waits for a decision of people.';
comment on column finance_v1.in_doubt.since is 'When its answer was lost.';
comment on column finance_v1.in_doubt.owner is 'Owner of the key that asked for the write: whose it is.';
comment on column finance_v1.in_doubt.evidence is 'Of an unknown write the finding that a later observation has to confirm, empty without one; of an undecided one why the observations do not decide it; JSON.';
comment on column finance_v1.in_doubt.cause is 'How its answer was lost.';
comment on column finance_v1.in_doubt.proposal is 'The outcome that a person has proposed and that waits for approval: executed or not_executed.';
comment on column finance_v1.in_doubt.proposed_by is 'Owner of the key that proposed it; another owner approves.';
--> statement-breakpoint
-- Whose token a burn took: a write does not say it, the standing movements before it do.
create or replace view tallyhook.burned_from as
select m.id, (
    select b.to_addr from tallyhook.nft_movements b
    where b.contract_id = m.contract_id and b.token_id = m.token_id and b.kind in ('opening', 'mint', 'transfer')
      and (b.effective_at, b.id) < (m.effective_at, m.id) and not exists (
        select from tallyhook.nft_movements r where r.reverses = b.id)
    order by b.effective_at desc, b.id desc limit 1) as addr
from tallyhook.nft_movements m where m.kind = 'burn' and m.from_addr is null;
--> statement-breakpoint
create or replace view finance_v1.nft_movements as
select m.contract_id, m.token_id, m.kind, coalesce(m.from_addr, f.addr) as from_addr, m.to_addr, coalesce(m.tx_hash, o.tx_hash) as tx_hash,
  m.effective_at::timestamptz as effective_at, m.id as seq, m.operation_id,
  m.operation_id is null and m.kind in ('mint', 'transfer', 'burn') as unexplained,
  m.not_before::timestamptz as not_before, m.effective_basis, m.recorded_at::timestamptz as recorded_at, m.reverses,
  m.kind <> 'reversal' and (select r.id from tallyhook.nft_movements r where r.reverses = m.id) is null as standing
from tallyhook.nft_movements m left join tallyhook.operations o on o.id = m.operation_id
left join tallyhook.burned_from f on f.id = m.id;
--> statement-breakpoint
comment on view finance_v1.nft_movements is 'The journal of NFTs, append-only: what our writes did, and what observations showed that was made elsewhere. What turns out otherwise later is reversed: sum only standing movements.';
comment on column finance_v1.nft_movements.contract_id is 'NFT contract.';
comment on column finance_v1.nft_movements.token_id is 'NFT token.';
comment on column finance_v1.nft_movements.kind is 'An opening is of a token that existed when it became known: opening, mint, transfer, burn, data_change or reversal.';
comment on column finance_v1.nft_movements.from_addr is 'Owner before; of a burn the one that the movements before it say.';
comment on column finance_v1.nft_movements.to_addr is 'Owner after.';
comment on column finance_v1.nft_movements.tx_hash is 'Chain transaction, also when it became known after the posting; of what was made elsewhere the last one that the token showed.';
comment on column finance_v1.nft_movements.effective_at is 'When it took effect, as far as known; of what was made elsewhere the start of the observation that first showed it.';
comment on column finance_v1.nft_movements.seq is 'Number of the movement, rising in the order of recording, with gaps.';
comment on column finance_v1.nft_movements.operation_id is 'Our id of the write; null for an opening, for what was made elsewhere, and for their reversals.';
comment on column finance_v1.nft_movements.unexplained is 'True for a mint, transfer or burn that no operation explains: it was made elsewhere, and nobody has reported it.';
comment on column finance_v1.nft_movements.not_before is 'Of what an observation showed: the start of the observation before, which did not show it; null at the first observation.';
comment on column finance_v1.nft_movements.effective_basis is 'What the time rests on: as of a transaction; observed of what observations showed; operation of what a write shows of the owner before it.';
comment on column finance_v1.nft_movements.recorded_at is 'When it was recorded.';
comment on column finance_v1.nft_movements.reverses is 'Of a reversal the seq of the movement that it takes back.';
comment on column finance_v1.nft_movements.standing is 'False for a movement that was reversed, and for a reversal.';
--> statement-breakpoint
create or replace view finance_v1.nft_holdings as
select contract_id, token_id, owner, locked = 1 as locked, status
from tallyhook.tokens where presence = 'present';
--> statement-breakpoint
comment on view finance_v1.nft_holdings is 'Tokens that exist, as the service showed them last.';
comment on column finance_v1.nft_holdings.contract_id is 'NFT contract.';
comment on column finance_v1.nft_holdings.token_id is 'NFT token.';
comment on column finance_v1.nft_holdings.owner is 'Wallet that owns it.';
comment on column finance_v1.nft_holdings.locked is 'True while a market has locked it.';
comment on column finance_v1.nft_holdings.status is 'Status that the service showed: 0 pending, 1 complete, 2 in progress, 3 failed.';
--> statement-breakpoint
-- The movements that took effect before as_of and were recorded, and not taken back, until known_at.
create or replace function tallyhook.standing_movements(as_of timestamptz default null, known_at timestamptz default null)
returns setof tallyhook.nft_movements language sql stable as $$
  select m.* from tallyhook.nft_movements m
  where m.kind <> 'reversal' and m.effective_at < coalesce($1, 'infinity')
    and m.recorded_at <= coalesce($2, 'infinity') and not exists (
      select from tallyhook.nft_movements r where r.reverses = m.id and r.recorded_at <= coalesce($2, 'infinity'))
$$;
--> statement-breakpoint
revoke execute on function tallyhook.standing_movements from public;
--> statement-breakpoint
grant execute on function tallyhook.standing_movements to tallyhook_writer;
--> statement-breakpoint
create or replace function finance_v1.nft_holdings_as_of(as_of timestamptz default null, known_at timestamptz default null)
returns table (contract_id numeric, token_id numeric, owner text, since timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
with last as (
  select distinct on (m.contract_id, m.token_id) m.* from tallyhook.standing_movements($1, $2) m
  where m.kind <> 'data_change'
  order by m.contract_id, m.token_id, m.effective_at desc, m.id desc
)
select l.contract_id, l.token_id, l.to_addr, l.effective_at from last l where l.kind <> 'burn'
  order by l.contract_id, l.token_id
$$;
--> statement-breakpoint
comment on function finance_v1.nft_holdings_as_of(timestamptz, timestamptz) is 'Tokens that existed then by nft_movements. as_of: only what took effect before then, that instant excluded, as in balances_as_of; known_at: only what was recorded until then, that instant included; empty means everything. A token is missing before the first evidence of it. Columns: contract_id; token_id; owner: empty where it is not known; since: when the owner got it, as far as known.';
--> statement-breakpoint
create or replace function finance_v1.nft_supply(as_of timestamptz default null, known_at timestamptz default null)
returns table (contract_id numeric, opening bigint, minted bigint, minted_unexplained bigint, burned bigint,
  burned_unexplained bigint, held bigint, balanced boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
with moved as (
  select m.contract_id, m.token_id, count(*) filter (where m.kind = 'opening') as opening,
    count(*) filter (where m.kind = 'mint') as minted,
    count(*) filter (where m.kind = 'mint' and m.operation_id is null) as minted_unexplained,
    count(*) filter (where m.kind = 'burn') as burned,
    count(*) filter (where m.kind = 'burn' and m.operation_id is null) as burned_unexplained
  from tallyhook.standing_movements($1, $2) m where m.kind <> 'data_change' group by m.contract_id, m.token_id
), token as (
  select m.*, (h.token_id is not null)::int as held
  from moved m left join finance_v1.nft_holdings_as_of($1, $2) h
    on h.contract_id = m.contract_id and h.token_id = m.token_id
)
select t.contract_id, sum(t.opening)::bigint, sum(t.minted)::bigint, sum(t.minted_unexplained)::bigint,
  sum(t.burned)::bigint, sum(t.burned_unexplained)::bigint, sum(t.held)::bigint,
  bool_and(t.opening + t.minted - t.burned = t.held)
from token t group by t.contract_id order by t.contract_id
$$;
--> statement-breakpoint
comment on function finance_v1.nft_supply(timestamptz, timestamptz) is 'Supply of each contract by nft_movements; as_of and known_at as in nft_holdings_as_of. Columns: contract_id; opening: tokens that existed when they became known; minted, and how many of these were minted_unexplained; burned, and how many of these were burned_unexplained; held: tokens that existed then; balanced: whether opening + minted - burned = held, for every token.';
--> statement-breakpoint
create or replace view finance_v1.reports as
select id as report_id, kind, period_from::timestamptz as period_from,
  period_to::timestamptz as period_to, known_at::timestamptz as known_at, verdict, breaks,
  content -> 'cut_off' ->> 'chain_head' as chain_head, provisional, content ->> 'time_zone' as time_zone
from tallyhook.reports;
--> statement-breakpoint
comment on view finance_v1.reports is 'Every report that was made.';
comment on column finance_v1.reports.report_id is 'Our id of the report.';
comment on column finance_v1.reports.kind is 'Always reconciliation.';
comment on column finance_v1.reports.period_from is 'Start of its period, included.';
comment on column finance_v1.reports.period_to is 'End of its period, excluded.';
comment on column finance_v1.reports.known_at is 'Cut-off: time of the last ledger batch in the report.';
comment on column finance_v1.reports.verdict is 'balanced or breaks.';
comment on column finance_v1.reports.breaks is 'How many breaks it found.';
comment on column finance_v1.reports.provisional is 'Made while its period still ran: a later report of the period has other figures.';
comment on column finance_v1.reports.time_zone is 'IANA name of the zone of its days and times; day_of(period_from, time_zone) is its first day.';
comment on column finance_v1.reports.chain_head is 'Head of the hash chain and number of batches at the cut-off, as verify --anchor takes them; empty before the first batch.';
--> statement-breakpoint
create or replace view finance_v1.periods as
select p.id as period, case when r.period_id is not null then 'reopened' when s.period_id is not null then 'signed'
    else 'closed' end as state, p.period_from::timestamptz as period_from, p.period_to::timestamptz as period_to,
  p.closed_by, p.closed_at::timestamptz as closed_at, s.by as signed_by, s.at::timestamptz as signed_at,
  q.by as reopen_proposed_by, r.by as reopened_by, r.at::timestamptz as reopened_at,
  coalesce(r.reason, q.reason) as reopen_reason, p.report_id, p.report_hash,
  p.last_batch, p.known_at::timestamptz as known_at, p.chain_head,
  (select count(*) from tallyhook.period_actions o where o.period_id = p.id and o.action = 'signed_off') as signed_off
from tallyhook.periods p
left join tallyhook.period_actions s on s.period_id = p.id and s.action = 'signed'
left join tallyhook.period_actions r on r.period_id = p.id and r.action = 'reopened'
left join lateral (select a.by, a.reason from tallyhook.period_actions a
  where a.period_id = p.id and a.action = 'reopen_proposed' order by a.id desc limit 1) q on true
union all
select null, 'open', max(p.period_to)::timestamptz, null, null, null, null, null, null, null, null, null, null, null, null,
  null, null, 0
from tallyhook.periods p
where not exists (select from tallyhook.period_actions a where a.period_id = p.id and a.action = 'reopened');
--> statement-breakpoint
comment on view finance_v1.periods is 'Every close of a period, and the open period. Balances of a closed period, as they were signed: balances_as_of(period_to, known_at).';
comment on column finance_v1.periods.period is 'Our id of the close; empty for the open period.';
comment on column finance_v1.periods.state is 'open, closed, signed or reopened; a reopened one is no longer in force.';
comment on column finance_v1.periods.period_from is 'Start, included: the end of the period before; empty for the open period before the first close.';
comment on column finance_v1.periods.period_to is 'End, excluded: what took effect at exactly this instant belongs to the next period.';
comment on column finance_v1.periods.closed_by is 'Owner of the key that closed it.';
comment on column finance_v1.periods.closed_at is 'When it was closed.';
comment on column finance_v1.periods.signed_by is 'Owner of the key that signed it, never the one that closed it; null until then.';
comment on column finance_v1.periods.signed_at is 'When it was signed.';
comment on column finance_v1.periods.reopen_proposed_by is 'Owner of the key that proposed to reopen it after it was signed.';
comment on column finance_v1.periods.reopened_by is 'Owner of the key that reopened it, or approved that; never the one that proposed it.';
comment on column finance_v1.periods.reopened_at is 'When it was reopened.';
comment on column finance_v1.periods.reopen_reason is 'Why, as that person wrote it.';
comment on column finance_v1.periods.report_id is 'The report over exactly this period, which is its answer from now on.';
comment on column finance_v1.periods.report_hash is 'SHA-256 of the content of that report.';
comment on column finance_v1.periods.last_batch is 'Cut-off: the last ledger batch in the report, 0 without one.';
comment on column finance_v1.periods.known_at is 'Time of that batch; what was recorded later and took effect in the period is a prior-period line of later reports.';
comment on column finance_v1.periods.chain_head is 'Head of the hash chain and number of batches at the cut-off, as verify --anchor takes them.';
comment on column finance_v1.periods.signed_off is 'How many open items were signed off at the close; see period_history.';
--> statement-breakpoint
create or replace view finance_v1.period_history as
select period_id as period, at::timestamptz as at, action, by, reason, detail from tallyhook.period_actions;
--> statement-breakpoint
comment on view finance_v1.period_history is 'What people did with periods, append-only.';
comment on column finance_v1.period_history.period is 'Our id of the close.';
comment on column finance_v1.period_history.at is 'When.';
comment on column finance_v1.period_history.action is 'closed, signed_off (an open item, at the close), signed, reopen_proposed or reopened.';
comment on column finance_v1.period_history.by is 'Owner of the key.';
comment on column finance_v1.period_history.reason is 'Why, as that person wrote it.';
comment on column finance_v1.period_history.detail is 'The open item that was signed off; JSON.';
--> statement-breakpoint
create or replace view finance_v1.coverage as
with scope as (
  select key from tallyhook.wallets
  union select lower(substr(name, 8)) from tallyhook.accounts where kind = 'wallet'
  union select lower(addr) from tallyhook.targets where kind = 'wallet'
), fresh as (
  select now - make_interval(secs => coalesce((select value::float8 from tallyhook.installation
    where name = 'stale_after_ms'), 86400000) / 1000) as since
  from tallyhook.present
)
select count(*) as in_scope,
  count(*) filter (where w.observed_at >= f.since and w.verdict in ('explained', 'drifting')) as checked,
  count(*) filter (where w.observed_at is null or w.observed_at < f.since) as stale,
  min(w.observed_at)::timestamptz as oldest_check_at
from scope s
cross join fresh f
left join tallyhook.wallets w on w.key = s.key;
--> statement-breakpoint
comment on view finance_v1.coverage is 'One row: how many wallets are in scope and how many were checked. Only conclusive checks count; a check is stale after the installation setting stale_after_ms (default 24 h).';
comment on column finance_v1.coverage.in_scope is 'Wallets that are observed or have an account in the ledger.';
comment on column finance_v1.coverage.checked is 'Wallets whose newest observation was conclusive and recent enough.';
comment on column finance_v1.coverage.stale is 'Wallets whose newest processed observation is too old, or that were never observed.';
comment on column finance_v1.coverage.oldest_check_at is 'Start of the oldest of the newest processed observations.';
--> statement-breakpoint
-- tallyhook_finance may read nothing else.
revoke all on all functions in schema finance_v1 from public;
--> statement-breakpoint
grant usage on schema finance_v1 to tallyhook_finance, tallyhook_writer;
--> statement-breakpoint
grant select on all tables in schema finance_v1 to tallyhook_finance, tallyhook_writer;
--> statement-breakpoint
grant execute on all functions in schema finance_v1 to tallyhook_finance, tallyhook_writer;
--> statement-breakpoint
grant select on tallyhook.mapped_operators, tallyhook.pending_effects, tallyhook.due_effects, tallyhook.age_buckets, tallyhook.bookings,
  tallyhook.burned_from to tallyhook_writer;
