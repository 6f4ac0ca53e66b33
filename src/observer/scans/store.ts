/** SQL of scans and of listings. */
import { asJson, type Queryable } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { ScanProgress, UnknownMint } from './rule.ts';

/** Unknown mints that one scan looks for. */
const UNKNOWN_MAX = 500;
/** The newest writes in a contract, among which answered mints are looked for. */
const WRITES_SEARCHED_MAX = 1_000;
/** Known tokens that are polled when a list shows none. */
const PRESENT_MAX = 100;

/** Sequential mints of a contract with an open outcome and no known token id, oldest first. */
export async function listUnknownMints(db: Queryable, contractId: bigint): Promise<UnknownMint[]> {
  return db.sql<UnknownMint[]>`
    select id, token_uri, meta_data from tallyhook.operations
    where kind = 'mint_sequential' and state in ('sending', 'unknown') and settled_at is null
      and contract_id = ${contractId.toString()}::numeric and token_id is null
    order by recorded_at limit ${UNKNOWN_MAX}`;
}

/** Those of the tokens that are known to come from other mints. */
export async function listKnownTokens(
  db: Queryable,
  contractId: bigint,
  tokenIds: readonly bigint[],
): Promise<Set<bigint>> {
  if (tokenIds.length === 0) return new Set();
  const rows = await db.sql<{ id: bigint }[]>`
    select x.id from unnest(${tokenIds.map(String)}::numeric[]) as x(id)
    where (select o.id from tallyhook.operations o
      where o.contract_id = ${contractId.toString()}::numeric and o.token_id = x.id
        and o.kind in ('mint', 'mint_sequential') and o.outcome <> 'not_executed'
      limit 1) is not null`;
  return new Set(rows.map(({ id }) => id));
}

/**
 * The creator of all tokens that the newest answered mints made in a contract; undefined unless it
 * is one.
 */
export async function findCreator(db: Queryable, contractId: bigint): Promise<string | undefined> {
  const rows = await db.sql<{ creator: string }[]>`
    select min(creator) as creator from (
      select (select t.creator from tallyhook.tokens t
        where t.contract_id = ${contractId.toString()}::numeric and t.token_id = o.token_id
          and length(t.creator) = 42) as creator
      from (
        select token_id, tx_hash, kind, effective_basis, outcome, recorded_at
        from tallyhook.operations where contract_id = ${contractId.toString()}::numeric
        order by recorded_at desc limit ${WRITES_SEARCHED_MAX}) o
      where o.tx_hash is not null and o.kind in ('mint', 'mint_sequential')
        and o.effective_basis = 'answer' and o.outcome = 'executed'
      order by o.recorded_at desc limit 20) c
    where creator is not null
    group by lower(creator) limit 2`;
  return rows.length === 1 ? rows[0]?.creator : undefined;
}

/** Schedules a scan, or makes it sooner. One that has failed keeps its back-off. */
export async function upsertScan(
  db: Queryable,
  scan: { name: string; contractId: bigint; creator: string | undefined },
  at: Instant,
  now: Instant,
): Promise<void> {
  await db.sql`
    insert into tallyhook.targets as x (name, kind, addr, contract_id, next_poll_at, pending,
      added_at)
    values (${scan.name}, 'scan', ${scan.creator ?? null},
      ${scan.contractId.toString()}::numeric, ${isoText(at)}, true, ${isoText(now)})
    on conflict (name) do update set pending = true,
      next_poll_at = least(x.next_poll_at, excluded.next_poll_at)
    where x.failures = 0`;
}

export async function findProgress(db: Queryable, name: string): Promise<ScanProgress | undefined> {
  const rows = await db.sql<{ scanProgress: ScanProgress | null }[]>`
    select scan_progress from tallyhook.targets where name = ${name}`;
  return rows[0]?.scanProgress ?? undefined;
}

/**
 * @param progress null when the scan has ended
 * @param nextAt undefined keeps schedule and lease
 */
export async function saveProgress(
  db: Queryable,
  name: string,
  progress: ScanProgress | null,
  nextAt: Instant | undefined,
): Promise<void> {
  await db.sql`
    update tallyhook.targets set scan_progress = ${asJson(progress)}::jsonb,
      lease_until = case when ${nextAt === undefined} then lease_until end,
      next_poll_at = coalesce(${nextAt === undefined ? null : isoText(nextAt)}, next_poll_at)
    where name = ${name}`;
}

export async function dropScan(db: Queryable, name: string): Promise<void> {
  await db.sql`delete from tallyhook.targets where name = ${name} and kind = 'scan'`;
}

/** A walk through the pages of a list: the page it reads next, and the total it began with. */
export interface Walk {
  page: number;
  total: string;
  startedAt: Instant;
  /** The tokens read so far, when fewer are listed than known: some are gone. */
  tokenIds: string[] | null;
}

/** What is known of the list of a watched contract, stored as JSON. */
export interface Listing {
  /** The walk that has begun and not ended. */
  walk: Walk | null;
  /** The total and the start of the last whole walk. */
  total: string | null;
  walkedAt: Instant | null;
  /** The end of the first whole walk. */
  listedAt: Instant | null;
}

const UNLISTED: Listing = { walk: null, total: null, walkedAt: null, listedAt: null };

export async function findListing(db: Queryable, name: string): Promise<Listing> {
  const rows = await db.sql<{ listing: Listing | null }[]>`
    select scan_progress as listing from tallyhook.targets where name = ${name}`;
  return rows[0]?.listing ?? UNLISTED;
}

export async function saveListing(db: Queryable, name: string, listing: Listing): Promise<void> {
  await db.sql`
    update tallyhook.targets set scan_progress = ${asJson(listing)}::jsonb where name = ${name}`;
}

/** Schedules the next poll of a list; with a failure it is later each time. */
export async function scheduleListing(
  db: Queryable,
  name: string,
  nextPollAt: Instant,
  poll: { startedAt: Instant; hasFailed: boolean },
): Promise<void> {
  const { startedAt, hasFailed } = poll;
  await db.sql`
    update tallyhook.targets set next_poll_at = ${isoText(nextPollAt)}, lease_until = null,
      pending = false, failures = case when ${hasFailed} then failures + 1 else 0 end,
      last_started_at = case when ${hasFailed} then last_started_at
        else ${isoText(startedAt)}::timestamptz end
    where name = ${name}`;
}

/** How many tokens of a contract exist, as far as known. */
export async function countPresent(db: Queryable, contractId: bigint): Promise<bigint> {
  const rows = await db.sql<{ count: bigint }[]>`
    select count(*)::bigint as count from tallyhook.tokens
    where contract_id = ${contractId.toString()}::numeric and presence = 'present'`;
  return rows[0]?.count ?? 0n;
}

/** Names of some tokens of a contract that exist, as far as known, by their creator if given. */
export async function listPresent(
  { sql }: Queryable,
  contractId: bigint,
  creator: string | null,
): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select 'token:' || contract_id || ':' || token_id as name from tallyhook.tokens
    where contract_id = ${contractId.toString()}::numeric and presence = 'present'
      and ${creator === null ? sql`true` : sql`lower(creator) = ${addressKey(creator)}`}
    limit ${PRESENT_MAX}`;
  return rows.map(({ name }) => name);
}

/** Makes a poll due of each known token of a contract that is not among these. */
export async function expediteUnlisted(
  db: Queryable,
  contractId: bigint,
  tokenIds: readonly string[],
  now: Instant,
): Promise<void> {
  await db.sql`
    update tallyhook.targets t set next_poll_at = ${isoText(now)}, pending = true
    from tallyhook.tokens k
    where k.contract_id = ${contractId.toString()}::numeric and k.presence = 'present'
      and k.token_id <> all(${tokenIds as string[]}::numeric[])
      and t.name = 'token:' || k.contract_id || ':' || k.token_id
      and t.next_poll_at > ${isoText(now)}`;
}

export interface ChangedToken {
  name: string;
  /** Null if it was never polled. */
  lastResult: string | null;
  /** Null if it is no target yet. */
  nextPollAt: Instant | null;
  failures: number | null;
}

/** Those of the listed tokens whose target is new, or last showed something else. */
export async function listChanged(
  db: Queryable,
  tokens: readonly { name: string; record: unknown }[],
): Promise<ChangedToken[]> {
  return db.sql<ChangedToken[]>`
    select x.name, t.last_result, t.next_poll_at, t.failures
    from jsonb_to_recordset(${asJson(tokens)}::jsonb) as x(name text, record jsonb)
    left join tallyhook.targets t on t.name = x.name
    where t.name is null or t.last_result is distinct from 'seen'
      or t.last_record is distinct from x.record
    order by x.name`;
}

/** When a contract had been listed as a whole for the first time; undefined if it never was. */
export async function findListedAt(
  db: Queryable,
  contractId: bigint,
): Promise<Instant | undefined> {
  const rows = await db.sql<{ listing: Listing | null }[]>`
    select scan_progress as listing from tallyhook.targets
    where name = ${`contract:${contractId}`}`;
  return rows[0]?.listing?.listedAt ?? undefined;
}
