/**
 * Decides whether the pages of a list form one complete scan. Pure. The order of the list is
 * unknown, and it may change while it is read. A scan is complete only if the total did not change,
 * every page had its full length, and adjacent pages share no token. Every other scan goes
 * backwards, because a row that moves between two pages is missed in one direction only.
 */
import type { Instant } from '../../kernel/clock.ts';
import { type Json, sameJsonText } from '../../kernel/json.ts';
import type { TokenPage, TokenRecord } from '../../upstream/upstream.ts';

/** A sequential mint with an open outcome and no known token id. */
export interface UnknownMint {
  id: string;
  tokenUri: string | null;
  metaData: string | null;
}

/** The state of a scan between two pages, stored as JSON. */
export interface ScanProgress {
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
export const RESTARTS_MAX = 5;
/** Older progress is discarded, and the scan restarts. */
const PROGRESS_TTL_MS = 600_000;

/** @param lastPage starts a backward scan at that page */
export function beginScan(
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

export function isStale({ endedAt }: ScanProgress, now: Instant): boolean {
  return now - endedAt > PROGRESS_TTL_MS;
}

type ScanStep =
  | { step: 'next'; progress: ScanProgress }
  | { step: 'complete'; progress: ScanProgress }
  /** The list changed; `lastPage` is its present last page. */
  | { step: 'moved'; lastPage: number };

/** The tokens of a page that may be the result of one of the mints. */
export function matching(page: TokenPage, mints: readonly UnknownMint[]): TokenRecord[] {
  return page.tokens.filter((token) => mints.some((mint) => couldBe(token, mint)));
}

/** @param kept the matching tokens of the page */
export function afterPage(
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

/** Compares only what can never change of a token. */
function couldBe(token: TokenRecord, { tokenUri, metaData }: UnknownMint): boolean {
  return token.uri === (tokenUri ?? '') && sameJsonText(token.metaData, metaData);
}
