-- The expected balance: what a wallet is expected to hold at an observation. The only definition, which the reconciler
-- and the reports call.
--
-- An observation that starts at s and ends at e shows the state at an instant between. With the read lag L it includes
-- what took effect before s - L (required), excludes what was sent after e, and may include the rest (possible). Of
-- instants in the same millisecond the order is not known. An operation that was reported, decided or taken back later
-- and happened before the observation that the opening rests on is part of the opening (held): it is posted together
-- with an equal correction, so it changes nothing. What was queued before a restore or a failover is possible too:
-- another database may have sent it.
--
-- Only unsettled and quarantined operations are read, by index: a settled one was required by an observation of each of
-- its wallets, and every later observation requires it as well.
--   account: wallet:<address in lower case>; includes_before: s - L; ended_at: e; opens_at: s - L for a wallet without
--   opening, else null
--   ledger: posted and requested; unposted: required and not posted, less posted and not executed; late: posted and
--   not required;
--   possible, up, down: how many may be included, the sum of those that increase and of those that decrease it;
--   waiting: how many of the required ones the ledger is about to post;
--   unsure: how many are unknown or undecided;
--   backdated: how many may have become known after observations that did not count them, or were taken back;
--   open_since: when the first of them without an outcome was sent, undecided ones apart; executed_until: when the
--   last executed one of them took effect; candidates: the first 13 of them
create or replace function tallyhook.expected_balance(account text, includes_before timestamptz, ended_at timestamptz,
  opens_at timestamptz)
returns table (ledger numeric, version bigint, unposted numeric, late numeric, possible int, up numeric, down numeric,
  waiting int, unsure int, backdated int, open_since timestamptz, executed_until timestamptz, candidates jsonb)
language sql stable as $$
select coalesce(a.balance, 0) + r.amount, coalesce(a.version, 0), s.unposted, s.late, s.possible, s.up, s.down,
  s.waiting, s.unsure, s.backdated, s.open_since, s.executed_until, s.candidates
from (select coalesce(sum(q.amount), 0) as amount from tallyhook.posting_requests q
  where lower(q.account) = $1 and q.posted_at is null and q.problem is null) r
left join tallyhook.accounts a on lower(a.name) = $1 and a.asset = 'service_token'
cross join (select coalesce(max(q.seen_at), $4, '-infinity') as held_before from tallyhook.posting_requests q
  where q.id = 'opening:' || substr($1, 8) and q.seen_at is not null and q.problem is null) n
cross join lateral (
  select coalesce(sum(c.amount) filter (where c.inclusion = 'required' and not c.posted), 0)
      - coalesce(sum(c.amount) filter (where c.inclusion = 'undone' and c.posted), 0) as unposted,
    coalesce(sum(c.amount) filter (where c.inclusion in ('possible', 'excluded') and c.posted), 0) as late,
    (count(*) filter (where c.inclusion = 'possible'))::int as possible,
    coalesce(sum(c.amount) filter (where c.inclusion = 'possible' and c.amount > 0), 0) as up,
    coalesce(sum(c.amount) filter (where c.inclusion = 'possible' and c.amount < 0), 0) as down,
    (count(*) filter (where c.inclusion = 'required' and c.waiting))::int as waiting,
    (count(*) filter (where c.state in ('unknown', 'undecided')))::int as unsure,
    (count(*) filter (where c.inclusion = 'undone' or c.inclusion = 'required' and c.backdated))::int as backdated,
    min(c.sent_at) filter (where c.inclusion = 'possible' and c.outcome = 'open' and c.state <> 'undecided')
      as open_since,
    max(c.took_effect_at) filter (where c.inclusion = 'possible' and c.outcome = 'executed') as executed_until,
    coalesce(jsonb_agg(jsonb_build_object('id', c.id, 'effect', c.amount::text, 'state', c.state, 'outcome', c.outcome,
      'deadlineAt', c.deadline_at, 'indicated', c.indicated)) filter (where c.inclusion = 'possible' and c.place <= 13),
      '[]') as candidates
  from (
    select o.id, e.amount, o.state, o.outcome, o.sent_at, o.took_effect_at, o.posted, o.waiting, o.backdated,
      i.inclusion,
      (extract(epoch from o.deadline_at) * 1000)::bigint as deadline_at, o.indicated,
      row_number() over (partition by i.inclusion order by o.sent_at, o.id) as place
    from (
      select u.operation_id, sum(u.amount) as amount from (
        select l.operation_id, l.amount from tallyhook.operation_effects l
        where lower(l.account) = $1 and l.unsettled and (l.phase <> 'queued' or exists (
          select from tallyhook.operations h join tallyhook.freezes f on h.recorded_at <= f.frozen_at
          where h.id = l.operation_id and f.cause <> 'ordered'))
        union all
        -- The two offsets keep the order of this join: planned without statistics, it read all effects.
        select q.operation_id, l.amount
        from (select d.operation_id from tallyhook.due_postings d where d.quarantined_at is not null offset 0) q
        cross join lateral (select x.amount from tallyhook.operation_effects x
          where x.operation_id = q.operation_id and lower(x.account) = $1 and x.phase in ('settled', 'not_executed')
          offset 0) l
      ) u group by u.operation_id having sum(u.amount) <> 0) e
    cross join lateral (
      select w.id, w.state, w.outcome, coalesce(w.sent_at, w.effective_at, w.recorded_at) as sent_at,
        coalesce(w.effective_at, w.answered_at, w.recorded_at) as took_effect_at,
        case when w.state = 'queued' then now() else coalesce(w.send_deadline_at, w.recorded_at) end as deadline_at,
        w.evidence ->> 'indicated' as indicated,
        w.source = 'report' or w.effective_basis in ('reported', 'decision') as backdated,
        p.due and (w.source = 'report' or p.times > 0 or w.effective_basis in ('reported', 'decision')) as late,
        case when p.due then p.times % 2 = 1 else w.in_ledger end as posted, p.waiting
      from tallyhook.operations w
      cross join lateral (
        select d.operation_id is not null as due,
          d.operation_id is not null and d.quarantine_reason is null as waiting,
          case when d.operation_id is null then 0 else coalesce((
            select max(t.posting) from tallyhook.transactions t where t.operation_id = w.id), 0) end as times
        from (select) x left join tallyhook.due_postings d on d.operation_id = w.id) p
      where w.id = e.operation_id
      -- It keeps a lookup for each operation: without statistics the planner read all operations.
      offset 0) o
    cross join lateral (select case
      when o.late and o.sent_at < n.held_before then 'held'
      when o.outcome = 'not_executed' then 'undone'
      when o.sent_at > $3 then 'excluded'
      when o.outcome = 'executed' and o.took_effect_at < $2 then 'required'
      else 'possible' end as inclusion) i
  ) c) s
$$;
--> statement-breakpoint
revoke execute on function tallyhook.expected_balance from public;
--> statement-breakpoint
grant execute on function tallyhook.expected_balance to tallyhook_writer;
