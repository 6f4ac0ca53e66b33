/**
 * Every request that was received, in memory, the newest ten thousand: what a caller's promises are
 * checked against. Codes and tokens do not enter it: bodies and queries of /v1/oauth are left out.
 */
import type { Instant } from '../../kernel/clock.ts';

export interface Received {
  n: number;
  at: Instant;
  method: string;
  path: string;
  query: string;
  endpoint: string;
  body: string;
  /** Whether it changed the world. */
  applied: boolean;
  /** Status of the answer, or null while there is none and when the connection was cut. */
  status: number | null;
  /** The fault it met. */
  fault: string | null;
}

export interface RequestLog {
  begin(request: Omit<Received, 'n' | 'applied' | 'status' | 'fault'>): Received;
  /** Oldest first: the newest `limit` requests, or the first `limit` after number `after`. */
  list(after: number | undefined, limit: number): Received[];
  total(): number;
  clear(): void;
}

const KEPT = 10_000;
/** Characters kept of a path, a query and a body. */
const TEXT_KEPT = 2_000;

export function makeRequestLog(): RequestLog {
  let received: Received[] = [];
  let total = 0;
  return {
    begin(request) {
      total += 1;
      const secret = request.path.startsWith('/v1/oauth');
      const entry: Received = {
        ...request,
        n: total,
        path: kept(request.path),
        query: secret ? '' : kept(request.query),
        body: secret ? '' : kept(request.body),
        applied: false,
        status: null,
        fault: null,
      };
      received.push(entry);
      if (received.length > 2 * KEPT) received = received.slice(-KEPT);
      return entry;
    },
    list(after, limit) {
      if (after === undefined) return received.slice(Math.max(0, received.length - limit));
      return received.filter((entry) => entry.n > after).slice(0, limit);
    },
    total: () => total,
    clear() {
      received = [];
      total = 0;
    },
  };
}

/** The beginning of a text, copied: a mere slice would keep all of a long body in memory. */
function kept(text: string): string {
  return text.length > TEXT_KEPT ? Buffer.from(text.slice(0, TEXT_KEPT)).toString() : text;
}
