/**
 * The newest requests received, in memory. Queries and bodies of /v1/oauth are left out, because
 * they carry codes and tokens.
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
  /** Status of the response; null until there is one, and when the connection was cut. */
  status: number | null;
  /** The kind of the fault that the request met. */
  fault: string | null;
}

export type RequestLog = ReturnType<typeof makeRequestLog>;

const REQUESTS_KEPT = 10_000;
/** Characters kept of a path, a query and a body. */
const TEXT_KEPT = 2_000;

export function makeRequestLog() {
  let received: Received[] = [];
  let total = 0;
  return {
    add(request: Omit<Received, 'n' | 'applied' | 'status' | 'fault'>): Received {
      total += 1;
      const secret = request.path.startsWith('/v1/oauth');
      const entry: Received = {
        ...request,
        n: total,
        path: truncated(request.path),
        query: secret ? '' : truncated(request.query),
        body: secret ? '' : truncated(request.body),
        applied: false,
        status: null,
        fault: null,
      };
      received.push(entry);
      if (received.length > 2 * REQUESTS_KEPT) received = received.slice(-REQUESTS_KEPT);
      return entry;
    },
    /** Oldest first: the newest `limit` requests, or the first `limit` after number `after`. */
    list(after: number | undefined, limit: number): Received[] {
      if (after === undefined) return received.slice(Math.max(0, received.length - limit));
      return received.filter((entry) => entry.n > after).slice(0, limit);
    },
    total: () => total,
    clear(): void {
      received = [];
      total = 0;
    },
  };
}

/** Copies the beginning of a text; a slice would keep the whole text in memory. */
function truncated(text: string): string {
  return text.length > TEXT_KEPT ? Buffer.from(text.slice(0, TEXT_KEPT)).toString() : text;
}
