/**
 * Whether the pages of a list make one complete sweep. Pure. A list has no order that we know and
 * may change while it is read: a sweep counts only when the total stood still, every page was as
 * long as it had to be, and no token came twice in a row of pages. Every other sweep goes the list
 * backwards, because a row that moves between two pages is missed in one direction only.
 */
import type { Instant } from '../../kernel/clock.ts';
import { type Json, sameJsonText } from '../../kernel/json.ts';
import type { TokenPage, TokenRecord } from '../../upstream/upstream.ts';

/** A lost mint whose number we do not know, as far as a sweep looks for it. */
export interface PostingRequest {
  id: string;
  tokenUri: string | null;
  metaData: string | null;
}

/** Where a sweep stands between two pages; kept as JSON. */
export interface ScanProgress {
  /** When the first request started, and when the newest answer ended. */
  startedAt: Instant;
  endedAt: Instant;
  /** The page to ask for next; `down` when the pages are read from the last to the first. */
  page: number;
  down: boolean;
  /** What the first page said of the list; null before it. */
  list: { total: string; perPage: number; lastPage: number } | null;
  /** The numbers on the page before. */
  edge: string[];
  /** The operations that it looks for, and the rows that may be theirs. */
  wanted: string[];
  tokens: Json[];
  /** True when more rows matched than are kept: then it proves nothing. */
  truncated: boolean;
  /** How often it had to begin again. */
  repeats: number;
}

/** Rows that are kept of one sweep at most. */
const TOKENS_MAX = 200;
/** After that many beginnings a sweep gives up, and is due again later. */
export const REPEATS_MAX = 5;
/** A sweep that stood still for longer begins again. */
const STANDSTILL_MS = 600_000;

/** @param lastPage of the sweep before, when this one shall go backwards */
export function beginScan(
  wanted: readonly PostingRequest[],
  at: Instant,
  repeats: number,
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
    wanted: wanted.map(({ id }) => id),
    tokens: [],
    truncated: false,
    repeats,
  };
}

/** True when what was read so far is too old to be joined with what would be read now. */
export function isStale({ endedAt }: ScanProgress, now: Instant): boolean {
  return now - endedAt > STANDSTILL_MS;
}

export type ScanStep =
  | { step: 'next'; progress: ScanProgress }
  | { step: 'complete'; progress: ScanProgress }
  /** The list moved; `lastPage` is what it has now. */
  | { step: 'moved'; lastPage: number };

/** The tokens of a page that may be the result of a wanted mint. */
export function matching(page: TokenPage, wanted: readonly PostingRequest[]): TokenRecord[] {
  return page.tokens.filter((token) => wanted.some((mint) => mayBe(token, mint)));
}

/**
 * Takes one page that answers what the progress asks for.
 * @param kept the tokens of the page that are kept
 */
export function afterPage(
  progress: ScanProgress,
  page: TokenPage,
  observation: { startedAt: Instant; endedAt: Instant },
  kept: readonly TokenRecord[],
): ScanStep {
  const { total, perPage, lastPage } = page;
  const list = progress.list ?? { total: total.toString(), perPage, lastPage };
  const numbers = page.tokens.map(({ tokenId }) => tokenId.toString());
  const stood =
    list.total === total.toString() && list.perPage === perPage && list.lastPage === lastPage;
  const fresh = new Set([...progress.edge, ...numbers]).size;
  const whole = fresh === progress.edge.length + numbers.length;
  const right = page.page === progress.page && numbers.length === rowsOf(list, progress.page);
  // Backwards it has to begin at what is the last page now.
  const begun = progress.list !== null || !progress.down || progress.page === lastPage;
  if (!stood || !whole || !right || !begun) return { step: 'moved', lastPage };
  const tokens = [...progress.tokens, ...kept.map((token) => ({ ...token }))];
  const next: ScanProgress = {
    ...progress,
    startedAt: progress.list === null ? observation.startedAt : progress.startedAt,
    endedAt: observation.endedAt,
    page: progress.page + (progress.down ? -1 : 1),
    list,
    edge: numbers,
    tokens: tokens.slice(0, TOKENS_MAX),
    truncated: progress.truncated || tokens.length > TOKENS_MAX,
  };
  const ended = progress.down ? next.page < 1 : next.page > lastPage;
  return { step: ended ? 'complete' : 'next', progress: next };
}

/** How many rows that page must have. */
function rowsOf(list: { total: string; perPage: number; lastPage: number }, page: number): number {
  const before = (page - 1) * list.perPage;
  return Math.max(0, Math.min(list.perPage, Number(list.total) - before));
}

/** True when what cannot change of a token is what the mint asked for. */
function mayBe(token: TokenRecord, { tokenUri, metaData }: PostingRequest): boolean {
  return token.uri === (tokenUri ?? '') && sameJsonText(token.metaData, metaData);
}
