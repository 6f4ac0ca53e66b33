/** Targets: what is polled, by its name, and when. */
import { asJson, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { addressKey } from '../kernel/addresses.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import { hasOpen } from '../operations/operations.ts';
import type { Known } from './observations.ts';
import type { targets } from './tables.ts';

/** Named `wallet:<addr, lower case>`, `contract:<id>` or `token:<contract>:<token>`. */
export type TargetRef =
  | { kind: 'wallet'; addr: string }
  | { kind: 'contract'; contractId: bigint }
  | { kind: 'token'; contractId: bigint; tokenId: bigint };

export function targetName(ref: TargetRef): string {
  switch (ref.kind) {
    case 'wallet':
      return `wallet:${addressKey(ref.addr)}`;
    case 'contract':
      return `contract:${ref.contractId}`;
    case 'token':
      return `token:${ref.contractId}:${ref.tokenId}`;
  }
}

/** The columns of a target's row. */
export function toTarget(ref: TargetRef) {
  return {
    name: targetName(ref),
    kind: ref.kind,
    addr: ref.kind === 'wallet' ? ref.addr : null,
    contractId: ref.kind === 'wallet' ? null : ref.contractId,
    tokenId: ref.kind === 'token' ? ref.tokenId : null,
  };
}

type Row = typeof targets.$inferSelect;

/** What a target is of. */
export type TargetColumns = Pick<Row, 'kind' | 'addr' | 'contractId' | 'tokenId'>;

export interface DueTarget
  extends Known,
    TargetColumns,
    Pick<Row, 'name' | 'failures' | 'pending'> {
  /**
   * A token of settled operations is polled seldom. One that only the list of its contract has
   * shown is never polled by itself.
   */
  schedule: 'steady' | 'seldom' | 'never';
}

interface NewTarget extends TargetColumns {
  name: string;
  /** Without it the first poll is due now. */
  firstPollAfterMs?: number;
}

/**
 * Existing targets keep their spelling and schedule, except for one that is polled seldom or never.
 * They are locked, so that `deleteFinished` cannot delete them before the caller's transaction
 * commits why they are polled.
 */
export async function addTargets(
  db: Queryable,
  targets: readonly NewTarget[],
  now: Instant,
): Promise<void> {
  await db.sql`
    insert into tallyhook.targets as o
      (name, kind, addr, contract_id, token_id, next_poll_at, added_at)
    select distinct on (name) name, kind, addr, "contractId", "tokenId",
      ${isoText(now)}::timestamptz + coalesce("firstPollAfterMs", 0) * interval '1 ms',
      ${isoText(now)}
    from jsonb_to_recordset(${asJson(targets)}::jsonb) as x(name text, kind text, addr text,
      "contractId" numeric, "tokenId" numeric, "firstPollAfterMs" bigint)
    order by name
    on conflict (name) do update set next_poll_at = least(o.next_poll_at, excluded.next_poll_at)
    where o.idle or o.next_poll_at = ${isoText(NEVER)}`;
}

/**
 * Adds a target that the caller is about to poll itself, or makes it pending; others poll it from
 * that instant on. False, and nothing is changed, while a deadline of polls stands, which another
 * daemon may have received.
 */
export async function addForFirstPoll(
  { sql }: Queryable,
  { name, kind, addr, contractId, tokenId }: NewTarget,
  { now, dueAt }: { now: Instant; dueAt: Instant },
): Promise<boolean> {
  const added = await sql`
    insert into tallyhook.targets as o
      (name, kind, addr, contract_id, token_id, next_poll_at, pending, added_at)
    select ${name}, ${kind}, ${addr}, ${contractId?.toString() ?? null}::numeric,
      ${tokenId?.toString() ?? null}::numeric, ${isoText(dueAt)}::timestamptz, true,
      ${isoText(now)}::timestamptz
    where not exists (select from tallyhook.quota
      where name = 'polls' and blocked_until > ${isoText(now)})
    on conflict (name) do update set pending = true,
      next_poll_at = least(o.next_poll_at, excluded.next_poll_at)`;
  return added.count > 0;
}

/** Stops polling those of the targets that no operation touches. */
export async function deleteUntouched({ sql }: Tx, names: readonly string[]): Promise<void> {
  await sql`
    with untouched as materialized (
      select t.name from tallyhook.targets t
      where t.name = any(${names as string[]}::text[])
        and case t.kind
          when 'wallet' then
            (select true from tallyhook.operations o
              where lower(o.from_addr) = lower(t.addr) limit 1) is null
            and (select true from tallyhook.operations o
              where lower(o.to_addr) = lower(t.addr) limit 1) is null
          when 'token' then
            (select true from tallyhook.operations o
              where o.contract_id = t.contract_id and o.token_id = t.token_id limit 1) is null
          -- Operations never add a contract as a target.
          else true end
      order by t.name for update
    )
    delete from tallyhook.targets t using untouched u where t.name = u.name`;
}

/**
 * Deletes at most `limit` targets that the service has not shown since `before`, in two polls at
 * least, and that nothing needs: no watch, no operation that was or may be executed on a wallet or
 * is open on a token, and no record of them as existing. Returns how many.
 */
export async function deleteFinished(
  { sql }: Queryable,
  before: Instant,
  limit: number,
): Promise<number> {
  const deleted = await sql`
    with finished as (
      select t.name from tallyhook.targets t
      where t.last_result = 'absent' and t.observation_started_at < ${isoText(before)}
        and t.last_started_at > t.observation_started_at
        and not t.pending and t.lease_until is null
        and (select true from tallyhook.watches w where w.target = t.name) is null
        and (select true from tallyhook.unprocessed_observations u
          where u.target = t.name) is null
        and case t.kind
          when 'wallet' then
            (select true from tallyhook.wallets w where w.key = lower(t.addr)) is null
            and (select true from tallyhook.operations o
              where lower(o.from_addr) = lower(t.addr) and o.outcome <> 'not_executed'
              limit 1) is null
            and (select true from tallyhook.operations o
              where lower(o.to_addr) = lower(t.addr) and o.outcome <> 'not_executed'
              limit 1) is null
          when 'token' then
            (select k.presence = 'present' from tallyhook.tokens k
              where k.contract_id = t.contract_id and k.token_id = t.token_id) is not true
            and (select true from tallyhook.operations o
              where o.contract_id = t.contract_id and o.token_id = t.token_id
                and o.outcome <> 'not_executed' and o.settled_at is null
              limit 1) is null
          else false end
      order by t.observation_started_at limit ${limit} for update of t skip locked
    )
    delete from tallyhook.targets t using finished f where t.name = f.name`;
  return deleted.count;
}

/**
 * While an observation has waited so long, the reconciler is behind. Polls of steady targets would
 * only delay those for which an operation waits: with 500 wallets and a budget of 200 requests a
 * second operations settled after two minutes instead of two seconds.
 */
const BACKLOG_MS = 500;

/** Of so many steady targets due longest, the latest in proportion to its interval is next. */
const RANKED_MAX = 64;

export interface Claimed {
  targets: DueTarget[];
  /** When the next poll is due of those that are not claimed, if any. */
  nextAt: Instant | null;
  /** Whether an operation is open, whose targets may have to be made due. */
  hasOpen: boolean;
  /** False while the service is down: nothing was claimed. */
  mayPoll: boolean;
}

/**
 * Claims due targets: pending ones, earliest first, before steady ones, or the reverse; no steady
 * ones while the reconciler is behind, and none while the service is down or before a deadline of
 * it, which another daemon may have received. A claimed target whose poll is never recorded is due
 * again after its lease.
 */
export async function claimDue(
  db: Queryable,
  now: Instant,
  limit: number,
  options: { leaseMs: number; steadyFirst: boolean },
): Promise<Claimed> {
  const { sql } = db;
  const at = isoText(now);
  const behind = isoText(now - BACKLOG_MS);
  const dueTargets = (pending: boolean) => sql`
    select name, ${pending !== options.steadyFirst ? 0 : 1} as place,
      extract(epoch from ${at}::timestamptz - next_poll_at)::float8 as late,
      ${
        pending
          ? sql`1`
          : sql`greatest(1, extract(epoch from
        next_poll_at - coalesce(last_started_at, added_at))::float8)`
      } as gap
    from tallyhook.targets
    where next_poll_at <= ${at} and (lease_until is null or lease_until < ${at})
      and (select may_poll from service)
      and not exists (select from tallyhook.quota where name = 'polls' and blocked_until > ${at})
      and ${
        pending
          ? sql`pending`
          : sql`not pending and not exists (select from tallyhook.unprocessed_observations
              where problem is null and process_at < ${behind})`
      }
    order by next_poll_at limit ${pending ? limit : RANKED_MAX} for update skip locked`;
  const rows = await sql<(DueTarget & Omit<Claimed, 'targets'>)[]>`
    with service as materialized (
      select coalesce((select state in ('active', 'announced') from tallyhook.service_state
        where name = 'upstream'), true) as may_poll
    ), pending as (${dueTargets(true)}), steady as (${dueTargets(false)}), picked as (
      select name from (
        select name, place, late, gap from pending
        union all select name, place, late, gap from steady) d
      order by place, late / gap desc limit ${limit}
    ), claimed as (
    update tallyhook.targets o set lease_until = ${isoText(now + options.leaseMs)},
      idle = o.kind = 'token'
        and (select true from tallyhook.watches w where w.target = o.name) is null
        and (select true from tallyhook.operations p
          where p.contract_id = o.contract_id and p.token_id = o.token_id
            and p.outcome <> 'not_executed' and p.settled_at is null
          limit 1) is null
    from picked where o.name = picked.name
    returning o.name, o.kind, o.addr, o.contract_id, o.token_id, o.failures, o.pending, o.changes,
      o.changes_over_s as seconds, o.last_started_at,
      case when not o.idle then 'steady'
        when (select true from tallyhook.operations p
          where p.contract_id = o.contract_id and p.token_id = o.token_id
            and p.outcome <> 'not_executed'
          limit 1) then 'seldom'
        else 'never' end as schedule
    )
    select s.may_poll, ${hasOpen(sql)} as has_open,
      (select min(greatest(next_poll_at, lease_until)) from (
        select name, next_poll_at, lease_until from tallyhook.targets
        order by next_poll_at limit ${LEASES_MAX + limit}) x
        where x.name not in (select name from picked)) as next_at, c.*
    from service s left join claimed c on true`;
  const { nextAt, hasOpen: isOpen, mayPoll } = must(rows[0], 'state of the service');
  return { targets: rows.filter(({ name }) => name !== null), nextAt, hasOpen: isOpen, mayPoll };
}

/** A target is due that no daemon polls. */
export function hasDueTarget(sql: Sql, now: Instant) {
  return sql`exists (select next_poll_at from tallyhook.targets
    where next_poll_at <= ${isoText(now)}
      and (lease_until is null or lease_until < ${isoText(now)})
    order by next_poll_at limit 1)`;
}

/** The next poll of a token that only the list of its contract shows. */
export const NEVER = Date.UTC(9999, 0, 1);

/** Leases that daemons may hold at once, for `nextDue`. */
const LEASES_MAX = 64;

/** When the next target that no daemon has claimed is due, if any. */
export async function nextDue(db: Queryable): Promise<Instant | null> {
  const rows = await db.sql<{ next: Instant | null }[]>`
    select min(greatest(next_poll_at, lease_until)) as next from (
      select next_poll_at, lease_until from tallyhook.targets
      order by next_poll_at limit ${LEASES_MAX}) x`;
  return rows[0]?.next ?? null;
}

/**
 * Makes targets pending and their next polls due not later than these instants, by name. A poll
 * that is being recorded locks its target and then its unprocessed observation: do not call this in
 * a transaction that has locked such a row.
 */
export async function expedite(db: Queryable, due: ReadonlyMap<string, Instant>): Promise<void> {
  if (due.size === 0) return;
  const rows = [...due].map(([name, at]) => ({ name, at: isoText(at) }));
  await db.sql`
    with due as (
      select t.name, x.at from tallyhook.targets t
      join jsonb_to_recordset(${asJson(rows)}::jsonb) as x(name text, at timestamptz)
        on t.name = x.name
      where t.next_poll_at > x.at or not t.pending
      order by t.name for update of t
    )
    update tallyhook.targets t set next_poll_at = least(t.next_poll_at, d.at), pending = true
    from due d where t.name = d.name`;
}

/** The last records of those targets that have one. */
export async function listLastRecords(
  db: Queryable,
  names: readonly string[],
): Promise<{ name: string; lastStartedAt: Instant | null; lastRecord: Json }[]> {
  return db.sql<{ name: string; lastStartedAt: Instant | null; lastRecord: Json }[]>`
    select name, last_started_at, last_record from tallyhook.targets
    where name = any(${names as string[]}::text[]) and last_record is not null`;
}

interface LateTargets {
  targets: number;
  /** When the target polled longest ago was polled; null if none was. */
  oldestPollAt: Instant | null;
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
interface ObserverBacklog {
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
