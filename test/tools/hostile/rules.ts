/**
 * What a correct sender does, as rules on what a receiver has seen. A rule that the run was too
 * short to show, or that no event came to, is neither held nor broken.
 */
import type { Seen, SeenRequest } from './seen.ts';

export interface View {
  seen: Seen;
  /** The end of the run; times of `monotonicMs`. */
  endMs: number;
  /** When each event since the load began came first to any healthy receiver. */
  arrivals: ReadonlyMap<string, number>;
}

export interface Finding {
  what: string;
  /** Undefined when it was not shown. */
  held: boolean | undefined;
}

export type Rule = (view: View) => Finding;

/** A sender that was asking already when the answer came is not at fault. */
const UNDER_WAY_MS = 1_500;
/** An attempt sooner than this after the one before is a loop. */
const LOOP_MS = 900;

/** Nothing is asked at the target of a redirect. */
export function notFollowed(path: string): Rule {
  return ({ seen }) => ({
    what: 'followed the redirect',
    held: seen.requests.length === 0 ? undefined : seen.byId(path).size === 0,
  });
}

/** An event that failed is sent again. */
export const comesAgain: Rule = ({ seen }) => ({
  what: 'sent an event again that failed',
  held: repeated(seen).length > 0 ? true : undefined,
});

/** No event is sent again at once. */
export const keepsCalm: Rule = ({ seen }) => {
  const gaps = repeated(seen).flatMap((requests) =>
    requests.slice(1).map(({ atMs }, n) => atMs - endOf(requests[n])),
  );
  if (seen.requests.length === 0) return { what: 'asked at all', held: undefined };
  return { what: 'waited before it sent an event again', held: gaps.every((ms) => ms >= LOOP_MS) };
};

/** After the first answer nothing more comes. */
export const asksNothing: Rule = ({ seen, endMs }) => {
  const first = firstAnswered(seen.requests);
  if (first === undefined || endMs < first + 2 * UNDER_WAY_MS)
    return { what: 'stopped', held: undefined };
  const late = sentWithin(seen, Number.POSITIVE_INFINITY);
  return { what: `stopped: ${late} requests came afterwards`, held: late === 0 };
};

/** After an answer with `Retry-After` nothing comes for that time. */
export function waitsAfter(ms: number): Rule {
  return ({ seen }) => {
    const early = sentWithin(seen, ms - 10);
    const held = firstAnswered(seen.requests) === undefined ? undefined : early === 0;
    return { what: `waited: ${early} requests came too early`, held };
  };
}

/** How many requests came within that time after the first answer to the same endpoint. */
function sentWithin({ requests }: Seen, ms: number): number {
  const byEndpoint = Map.groupBy(requests, ({ path }) => path);
  return [...byEndpoint.values()].flatMap((all) => {
    const first = firstAnswered(all);
    if (first === undefined) return [];
    return all.filter(({ atMs }) => atMs > first + UNDER_WAY_MS && atMs < first + ms);
  }).length;
}

/** What came in the first part of the run, before it accepts, is accepted in the end. */
export function acceptsAfterwards(ms: number): Rule {
  return ({ seen, endMs }) => {
    const first = firstAnswered(seen.requests);
    const what = 'delivered in the end what was refused';
    const all = [...seen.byId()];
    const left = all.filter(([, requests]) => requests.at(-1)?.status !== 200).length;
    if (first === undefined || (endMs < first + ms && left > 0)) return { what, held: undefined };
    return { what: `${what}: ${left} of ${all.length} are missing`, held: left === 0 };
  };
}

/** Every request and connection ends in that time, by the sender. */
export function endsIts(deadlineMs: number): Rule {
  return ({ seen, endMs }) => {
    const all = seen.requests.length > 0 ? seen.requests : seen.connections;
    const lasting = all.map(({ atMs, endedMs = endMs }) => endedMs - atMs);
    const ended = all.filter(({ endedMs }) => endedMs !== undefined).length;
    const longest = Math.max(0, ...lasting);
    const what = `ended in time: the longest lasted ${(longest / 1000).toFixed(1)} s`;
    if (longest > deadlineMs) return { what, held: false };
    return { what, held: ended > 0 ? true : undefined };
  };
}

/** No answer is read without a bound. */
export function takesAtMost(bytes: number): Rule {
  return ({ seen }) => {
    const most = Math.max(0, ...seen.requests.map((request) => request.bytes()));
    const what = `took at most ${(most / 1024).toFixed(0)} KB`;
    return { what, held: seen.requests.length === 0 ? undefined : most <= bytes };
  };
}

/** An event whose answer was 200, however late, comes once, and the sender waits for it. */
export const deliversOnce: Rule = ({ seen }) => {
  const cut = seen.requests.filter(
    ({ answeredMs, endedMs }) => endedMs !== undefined && answeredMs === undefined,
  );
  const again = repeated(seen).length;
  const what = `accepted events came once: ${again} came again, ${cut.length} were cut off`;
  const isShown = firstAnswered(seen.requests) !== undefined || cut.length > 0;
  return { what, held: isShown ? again + cut.length === 0 : undefined };
};

/** A connection is tried, and no request comes over it. */
export const neverAsks: Rule = ({ seen }) => ({
  what: `sent nothing: ${seen.connections.length} connections, ${seen.requests.length} requests`,
  held: seen.connections.length === 0 ? undefined : seen.requests.length === 0,
});

/** What could not be delivered before comes in the end. */
export function arrivesAfterwards(ms: number): Rule {
  return ({ seen, arrivals, endMs }) => {
    const opened = seen.requests[0]?.atMs;
    const what = 'delivered in the end what came before';
    if (opened === undefined) return { what, held: undefined };
    const came = seen.byId();
    const before = [...arrivals].filter(([, atMs]) => atMs < opened);
    const missing = before.filter(([id]) => !came.has(id)).length;
    if (before.length === 0 || (missing > 0 && endMs < opened + ms))
      return { what, held: undefined };
    return { what: `${what}: ${missing} of ${before.length} are missing`, held: missing === 0 };
  };
}

function repeated(seen: Seen): SeenRequest[][] {
  return [...seen.byId().values()].filter(({ length }) => length > 1);
}

function endOf(request: SeenRequest | undefined): number {
  return request?.endedMs ?? request?.atMs ?? 0;
}

function firstAnswered(requests: readonly SeenRequest[]): number | undefined {
  return requests.find(({ answeredMs }) => answeredMs !== undefined)?.answeredMs;
}
