/**
 * Sweeps: all pages of a contract's token list, read for lost mints whose number nobody knows. A
 * sweep is an object of the due list like every other; it reads a few pages at a time, keeps where
 * it stands, and ends as one look that holds only the rows that may be meant. One that the list did
 * not stand still for begins again, bounded.
 */
import type { Db, Queryable } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { Look, TokenPage, Upstream } from '../../upstream/upstream.ts';
import { type DueObject, type LookRow, listLooks } from '../store.ts';
import {
  afterPage,
  beginSweep,
  isStale,
  matching,
  REPEATS_MAX,
  type SweepProgress,
  type Wanted,
} from './rule.ts';
import * as store from './store.ts';

/** What a finished sweep found. */
export interface SweepRecord {
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
export type SweepTurn =
  | { ended: false; nextAt: Instant }
  | { ended: true; look: Omit<LookRow, 'id'> }
  /** Nobody waits for it any more. */
  | { ended: true; look: undefined };

/** Pages read in one turn: then other objects that are due have theirs. */
const PAGES_PER_TURN = 8;
const PER_PAGE = 100;
/** The gap to the next turn of a sweep whose budget has run out. */
const BREATH_MS = 200;

export interface SweepParts {
  db: Db;
  clock: Clock;
  upstream: Upstream;
  /** The whole of one page's request, in milliseconds. */
  lookTimeoutMs: number;
}

/** The name of the sweep over what one creator made in a contract, or over all of it. */
export function sweepName(contractId: bigint, creator: string | undefined): string {
  return `sweep:${contractId}:${creator?.toLowerCase() ?? '*'}`;
}

/** Wants a sweep over a contract not later than `at`, by the creator of our tokens if known. */
export async function sweepSoon(
  db: Queryable,
  contractId: bigint,
  at: Instant,
  now: Instant,
): Promise<void> {
  const creator = await store.creatorOf(db, contractId);
  await store.wantSweep(db, { name: sweepName(contractId, creator), contractId, creator }, at, now);
}

/** One turn of a sweep that is due. */
export async function takeTurn(parts: SweepParts, object: DueObject): Promise<SweepTurn> {
  const { db, clock } = parts;
  const contractId = object.contract_id ?? 0n;
  const wanted = await store.listWanted(db, contractId);
  if (wanted.length === 0) {
    await store.dropSweep(db, object.name);
    return { ended: true, look: undefined };
  }
  const stood = await store.findProgress(db, object.name);
  let progress = stood && !isStale(stood, clock.now()) ? stood : await begin(parts, object, wanted);
  for (let pages = 0; pages < PAGES_PER_TURN; pages++) {
    const page = await readPage(parts, object, progress.page);
    if (page.result !== 'seen') return interrupted(parts, object, progress, page);
    const like = matching(page.record, wanted);
    const made = await store.listMade(
      db,
      contractId,
      like.map(({ tokenId }) => tokenId),
    );
    const kept = like.filter(({ tokenId }) => !made.has(tokenId));
    const step = afterPage(progress, page.record, page, kept);
    if (step.step === 'complete') return finish(parts, object, step.progress);
    if (step.step === 'next') progress = step.progress;
    else if (progress.repeats >= REPEATS_MAX) return gaveUp(parts, object, progress, page.endedAt);
    else {
      const lastPage = progress.down ? Math.max(1, step.lastPage) : undefined;
      progress = beginSweep(wanted, clock.now(), progress.repeats + 1, lastPage);
    }
  }
  const nextAt = clock.now();
  await store.saveProgress(db, object.name, progress, nextAt);
  return { ended: false, nextAt };
}

/** A sweep from its first page: backwards when the one before went forwards over many pages. */
async function begin(
  { db, clock }: SweepParts,
  object: DueObject,
  wanted: readonly Wanted[],
): Promise<SweepProgress> {
  const [before] = (await listLooks(db, object.name, 2)).filter(({ result }) => result === 'seen');
  const record = before?.record as { lastPage?: number; down?: boolean } | null | undefined;
  const back = record && !record.down && (record.lastPage ?? 1) > 1 ? record.lastPage : undefined;
  return beginSweep(wanted, clock.now(), 0, back);
}

function readPage(
  { upstream, lookTimeoutMs }: SweepParts,
  object: DueObject,
  page: number,
): Promise<Look<TokenPage>> {
  const query = { ...(object.addr ? { creatorAddr: object.addr } : {}), page, perPage: PER_PAGE };
  const signal = AbortSignal.timeout(lookTimeoutMs);
  return upstream.tokens(object.contract_id ?? 0n, query, 'unknown', signal);
}

/** A page that did not come: the sweep goes on from there, or ends when it cannot. */
async function interrupted(
  { db, clock }: SweepParts,
  object: DueObject,
  progress: SweepProgress,
  page: Exclude<Look<TokenPage>, { result: 'seen' }>,
): Promise<SweepTurn> {
  if (page.result === 'inconclusive' && page.cause === 'budget') {
    const nextAt = clock.now() + BREATH_MS;
    await store.saveProgress(db, object.name, progress, nextAt);
    return { ended: false, nextAt };
  }
  await store.saveProgress(db, object.name, progress, undefined);
  const cause = page.result === 'inconclusive' ? page.cause : 'refused';
  const { startedAt, endedAt } = page;
  return { ended: true, look: { ...base(object), startedAt, endedAt, cause } };
}

async function gaveUp(
  { db }: SweepParts,
  object: DueObject,
  { startedAt }: SweepProgress,
  endedAt: Instant,
): Promise<SweepTurn> {
  await store.saveProgress(db, object.name, null, undefined);
  return { ended: true, look: { ...base(object), startedAt, endedAt, cause: 'moving' } };
}

async function finish(
  { db }: SweepParts,
  object: DueObject,
  progress: SweepProgress,
): Promise<SweepTurn> {
  await store.saveProgress(db, object.name, null, undefined);
  const { startedAt, endedAt, list, wanted, tokens, truncated, down } = progress;
  const record: SweepRecord & { down: boolean } = {
    contractId: object.contract_id ?? 0n,
    creator: object.addr,
    total: list?.total ?? '0',
    lastPage: list?.lastPage ?? 1,
    wanted,
    tokens,
    truncated,
    down,
  };
  const seen = { result: 'seen', record: { ...record } } as const;
  return { ended: true, look: { ...base(object), ...seen, startedAt, endedAt, cause: null } };
}

function base(object: DueObject) {
  return { object: object.name, kind: 'sweep', result: 'inconclusive', record: null } as const;
}
