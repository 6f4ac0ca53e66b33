/** SQL of the observer: the due list and looks. */
import { asJson, type Queryable, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';

/** One object of the due list, as far as a look needs it. */
export interface DueTarget {
  name: string;
  kind: 'wallet' | 'token' | 'contract' | 'scan';
  addr: string | null;
  contractId: bigint | null;
  tokenId: bigint | null;
  failures: number;
}

/**
 * Puts the wallets and tokens of open operations under observation, and brings forward those whose
 * last look started before the operation's newest news. Found by state, not by a cursor.
 * @param since only operations with news from then on; undefined for all, so that nothing is missed
 */
export async function scheduleOpen(
  db: Queryable,
  now: Instant,
  since: Instant | undefined,
): Promise<void> {
  const { sql } = db;
  const recent =
    since === undefined
      ? sql``
      : sql`and coalesce(answered_at, sent_at, recorded_at) >= ${isoText(since)}`;
  await sql`
    with open as materialized (
      select kind, from_addr, to_addr, contract_id, token_id,
        coalesce(answered_at, sent_at, recorded_at) as news
      from tallyhook.operations
      where settled_at is null
        and state in ('recorded', 'sending', 'queued', 'accepted', 'unknown', 'executed') ${recent}
    ), named as (
      select 'wallet:' || lower(a.addr) as name, 'wallet' as kind, a.addr, null::numeric as
        contract_id, null::numeric as token_id, o.news
      from open o cross join lateral (values (o.from_addr), (o.to_addr)) as a(addr)
      where length(a.addr) = 42 and o.kind in ('give', 'receive_from', 'transfer')
      union all
      select 'token:' || contract_id || ':' || token_id, 'token', null, contract_id, token_id, news
      from open
      where contract_id is not null and token_id is not null
        and kind in ('mint', 'mint_sequential', 'burn', 'set_extra_data', 'transfer_from')
    ), latest as (
      select distinct on (name) name, kind, addr, contract_id, token_id, news from named
      order by name, news desc
    )
    insert into tallyhook.targets as x
      (name, kind, addr, contract_id, token_id, weight, next_poll_at, pending, added_at)
    select l.name, l.kind, l.addr, l.contract_id, l.token_id, 1, ${isoText(now)}, true,
      ${isoText(now)}
    from latest l left join tallyhook.targets o on o.name = l.name
    where o.name is null or (o.lease_until is null and o.failures = 0
      and (o.next_poll_at > ${isoText(now)} or not o.pending)
      and (o.last_started_at is null or o.last_started_at <= l.news))
    order by l.name
    on conflict (name) do update set pending = true,
      next_poll_at = least(x.next_poll_at, excluded.next_poll_at)`;
}

/** Adds objects; the first spelling and an earlier due time stand. */
export async function addObjects(
  db: Queryable,
  targets: readonly Pick<DueTarget, 'name' | 'kind' | 'addr' | 'contractId' | 'tokenId'>[],
  now: Instant,
): Promise<void> {
  await db.sql`
    insert into tallyhook.targets (name, kind, addr, contract_id, token_id, weight, next_poll_at,
      added_at)
    select name, kind, addr, "contractId", "tokenId", 1, ${isoText(now)}, ${isoText(now)}
    from jsonb_to_recordset(${asJson(targets)}::jsonb)
      as x(name text, kind text, addr text, "contractId" numeric, "tokenId" numeric)
    on conflict (name) do nothing`;
}

/**
 * Claims what is due, earliest first: what somebody waits for, or the steady ones, and then the
 * others. A claim that is never settled falls due again after its lease.
 */
export async function claimDue(
  db: Queryable,
  now: Instant,
  limit: number,
  given: { leaseMs: number; steadyFirst: boolean },
): Promise<DueTarget[]> {
  const { sql } = db;
  const at = isoText(now);
  const due = (pending: boolean) => sql`
    select name, ${pending !== given.steadyFirst ? 0 : 1} as place, next_poll_at
    from tallyhook.targets
    where next_poll_at <= ${at} and ${pending ? sql`pending` : sql`not pending`}
      and kind in ('wallet', 'token', 'scan') and (lease_until is null or lease_until < ${at})
    order by next_poll_at limit ${limit} for update skip locked`;
  return sql<DueTarget[]>`
    with awaited as (${due(true)}), steady as (${due(false)}), picked as (
      select name from (
        select name, place, next_poll_at from awaited
        union all select name, place, next_poll_at from steady) d
      order by place, next_poll_at limit ${limit}
    )
    update tallyhook.targets o set lease_until = ${isoText(now + given.leaseMs)}
    from picked where o.name = picked.name
    returning o.name, o.kind, o.addr, o.contract_id, o.token_id, o.failures`;
}

/** When the next object falls due, if any. */
export async function nextDue(db: Queryable): Promise<Instant | null> {
  const rows = await db.sql<{ next: Instant | null }[]>`
    select min(next_poll_at) as next from tallyhook.targets
    where kind in ('wallet', 'token', 'scan')`;
  return rows[0]?.next ?? null;
}

/** How many objects are looked at steadily. */
export async function countObjects(db: Queryable): Promise<number> {
  const rows = await db.sql<{ count: number }[]>`
    select count(*)::int as count from tallyhook.targets where kind in ('wallet', 'token')`;
  return rows[0]?.count ?? 0;
}

/** One finished look. */
export interface ObservationRow {
  id: string;
  target: string;
  kind: string;
  startedAt: Instant;
  endedAt: Instant;
  result: 'seen' | 'absent' | 'inconclusive';
  cause: string | null;
  record: Json;
}

/**
 * Records a look and sets when the next is due. An older look never replaces a newer one as what
 * was last seen: the start of the request decides.
 */
export async function recordObservation(
  tx: Tx,
  observation: ObservationRow,
  nextPollAt: Instant,
): Promise<void> {
  await tx.sql`
    insert into tallyhook.observations (id, target, kind, started_at, ended_at, result, cause, record)
    values (${observation.id}, ${observation.target}, ${observation.kind}, ${isoText(observation.startedAt)},
      ${isoText(observation.endedAt)},
      ${observation.result}, ${observation.cause}, ${asJson(observation.record)}::jsonb)`;
  const conclusive = observation.result !== 'inconclusive';
  await tx.sql`
    update tallyhook.targets set
      lease_until = null,
      next_poll_at = ${isoText(nextPollAt)},
      pending = pending and ${!conclusive},
      failures = case when ${conclusive} then 0 else failures + 1 end,
      last_seen = case when ${conclusive} and (last_started_at is null or last_started_at <
        ${isoText(observation.startedAt)})
        then ${asJson(observation.record)}::jsonb else last_seen end,
      last_started_at = case when ${conclusive}
        then greatest(last_started_at, ${isoText(observation.startedAt)}) else last_started_at end
    where name = ${observation.target}`;
}

/** Brings the next look at an object forward; never puts it off. */
export async function expedite(db: Queryable, name: string, at: Instant): Promise<void> {
  await db.sql`
    update tallyhook.targets set next_poll_at = least(next_poll_at, ${isoText(at)}), pending = true
    where name = ${name}`;
}

/** What was last seen of these objects. */
export async function lastSeen(
  db: Queryable,
  names: readonly string[],
): Promise<{ name: string; lastStartedAt: Instant | null; lastSeen: Json }[]> {
  return db.sql<{ name: string; lastStartedAt: Instant | null; lastSeen: Json }[]>`
    select name, last_started_at, last_seen from tallyhook.targets
    where name = any(${names as string[]}::text[]) and last_seen is not null`;
}

/** Whether an object is on the due list. */
export async function isObserved(db: Queryable, name: string): Promise<boolean> {
  const rows = await db.sql`select 1 as one from tallyhook.targets where name = ${name}`;
  return rows.length > 0;
}

/** A look that waits for judgement. */
export interface StoredObservation {
  id: string;
  target: string;
  kind: 'wallet' | 'token' | 'scan';
  startedAt: Instant;
  endedAt: Instant;
  result: 'seen' | 'absent' | 'inconclusive';
  cause: string | null;
  record: Json;
}

/** Looks that nobody judged yet, in the order in which they started. */
export async function listUnprocessed(db: Queryable, limit: number): Promise<StoredObservation[]> {
  return db.sql<StoredObservation[]>`
    select id, target, kind, started_at, ended_at, result, cause, record from tallyhook.observations
    where processed_at is null order by started_at, id limit ${limit}`;
}

/** Marks a look as judged; false when somebody else was quicker. */
export async function markProcessed(
  tx: Tx,
  observation: Pick<StoredObservation, 'id' | 'startedAt'>,
  now: Instant,
): Promise<boolean> {
  const rows = await tx.sql`
    update tallyhook.observations set processed_at = ${isoText(now)}
    where started_at = ${isoText(observation.startedAt)} and id = ${observation.id} and processed_at is null
    returning 1 as one`;
  return rows.length === 1;
}

/** The newest looks at one object, newest first. */
export async function listObservations(
  db: Queryable,
  target: string,
  limit: number,
): Promise<StoredObservation[]> {
  return db.sql<StoredObservation[]>`
    select id, target, kind, started_at, ended_at, result, cause, record from tallyhook.observations
    where target = ${target} order by started_at desc limit ${limit}`;
}
