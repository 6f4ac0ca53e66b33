/** SQL that counts targets. */
import type { Queryable } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { RateClass } from './schedule/price.ts';
import { NEVER } from './targets-store.ts';

export interface OldestPoll {
  /** When the target polled longest ago was polled; null if none was. */
  oldestPollAt: Instant | null;
}

/** Targets that are polled, by how often they change; a class spans 28 % of that. */
export async function countRateClasses(db: Queryable): Promise<(RateClass & OldestPoll)[]> {
  return db.sql<(RateClass & OldestPoll)[]>`
    select count(*)::int as targets, avg(sqrt(changes / changes_over_s)) as root,
      min(last_started_at) as oldest_poll_at
    from tallyhook.targets
    where kind in ('wallet', 'token', 'contract') and next_poll_at < ${isoText(NEVER)}
      and not idle
    group by floor(ln(changes / changes_over_s) * 4)`;
}

export interface LateTargets extends OldestPoll {
  targets: number;
}

/** Polled targets without a conclusive poll since then; reads all targets. */
export async function countLate(db: Queryable, since: Instant): Promise<LateTargets> {
  const rows = await db.sql<LateTargets[]>`
    select count(*)::int as targets, min(last_started_at) as oldest_poll_at
    from tallyhook.targets
    where kind in ('wallet', 'token', 'contract') and next_poll_at < ${isoText(NEVER)}
      and not idle
      and coalesce(last_started_at, added_at) < ${isoText(since)}`;
  return rows[0] ?? { targets: 0, oldestPollAt: null };
}

/** The number of wallets and tokens. */
export async function countTargets(db: Queryable): Promise<number> {
  const rows = await db.sql<{ count: number }[]>`
    select count(*)::int as count from tallyhook.targets where kind in ('wallet', 'token')`;
  return rows[0]?.count ?? 0;
}

/** Counts up to a maximum. */
export interface ObserverBacklog {
  /** Targets whose poll is due, and since when the first one is. */
  due: number;
  dueSince: Instant | null;
  /** Observations to process that are not quarantined, and when the first was due. */
  unprocessed: number;
  unprocessedSince: Instant | null;
}

export async function countBacklog(
  db: Queryable,
  now: Instant,
  max: number,
): Promise<ObserverBacklog> {
  const rows = await db.sql<ObserverBacklog[]>`
    select d.count as due, d.since as due_since, j.count as unprocessed,
      j.since as unprocessed_since
    from (select count(*)::int as count, min(next_poll_at) as since from (
        select next_poll_at from tallyhook.targets
        where next_poll_at <= ${isoText(now)} 
        order by next_poll_at limit ${max}) x) d,
      (select count(*)::int as count, min(process_at) as since from (
        select process_at from tallyhook.unprocessed_observations where problem is null
        order by process_at limit ${max}) x) j`;
  return rows[0] ?? { due: 0, dueSince: null, unprocessed: 0, unprocessedSince: null };
}
