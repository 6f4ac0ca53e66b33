/**
 * Scans: walk through the pages of a contract's token list to find the tokens of unknown sequential
 * mints. A scan is a target; each of its polls reads a few pages and stores the progress. It ends
 * as one observation with the matching tokens. If the list changes meanwhile, it restarts, a
 * bounded number of times.
 */
import type { Db, Queryable } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { Observation, TokenPage, Upstream } from '../../upstream/upstream.ts';
import { isListEmpty } from '../absence.ts';
import { listObservations, type ObservationRow } from '../observations-store.ts';
import { type DueTarget, expedite } from '../targets-store.ts';
import {
  afterPage,
  beginScan,
  isStale,
  matching,
  RESTARTS_MAX,
  type ScanProgress,
  type UnknownMint,
} from './rule.ts';
import * as store from './store.ts';

/** The record of a finished scan. */
export interface ScanRecord {
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
}

/** The result of one pass: more pages remain, or the observation. */
type ScanPass =
  | { ended: false; nextAt: Instant }
  | { ended: true; observation: Omit<ObservationRow, 'id'> }
  /** No operation needs the scan any more. */
  | { ended: true; observation: undefined };

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

function scanName(contractId: bigint, creator: string | undefined): string {
  return `scan:${contractId}:${creator === undefined ? '*' : addressKey(creator)}`;
}

/** Schedules a scan of a contract, not later than `at`, by the creator of our tokens if known. */
export async function requestScan(
  db: Queryable,
  contractId: bigint,
  at: Instant,
  now: Instant,
): Promise<void> {
  const creator = await store.findCreator(db, contractId);
  await store.upsertScan(db, { name: scanName(contractId, creator), contractId, creator }, at, now);
}

/** Reads the next pages of a scan that is due. */
export async function scanPages(deps: ScanDeps, target: DueTarget): Promise<ScanPass> {
  const { db, clock } = deps;
  const contractId = target.contractId ?? 0n;
  const mints = await store.listUnknownMints(db, contractId);
  if (mints.length === 0) {
    await store.dropScan(db, target.name);
    return { ended: true, observation: undefined };
  }
  const stored = await store.findProgress(db, target.name);
  let progress =
    stored && !isStale(stored, clock.now()) ? stored : await begin(deps, target, mints);
  for (let pages = 0; pages < PAGES_PER_PASS && !deps.stop?.aborted; pages++) {
    const page = await readPage(deps, target, progress.page);
    if (page.result !== 'seen') return interrupted(deps, target, progress, page);
    const matches = matching(page.record, mints);
    const known = await store.listKnownTokens(
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
  const nextAt = clock.now();
  await store.saveProgress(db, target.name, progress, nextAt);
  return { ended: false, nextAt };
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
  const record = before?.record as { lastPage?: number; down?: boolean } | null | undefined;
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
): Promise<ScanPass> {
  if (page.result === 'inconclusive' && page.cause === 'budget') {
    const nextAt = clock.now() + BUDGET_RETRY_MS;
    await store.saveProgress(db, target.name, progress, nextAt);
    return { ended: false, nextAt };
  }
  await store.saveProgress(db, target.name, progress, undefined);
  const cause = page.result === 'inconclusive' ? page.cause : 'refused';
  const { startedAt, endedAt } = page;
  return { ended: true, observation: { ...base(target), startedAt, endedAt, cause } };
}

async function giveUp(
  { db }: ScanDeps,
  target: DueTarget,
  { startedAt, cause }: ScanProgress & { cause: 'moving' | 'unconfirmed' },
  endedAt: Instant,
): Promise<ScanPass> {
  await store.saveProgress(db, target.name, null, undefined);
  return { ended: true, observation: { ...base(target), startedAt, endedAt, cause } };
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
  const known = await store.listPresent(db, contractId ?? 0n, addr);
  await expedite(db, new Map(known.map((name) => [name, clock.now()])));
  return known.length === 0 && isListEmpty(deps, contractId ?? 0n);
}

async function finish(
  { db }: ScanDeps,
  target: DueTarget,
  progress: ScanProgress,
): Promise<ScanPass> {
  await store.saveProgress(db, target.name, null, undefined);
  const { startedAt, endedAt, list, operationIds, tokens, truncated, down } = progress;
  const record: ScanRecord & { down: boolean } = {
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
  return {
    ended: true,
    observation: { ...base(target), ...seen, startedAt, endedAt, cause: null },
  };
}

function base(target: DueTarget) {
  return { target: target.name, kind: 'scan', result: 'inconclusive', record: null } as const;
}
