/**
 * Scans: walk through the pages of a contract's token list to find the tokens of unknown sequential
 * mints. A scan is a target; each of its polls reads a few pages and stores the progress. It ends
 * as one observation with the matching tokens. If the list changes meanwhile, it restarts, a
 * bounded number of times.
 *
 * The order of the list is unknown, and it may change while it is read. A scan is complete only if
 * the total did not change, every page had its full length, and adjacent pages share no token.
 * Every other scan goes backwards, because a row that moves between two pages is missed in one
 * direction only.
 */
import { asJson, type Db, type Queryable } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { type Clock, type Instant, isoText, isoTextOrNull } from '../../kernel/clock.ts';
import { type Json, sameJsonText } from '../../kernel/json.ts';
import type { Observation, TokenPage, TokenRecord, Upstream } from '../../upstream/upstream.ts';
import { isListEmpty } from '../absence.ts';
import { listObservations, type ObservationRow } from '../observations.ts';
import { type DueTarget, expedite } from '../targets.ts';
import { listPresent } from './listing.ts';

/** The record of a finished scan. */
interface ScanRecord {
  contractId: bigint;
  /** Only tokens of this creator were listed; null for all. */
  creator: string | null;
  total: string;
  lastPage: number;
  /** Ids of the operations that it searched for from its first page on. */
  operationIds: string[];
  /** Token records that match these operations. */
  tokens: Json[];
  truncated: boolean;
  /** Whether its pages were read from the last to the first. */
  down: boolean;
}

type ScanObservation = Omit<ObservationRow, 'id'>;

/** Unknown mints that one scan looks for. */
const UNKNOWN_MAX = 500;
/** The newest writes in a contract, among which answered mints are looked for. */
const WRITES_SEARCHED_MAX = 1_000;
/** Then other targets that are due are polled. */
const PAGES_PER_PASS = 8;
const PER_PAGE = 100;
/** The pause of a scan that gets no budget. */
const BUDGET_RETRY_MS = 200;

interface ScanDeps {
  db: Db;
  clock: Clock;
  upstream: Upstream;
  /** For one page. */
  pollTimeoutMs: number;
  /** Ends the pass after a page. */
  stop?: AbortSignal | undefined;
}

/** Schedules a scan of a contract, not later than `at`, by the creator of our tokens if known. */
export async function requestScan(
  db: Queryable,
  contractId: bigint,
  at: Instant,
  now: Instant,
): Promise<void> {
  const creator = await findCreator(db, contractId);
  await upsertScan(db, { name: scanName(contractId, creator), contractId, creator }, at, now);
}

function scanName(contractId: bigint, creator: string | undefined): string {
  return `scan:${contractId}:${creator === undefined ? '*' : addressKey(creator)}`;
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
async function upsertScan(
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

/**
 * Reads the next pages of a scan that is due. Returns its observation; undefined while more pages
 * remain, or when no operation needs the scan any more.
 */
export async function scanPages(
  deps: ScanDeps,
  target: DueTarget,
): Promise<ScanObservation | undefined> {
  const { db, clock } = deps;
  const contractId = target.contractId ?? 0n;
  const mints = await listUnknownMints(db, contractId);
  if (mints.length === 0) {
    await dropScan(db, target.name);
    return undefined;
  }
  const stored = await findProgress(db, target.name);
  let progress =
    stored && !isStale(stored, clock.now()) ? stored : await begin(deps, target, mints);
  for (let pages = 0; pages < PAGES_PER_PASS && !deps.stop?.aborted; pages++) {
    const page = await readPage(deps, target, progress.page);
    if (page.result !== 'seen') return interrupted(deps, target, progress, page);
    const matches = matching(page.record, mints);
    const known = await listKnownTokens(
      db,
      contractId,
      matches.map(({ tokenId }) => tokenId),
    );
    const kept = matches.filter(({ tokenId }) => !known.has(tokenId));
    const step = afterPage(progress, page.record, page, kept);
    if (step.step === 'complete')
      return (await isTrue(deps, target, step.progress))
        ? finish(deps, target, step.progress)
        : giveUp(deps, target, { ...step.progress, cause: 'unconfirmed' }, page.endedAt);
    if (step.step === 'next') progress = step.progress;
    else if (progress.restarts >= RESTARTS_MAX)
      return giveUp(deps, target, { ...progress, cause: 'moving' }, page.endedAt);
    else {
      const lastPage = progress.down ? Math.max(1, step.lastPage) : undefined;
      progress = beginScan(mints, clock.now(), progress.restarts + 1, lastPage);
    }
  }
  await saveProgress(db, target.name, progress, clock.now());
  return undefined;
}

/** Starts from the first page, or from the last if the previous scan went forwards. */
async function begin(
  { db, clock }: ScanDeps,
  target: DueTarget,
  mints: readonly UnknownMint[],
): Promise<ScanProgress> {
  const [before] = (await listObservations(db, target.name, 2)).filter(
    ({ result }) => result === 'seen',
  );
  const record = before?.record as Partial<ScanRecord> | null | undefined;
  const lastPage =
    record && !record.down && (record.lastPage ?? 1) > 1 ? record.lastPage : undefined;
  return beginScan(mints, clock.now(), 0, lastPage);
}

async function readPage(
  { upstream, pollTimeoutMs }: ScanDeps,
  target: DueTarget,
  page: number,
): Promise<Observation<TokenPage>> {
  // Another daemon may have received a deadline since the claim.
  await upstream.syncQuota();
  const query = { ...(target.addr ? { creatorAddr: target.addr } : {}), page, perPage: PER_PAGE };
  const signal = AbortSignal.timeout(pollTimeoutMs);
  return upstream.tokens(target.contractId ?? 0n, query, 'unknown', signal);
}

/** Without budget the scan continues later; any other failure ends this attempt at that page. */
async function interrupted(
  { db, clock }: ScanDeps,
  target: DueTarget,
  progress: ScanProgress,
  page: Exclude<Observation<TokenPage>, { result: 'seen' }>,
): Promise<ScanObservation | undefined> {
  if (page.result === 'inconclusive' && page.cause === 'budget') {
    await saveProgress(db, target.name, progress, clock.now() + BUDGET_RETRY_MS);
    return undefined;
  }
  await saveProgress(db, target.name, progress, undefined);
  const cause = page.result === 'inconclusive' ? page.cause : 'refused';
  const { startedAt, endedAt } = page;
  return { ...base(target), startedAt, endedAt, cause };
}

async function giveUp(
  { db }: ScanDeps,
  target: DueTarget,
  { startedAt, cause }: ScanProgress & { cause: 'moving' | 'unconfirmed' },
  endedAt: Instant,
): Promise<ScanObservation> {
  await saveProgress(db, target.name, null, undefined);
  return { ...base(target), startedAt, endedAt, cause };
}

/**
 * False of an empty list while tokens are known that it should show. These are polled, so that it
 * is believed once they are gone.
 */
async function isTrue(
  deps: ScanDeps,
  { contractId, addr }: DueTarget,
  { list }: ScanProgress,
): Promise<boolean> {
  if (list?.total !== '0') return true;
  const { db, clock } = deps;
  const known = await listPresent(db, contractId ?? 0n, addr);
  await expedite(db, new Map(known.map((name) => [name, clock.now()])));
  return known.length === 0 && isListEmpty(deps, contractId ?? 0n);
}

async function finish(
  { db }: ScanDeps,
  target: DueTarget,
  progress: ScanProgress,
): Promise<ScanObservation> {
  await saveProgress(db, target.name, null, undefined);
  const { startedAt, endedAt, list, operationIds, tokens, truncated, down } = progress;
  const record: ScanRecord = {
    contractId: target.contractId ?? 0n,
    creator: target.addr,
    total: list?.total ?? '0',
    lastPage: list?.lastPage ?? 1,
    operationIds,
    tokens,
    truncated,
    down,
  };
  const seen = { result: 'seen', record: { ...record } } as const;
  return { ...base(target), ...seen, startedAt, endedAt, cause: null };
}

function base(target: DueTarget) {
  return { target: target.name, kind: 'scan', result: 'inconclusive', record: null } as const;
}

/** A sequential mint with an open outcome and no known token id. */
interface UnknownMint {
  id: string;
  tokenUri: string | null;
  metaData: string | null;
}

/** The state of a scan between two pages, stored as JSON. */
interface ScanProgress {
  /** When the first request started, and when the newest answer ended. */
  startedAt: Instant;
  endedAt: Instant;
  /** The next page; `down` when pages are read from the last to the first. */
  page: number;
  down: boolean;
  /** As of the first page read; null before it. */
  list: { total: string; perPage: number; lastPage: number } | null;
  /** Token ids of the previous page. */
  edge: string[];
  /** The operations searched for, and the tokens that match them. */
  operationIds: string[];
  tokens: Json[];
  /** True when more tokens matched than are stored; the scan is then no evidence. */
  truncated: boolean;
  restarts: number;
}

/** Matching tokens stored per scan. */
const TOKENS_MAX = 200;
/** After this many restarts a scan ends as inconclusive. */
const RESTARTS_MAX = 5;
/** Older progress is discarded, and the scan restarts. */
const PROGRESS_TTL_MS = 600_000;

/** @param lastPage starts a backward scan at that page */
function beginScan(
  mints: readonly UnknownMint[],
  at: Instant,
  restarts: number,
  lastPage: number | undefined,
): ScanProgress {
  const down = lastPage !== undefined;
  return {
    startedAt: at,
    endedAt: at,
    page: lastPage ?? 1,
    down,
    list: null,
    edge: [],
    operationIds: mints.map(({ id }) => id),
    tokens: [],
    truncated: false,
    restarts,
  };
}

function isStale({ endedAt }: ScanProgress, now: Instant): boolean {
  return now - endedAt > PROGRESS_TTL_MS;
}

/** The tokens of a page that may be the result of one of the mints. */
function matching(page: TokenPage, mints: readonly UnknownMint[]): TokenRecord[] {
  return page.tokens.filter((token) => mints.some((mint) => couldBe(token, mint)));
}

/** Compares only what can never change of a token. */
function couldBe(token: TokenRecord, { tokenUri, metaData }: UnknownMint): boolean {
  return token.uri === (tokenUri ?? '') && sameJsonText(token.metaData, metaData);
}

type ScanStep =
  | { step: 'next'; progress: ScanProgress }
  | { step: 'complete'; progress: ScanProgress }
  /** The list changed; `lastPage` is its present last page. */
  | { step: 'moved'; lastPage: number };

/** @param kept the matching tokens of the page */
function afterPage(
  progress: ScanProgress,
  page: TokenPage,
  observation: { startedAt: Instant; endedAt: Instant },
  kept: readonly TokenRecord[],
): ScanStep {
  const { total, perPage, lastPage } = page;
  const list = progress.list ?? { total: total.toString(), perPage, lastPage };
  const ids = page.tokens.map(({ tokenId }) => tokenId.toString());
  const unchanged =
    list.total === total.toString() && list.perPage === perPage && list.lastPage === lastPage;
  const distinct = new Set([...progress.edge, ...ids]).size;
  const noRepeats = distinct === progress.edge.length + ids.length;
  const fullLength = page.page === progress.page && ids.length === rowsOf(list, progress.page);
  // A backward scan must start at the present last page.
  const validStart = progress.list !== null || !progress.down || progress.page === lastPage;
  if (!unchanged || !noRepeats || !fullLength || !validStart) return { step: 'moved', lastPage };
  const tokens = [...progress.tokens, ...kept.map((token) => ({ ...token }))];
  const next: ScanProgress = {
    ...progress,
    startedAt: progress.list === null ? observation.startedAt : progress.startedAt,
    endedAt: observation.endedAt,
    page: progress.page + (progress.down ? -1 : 1),
    list,
    edge: ids,
    tokens: tokens.slice(0, TOKENS_MAX),
    truncated: progress.truncated || tokens.length > TOKENS_MAX,
  };
  const ended = progress.down ? next.page < 1 : next.page > lastPage;
  return { step: ended ? 'complete' : 'next', progress: next };
}

/** The full length of that page. */
function rowsOf(list: { total: string; perPage: number; lastPage: number }, page: number): number {
  const before = (page - 1) * list.perPage;
  return Math.max(0, Math.min(list.perPage, Number(list.total) - before));
}

/** Sequential mints of a contract with an open outcome and no known token id, oldest first. */
export async function listUnknownMints(db: Queryable, contractId: bigint): Promise<UnknownMint[]> {
  return db.sql<UnknownMint[]>`
    select o.id, o.token_uri, o.meta_data
    from tallyhook.open_operations w join tallyhook.operations o on o.id = w.id
    where w.contract_id = ${contractId.toString()}::numeric and w.state in ('sending', 'unknown')
      and o.kind = 'mint_sequential' and o.token_id is null
    order by o.recorded_at limit ${UNKNOWN_MAX}`;
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

async function findProgress(db: Queryable, name: string): Promise<ScanProgress | undefined> {
  const rows = await db.sql<{ scanProgress: ScanProgress | null }[]>`
    select scan_progress from tallyhook.targets where name = ${name}`;
  return rows[0]?.scanProgress ?? undefined;
}

/**
 * @param progress null when the scan has ended
 * @param nextAt undefined keeps schedule and lease
 */
async function saveProgress(
  db: Queryable,
  name: string,
  progress: ScanProgress | null,
  nextAt: Instant | undefined,
): Promise<void> {
  await db.sql`
    update tallyhook.targets set scan_progress = ${asJson(progress)}::jsonb,
      lease_until = case when ${nextAt === undefined} then lease_until end,
      next_poll_at = coalesce(${isoTextOrNull(nextAt)}, next_poll_at)
    where name = ${name}`;
}

async function dropScan(db: Queryable, name: string): Promise<void> {
  await db.sql`delete from tallyhook.targets where name = ${name} and kind = 'scan'`;
}
