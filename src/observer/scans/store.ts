/** SQL of sweeps: what they look for, where they stand, and who creates our tokens. */
import { asJson, type Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { PostingRequest, ScanProgress } from './rule.ts';

/** Lost mints that one sweep looks for at most. */
const WANTED_MAX = 500;

/** Mints of a contract whose outcome is open and whose number nobody knows, oldest first. */
export async function listPostingRequests(
  db: Queryable,
  contractId: bigint,
): Promise<PostingRequest[]> {
  return db.sql<PostingRequest[]>`
    select id, token_uri, meta_data from tallyhook.operations
    where kind = 'mint_sequential' and state in ('sending', 'unknown') and settled_at is null
      and contract_id = ${contractId.toString()}::numeric and token_id is null
    order by recorded_at limit ${WANTED_MAX}`;
}

/** Which of these tokens mints of ours made whose number is known: they are nobody's lost ones. */
export async function listMade(
  db: Queryable,
  contractId: bigint,
  tokenIds: readonly bigint[],
): Promise<Set<bigint>> {
  if (tokenIds.length === 0) return new Set();
  const rows = await db.sql<{ id: bigint }[]>`
    select token_id as id from tallyhook.operations
    where contract_id = ${contractId.toString()}::numeric
      and token_id = any(${tokenIds.map(String)}::numeric[])
      and kind in ('mint', 'mint_sequential') and outcome <> 'not_executed'`;
  return new Set(rows.map(({ id }) => id));
}

/**
 * The one creator of the tokens that our answered mints made in a contract; undefined while none is
 * known, or when there are several.
 */
export async function creatorOf(db: Queryable, contractId: bigint): Promise<string | undefined> {
  const rows = await db.sql<{ creator: string }[]>`
    select distinct creator from (
      select t.creator from tallyhook.tokens t
      join tallyhook.operations o on o.contract_id = t.contract_id and o.token_id = t.token_id
        and o.tx_hash is not null and o.kind in ('mint', 'mint_sequential')
        and o.effective_basis = 'answer' and o.outcome = 'executed'
      where t.contract_id = ${contractId.toString()}::numeric and length(t.creator) = 42
      order by t.observed_at desc limit 20) c
    limit 2`;
  return rows.length === 1 ? rows[0]?.creator : undefined;
}

/**
 * Puts a sweep on the due list, or brings it forward; never puts it off. One that failed keeps its
 * own time.
 */
export async function requestScan(
  db: Queryable,
  scan: { name: string; contractId: bigint; creator: string | undefined },
  at: Instant,
  now: Instant,
): Promise<void> {
  await db.sql`
    insert into tallyhook.targets as x (name, kind, addr, contract_id, weight, next_poll_at,
      pending, added_at)
    values (${scan.name}, 'scan', ${scan.creator ?? null},
      ${scan.contractId.toString()}::numeric, 1, ${isoText(at)}, true, ${isoText(now)})
    on conflict (name) do update set pending = true,
      next_poll_at = least(x.next_poll_at, excluded.next_poll_at)
    where x.failures = 0`;
}

/** Where the sweep stands; undefined when none is under way. */
export async function findProgress(db: Queryable, name: string): Promise<ScanProgress | undefined> {
  const rows = await db.sql<{ progress: ScanProgress | null }[]>`
    select progress from tallyhook.targets where name = ${name}`;
  return rows[0]?.progress ?? undefined;
}

/** Keeps where the sweep stands, and when it goes on; null when it ended. */
export async function saveProgress(
  db: Queryable,
  name: string,
  progress: ScanProgress | null,
  nextAt: Instant | undefined,
): Promise<void> {
  await db.sql`
    update tallyhook.targets set progress = ${asJson(progress)}::jsonb,
      lease_until = case when ${nextAt === undefined} then lease_until end,
      next_poll_at = coalesce(${nextAt === undefined ? null : isoText(nextAt)}, next_poll_at)
    where name = ${name}`;
}

/** Takes a sweep off the due list that nobody waits for. */
export async function dropScan(db: Queryable, name: string): Promise<void> {
  await db.sql`delete from tallyhook.targets where name = ${name} and kind = 'scan'`;
}
