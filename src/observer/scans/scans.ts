/**
 * Sweeps: all pages of a contract's token list, read for lost mints whose number nobody knows. A
 * sweep is an object of the due list like every other; it reads a few pages at a time, keeps where
 * it stands, and ends as one look that holds only the rows that may be meant. One that the list did
 * not stand still for begins again, bounded.
 */
import type { Db, Queryable } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { Observation, TokenPage, Upstream } from '../../upstream/upstream.ts';
import { type DueTarget, listObservations, type ObservationRow } from '../store.ts';
import {
  afterPage,
  beginScan,
  isStale,
  matching,
  type PostingRequest,
  REPEATS_MAX,
  type ScanProgress,
} from './rule.ts';
import * as store from './store.ts';

/** What a finished sweep found. */
export interface ScanRecord {
  contractId: bigint;
  /** Whose tokens were listed; null for everybody's. */
  creator: string | null;
  total: string;
  lastPage: number;
  /** The operations that it looked for from its first page on. */
  wanted: string[];
  /** Token records that may be theirs. */
  tokens: Json[];
  truncated: boolean;
}

/** How a turn of a sweep ended: with more pages to read, or as a look. */
export type ScanTurn =
  | { ended: false; nextAt: Instant }
  | { ended: true; observation: Omit<ObservationRow, 'id'> }
  /** Nobody waits for it any more. */
  | { ended: true; observation: undefined };

/** Pages read in one turn: then other objects that are due have theirs. */
const PAGES_PER_TURN = 8;
const PER_PAGE = 100;
/** The gap to the next turn of a sweep whose budget has run out. */
const BREATH_MS = 200;

export interface ScanDeps {
  db: Db;
  clock: Clock;
  upstream: Upstream;
  /** The whole of one page's request, in milliseconds. */
  pollTimeoutMs: number;
}

/** The name of the sweep over what one creator made in a contract, or over all of it. */
export function scanName(contractId: bigint, creator: string | undefined): string {
  return `scan:${contractId}:${creator?.toLowerCase() ?? '*'}`;
}

/** Wants a sweep over a contract not later than `at`, by the creator of our tokens if known. */
export async function scanSoon(
  db: Queryable,
  contractId: bigint,
  at: Instant,
  now: Instant,
): Promise<void> {
  const creator = await store.creatorOf(db, contractId);
  await store.requestScan(
    db,
    { name: scanName(contractId, creator), contractId, creator },
    at,
    now,
  );
}

/** One turn of a sweep that is due. */
export async function takeTurn(parts: ScanDeps, target: DueTarget): Promise<ScanTurn> {
  const { db, clock } = parts;
  const contractId = target.contractId ?? 0n;
  const wanted = await store.listPostingRequests(db, contractId);
  if (wanted.length === 0) {
    await store.dropScan(db, target.name);
    return { ended: true, observation: undefined };
  }
  const stood = await store.findProgress(db, target.name);
  let progress = stood && !isStale(stood, clock.now()) ? stood : await begin(parts, target, wanted);
  for (let pages = 0; pages < PAGES_PER_TURN; pages++) {
    const page = await readPage(parts, target, progress.page);
    if (page.result !== 'seen') return interrupted(parts, target, progress, page);
    const like = matching(page.record, wanted);
    const made = await store.listMade(
      db,
      contractId,
      like.map(({ tokenId }) => tokenId),
    );
    const kept = like.filter(({ tokenId }) => !made.has(tokenId));
    const step = afterPage(progress, page.record, page, kept);
    if (step.step === 'complete') return finish(parts, target, step.progress);
    if (step.step === 'next') progress = step.progress;
    else if (progress.repeats >= REPEATS_MAX) return gaveUp(parts, target, progress, page.endedAt);
    else {
      const lastPage = progress.down ? Math.max(1, step.lastPage) : undefined;
      progress = beginScan(wanted, clock.now(), progress.repeats + 1, lastPage);
    }
  }
  const nextAt = clock.now();
  await store.saveProgress(db, target.name, progress, nextAt);
  return { ended: false, nextAt };
}

/** A sweep from its first page: backwards when the one before went forwards over many pages. */
async function begin(
  { db, clock }: ScanDeps,
  target: DueTarget,
  wanted: readonly PostingRequest[],
): Promise<ScanProgress> {
  const [before] = (await listObservations(db, target.name, 2)).filter(
    ({ result }) => result === 'seen',
  );
  const record = before?.record as { lastPage?: number; down?: boolean } | null | undefined;
  const back = record && !record.down && (record.lastPage ?? 1) > 1 ? record.lastPage : undefined;
  return beginScan(wanted, clock.now(), 0, back);
}

function readPage(
  { upstream, pollTimeoutMs }: ScanDeps,
  target: DueTarget,
  page: number,
): Promise<Observation<TokenPage>> {
  const query = { ...(target.addr ? { creatorAddr: target.addr } : {}), page, perPage: PER_PAGE };
  const signal = AbortSignal.timeout(pollTimeoutMs);
  return upstream.tokens(target.contractId ?? 0n, query, 'unknown', signal);
}

/** A page that did not come: the sweep goes on from there, or ends when it cannot. */
async function interrupted(
  { db, clock }: ScanDeps,
  target: DueTarget,
  progress: ScanProgress,
  page: Exclude<Observation<TokenPage>, { result: 'seen' }>,
): Promise<ScanTurn> {
  if (page.result === 'inconclusive' && page.cause === 'budget') {
    const nextAt = clock.now() + BREATH_MS;
    await store.saveProgress(db, target.name, progress, nextAt);
    return { ended: false, nextAt };
  }
  await store.saveProgress(db, target.name, progress, undefined);
  const cause = page.result === 'inconclusive' ? page.cause : 'refused';
  const { startedAt, endedAt } = page;
  return { ended: true, observation: { ...base(target), startedAt, endedAt, cause } };
}

async function gaveUp(
  { db }: ScanDeps,
  target: DueTarget,
  { startedAt }: ScanProgress,
  endedAt: Instant,
): Promise<ScanTurn> {
  await store.saveProgress(db, target.name, null, undefined);
  return { ended: true, observation: { ...base(target), startedAt, endedAt, cause: 'moving' } };
}

async function finish(
  { db }: ScanDeps,
  target: DueTarget,
  progress: ScanProgress,
): Promise<ScanTurn> {
  await store.saveProgress(db, target.name, null, undefined);
  const { startedAt, endedAt, list, wanted, tokens, truncated, down } = progress;
  const record: ScanRecord & { down: boolean } = {
    contractId: target.contractId ?? 0n,
    creator: target.addr,
    total: list?.total ?? '0',
    lastPage: list?.lastPage ?? 1,
    wanted,
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
