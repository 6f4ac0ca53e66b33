/**
 * Listings: a watched contract is polled by the first page of its token list. When that shows
 * another number of tokens, or the last walk is older than the guaranteed age, every page is read.
 * Each token that is new becomes a target with an observation, so one request serves a hundred
 * tokens. A list may be stale: a known token that it shows otherwise is polled by itself, and so is
 * one that an operation or a watch asks for, or that a walk of a shorter list does not find. An
 * empty list is believed when it is read twice and no token of it is known to exist.
 */
import { asJson, type Db, type Queryable } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Json } from '../../kernel/json.ts';
import type { Observation, TokenPage, TokenRecord, Upstream } from '../../upstream/upstream.ts';
import { isListEmpty } from '../absence.ts';
import { plannedAt, recordObservation } from '../observations.ts';
import { addTargets, type DueTarget, expedite, NEVER, toTarget } from '../targets.ts';

/** A walk through the pages of a list: the page it reads next, and the total it began with. */
interface Walk {
  page: number;
  total: string;
  startedAt: Instant;
  /** The tokens read so far, when fewer are listed than known: some are gone. */
  tokenIds: string[] | null;
}

/** What is known of the list of a watched contract, stored as JSON. */
interface Listing {
  /** The walk that has begun and not ended. */
  walk: Walk | null;
  /** The total and the start of the last whole walk. */
  total: string | null;
  walkedAt: Instant | null;
  /** The end of the first whole walk. */
  listedAt: Instant | null;
}

const UNLISTED: Listing = { walk: null, total: null, walkedAt: null, listedAt: null };

interface ListingDeps {
  db: Db;
  clock: Clock;
  ids: Ids;
  upstream: Pick<Upstream, 'account' | 'token' | 'tokens' | 'syncQuota'>;
  /** For one page. */
  pollTimeoutMs: number;
  /** Between whole walks of a list with that many pages. */
  walkEveryMs: (pages: number) => number;
  /** Ends the pass after a page. */
  stop?: AbortSignal | undefined;
}

interface ListingPass {
  /** Why the last page is inconclusive. */
  cause: string | null;
  /** Observations that the reconciler has to process. */
  unprocessed: number;
  /** True when further pages are to be read soon. */
  more: boolean;
}

/** Known tokens that are polled when a list shows none. */
const PRESENT_MAX = 100;
const PAGES_PER_PASS = 8;
const PER_PAGE = 100;
/** In a longer list, tokens that are gone are not looked for. */
const COMPARED_MAX = 100_000;

/** Reads the first page of a contract's list, or the next pages of a walk. */
export async function pollListing(deps: ListingDeps, target: DueTarget): Promise<ListingPass> {
  const { db, clock } = deps;
  const contractId = target.contractId ?? 0n;
  const listing = await findListing(db, target.name);
  let { walk } = listing;
  let unprocessed = 0;
  const ended = async (change: Partial<Listing>, cause: string | null = null) => {
    await saveListing(db, target.name, { ...listing, ...change });
    return { cause, unprocessed, more: change.walk !== null && cause === null };
  };
  for (let pages = 0; pages < PAGES_PER_PASS && !deps.stop?.aborted; pages++) {
    const startedAt = clock.now();
    const seen = await readPage(deps, target, walk?.page ?? 1);
    if (seen.result !== 'seen') {
      const cause = seen.result === 'inconclusive' ? seen.cause : 'refused';
      const pass = await ended({ walk }, cause);
      // Without budget the walk goes on with the next pass.
      return cause === 'budget' ? { ...pass, cause: null, more: true } : pass;
    }
    unprocessed += await recordTokens(deps, seen);
    const { lastPage } = seen.record;
    const total = seen.record.total.toString();
    if (!walk) {
      const isOld = clock.now() >= (listing.walkedAt ?? 0) + deps.walkEveryMs(lastPage);
      if (seen.record.total === 0n) return ended(...(await whenEmpty(deps, target, listing, seen)));
      if (lastPage > 1 && listing.total === total && !isOld) return ended({ walk: null });
      const known = await countPresent(db, contractId);
      const isShorter = seen.record.total < known && known <= COMPARED_MAX;
      walk = { page: 1, total, startedAt, tokenIds: isShorter ? [] : null };
    }
    // Rows have moved between the pages: the next poll begins again.
    if (walk.total !== total) return ended({ walk: null, total: null });
    const { tokenIds } = walk;
    tokenIds?.push(...seen.record.tokens.map(({ tokenId }) => tokenId.toString()));
    if (walk.page >= lastPage) {
      if (tokenIds) await expediteUnlisted(db, contractId, tokenIds, clock.now());
      const listedAt = listing.listedAt ?? seen.endedAt;
      return ended({ walk: null, total, walkedAt: walk.startedAt, listedAt });
    }
    walk = { ...walk, page: walk.page + 1 };
  }
  return ended({ walk });
}

/** What follows from an empty list, and why it is inconclusive. */
async function whenEmpty(
  deps: ListingDeps,
  target: DueTarget,
  listing: Listing,
  { startedAt, endedAt }: Observation<TokenPage>,
): Promise<[Partial<Listing>, string | null]> {
  const { db, clock } = deps;
  const contractId = target.contractId ?? 0n;
  // These are polled, so that the list is believed once they are gone.
  const known = await listPresent(db, contractId, null);
  await expedite(db, new Map(known.map((name) => [name, clock.now()])));
  if (known.length > 0 || !(await isListEmpty(deps, contractId)))
    return [{ walk: null, total: null }, 'unconfirmed'];
  const total = '0';
  if (listing.total !== total) return [{ walk: null, total }, null];
  const listedAt = listing.listedAt ?? endedAt;
  return [{ walk: null, total, walkedAt: startedAt, listedAt }, null];
}

async function readPage(
  { upstream, pollTimeoutMs }: ListingDeps,
  { contractId, pending }: DueTarget,
  page: number,
): Promise<Observation<TokenPage>> {
  // Another daemon may have received a deadline since the claim.
  await upstream.syncQuota();
  const signal = AbortSignal.timeout(pollTimeoutMs);
  const query = { page, perPage: PER_PAGE };
  return upstream.tokens(contractId ?? 0n, query, pending ? 'pending' : 'steady', signal);
}

/**
 * Records the tokens of a page that are new, and makes a poll due of those that it shows otherwise
 * than they were last seen. Returns how many are to process.
 */
async function recordTokens(
  { db, clock, ids }: ListingDeps,
  { record: page, startedAt, endedAt }: Extract<Observation<TokenPage>, { result: 'seen' }>,
): Promise<number> {
  const tokens = new Map(page.tokens.map((token) => [nameOf(token), token]));
  const rows = [...tokens].map(([name, token]) => ({ name, record: { ...token } }));
  const changed = await listChanged(db, rows);
  if (changed.length === 0) return 0;
  return db.begin(async (tx) => {
    const [added, known] = [changed.filter(isNew), changed.filter((token) => !isNew(token))];
    const targets = added.flatMap(({ name }) => tokens.get(name) ?? []).map(targetOf);
    if (added.length > 0) await addTargets(tx, targets, clock.now());
    // What fails keeps its back-off.
    const healthy = known.filter(({ failures }) => failures === 0);
    await expedite(tx, new Map(healthy.map(({ name }) => [name, clock.now()])));
    let unprocessed = 0;
    for (const { name, nextPollAt } of added) {
      const row = {
        id: ids.next('obs'),
        target: name,
        kind: 'token',
        startedAt,
        endedAt,
        result: 'seen' as const,
        cause: null,
        record: { ...tokens.get(name) } as Json,
      };
      if (await recordObservation(tx, row, plannedAt(nextPollAt ?? NEVER))) unprocessed += 1;
    }
    return unprocessed;
  });
}

function isNew({ lastResult }: ChangedToken): boolean {
  return lastResult === null;
}

function targetOf({ contractId, tokenId }: TokenRecord) {
  return toTarget({ kind: 'token', contractId, tokenId });
}

function nameOf(token: TokenRecord): string {
  return targetOf(token).name;
}

async function findListing(db: Queryable, name: string): Promise<Listing> {
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
async function countPresent(db: Queryable, contractId: bigint): Promise<bigint> {
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
async function expediteUnlisted(
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

interface ChangedToken {
  name: string;
  /** Null if it was never polled. */
  lastResult: string | null;
  /** Null if it is no target yet. */
  nextPollAt: Instant | null;
  failures: number | null;
}

/** Those of the listed tokens whose target is new, or last showed something else. */
async function listChanged(
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
