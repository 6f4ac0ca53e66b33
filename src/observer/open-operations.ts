/** Finds the wallets and tokens of open operations, at a bounded cost. */
import type { Db, Queryable } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';

/**
 * How often changed operations are searched, and how far back before the previous search. Changes
 * are dated before they are committed, normally by less than a second.
 */
const SEARCHES = [
  { everyMs: 10_000, overlapMs: 20_000 },
  { everyMs: 250, overlapMs: 1_000 },
];
/** All open operations are searched a page at a time, for those that a search of changes missed. */
const PAGE = { everyMs: 1_000, operations: 2_000 };

/** Schedules targets of open operations; returns when to call it again if nothing was due. */
export function openOperationSearch(
  db: Db,
  { pendingMinMs: gapMs, readLagMs }: { pendingMinMs: number; readLagMs: number },
): (now: Instant) => Promise<Instant> {
  const times = { gapMs, readLagMs };
  const schedule = (now: Instant, which: OpenOperations) =>
    db.single((q) => scheduleOpen(q, now, which, times));
  const searches = SEARCHES.map((search) => ({ ...search, last: Number.NEGATIVE_INFINITY }));
  let page: { after: Position; at: Instant } = { after: FIRST, at: Number.NEGATIVE_INFINITY };
  return async (now) => {
    if (now < page.at || now >= page.at + PAGE.everyMs) {
      const { after } = page;
      const next = await schedule(now, { after, limit: PAGE.operations });
      page = { after: next ?? FIRST, at: now };
    }
    const due = searches.findIndex(({ everyMs, last }) => now < last || now >= last + everyMs);
    const search = searches[due];
    if (!search) return Math.min(...searches.map(({ everyMs, last }) => last + everyMs));
    const last = Number.isFinite(search.last) ? search.last : now;
    await schedule(now, { since: Math.min(now, last) - search.overlapMs });
    // A wider search includes the narrower ones.
    for (const narrower of searches.slice(due)) narrower.last = now;
    return Number.POSITIVE_INFINITY;
  };
}

/** The place of an open operation in their index. */
interface Position {
  state: string;
  changedAt: Instant;
  id: string;
}

const FIRST: Position = { state: '', changedAt: 0, id: '' };

/** Open operations to schedule: those that changed since, or a page of all. */
type OpenOperations = { since: Instant } | { after: Position; limit: number };

/**
 * Where more is due than the budget allows, the target that waits longest is next, and each further
 * open operation of a target counts as so many seconds of waiting: the wallet of a merchant is not
 * behind hundreds of payers.
 */
const FURTHER_S = 2;
const FURTHER_MAX = 30;

/**
 * Adds the wallets and tokens of open operations as targets, and makes a poll due for those whose
 * last poll began before the service had to show the newest change of an operation, at most one
 * per `gapMs`. That is the read lag of the settings, never a learned time: a poll before it
 * concludes nothing about a balance. A poll that shows nothing new of a steady target is not
 * evaluated, and asks for no other by itself. A target that is being recorded or claimed at this
 * moment is left to the next search. Returns the last operation of the page if that was full.
 */
export async function scheduleOpen(
  db: Queryable,
  now: Instant,
  which: OpenOperations,
  { gapMs, readLagMs }: { gapMs: number; readLagMs: number },
): Promise<Position | undefined> {
  const { sql } = db;
  const page =
    'since' in which
      ? sql`w.changed_at >= ${isoText(which.since)}::timestamptz`
      : sql`(w.state, w.changed_at, w.id) > (${which.after.state},
          ${isoText(which.after.changedAt)}::timestamptz, ${which.after.id})
        order by w.state, w.changed_at, w.id limit ${which.limit}`;
  const rows = await sql<({ operations: number } & Position)[]>`
    with open as materialized (
      select o.id, o.kind, o.contract_id, o.token_id, w.state, w.changed_at
      from tallyhook.open_operations w join tallyhook.operations o on o.id = w.id
      where w.state in ('sending', 'queued', 'accepted', 'unknown', 'executed')
        and ${page}
    ), named as (
      select lower(e.account) as name, 'wallet' as kind, substr(e.account, 8) as addr,
        null::numeric as contract_id, null::numeric as token_id, o.changed_at
      from open o join tallyhook.operation_effects e on e.operation_id = o.id
      where e.account like 'wallet:%'
      union all
      select 'token:' || contract_id || ':' || token_id, 'token', null, contract_id, token_id,
        changed_at
      from open
      where contract_id is not null and token_id is not null
        and kind in ('mint', 'mint_sequential', 'burn', 'set_extra_data', 'transfer_from')
    ), latest as (
      select distinct on (name) name, kind, addr, contract_id, token_id, changed_at,
        least(count(*) over (partition by name) - 1, ${FURTHER_MAX}) as further
      from named order by name, changed_at desc
    ), added as (
      insert into tallyhook.targets
        (name, kind, addr, contract_id, token_id, next_poll_at, pending, added_at)
      select l.name, l.kind, l.addr, l.contract_id, l.token_id, ${isoText(now)}, true,
        ${isoText(now)}
      from latest l
      where not exists (select from tallyhook.targets t where t.name = l.name)
      order by l.name on conflict (name) do nothing
    ), late as (
      select t.name, d.at from latest l join tallyhook.targets t on t.name = l.name
      cross join lateral (
        select t.last_started_at + make_interval(secs => ${gapMs / 1000}) as at) earliest
      cross join lateral (select case when earliest.at > ${isoText(now)} then earliest.at
        else ${isoText(now)}::timestamptz - l.further * ${`${FURTHER_S} seconds`}::interval
        end as at) d
      where t.lease_until is null and t.failures = 0
        and (t.next_poll_at > d.at or not t.pending)
        and (t.last_started_at is null or t.last_started_at <=
          l.changed_at + make_interval(secs => ${readLagMs / 1000}))
      for update of t skip locked
    ), scheduled as (
      update tallyhook.targets t set pending = true, next_poll_at = least(t.next_poll_at, d.at)
      from late d where t.name = d.name
    )
    select (select count(*) from open)::int as operations, l.state, l.changed_at, l.id
    from (select) x left join lateral (
      select state, changed_at, id from open order by state desc, changed_at desc, id desc limit 1
    ) l on true`;
  const [last] = rows;
  return last && 'limit' in which && last.operations === which.limit ? last : undefined;
}
