/**
 * Forwards reads, and every request to the authorization host. Answers are returned unchanged, and
 * large ones are streamed. Reads may serve as passive observations; requests to the authorization
 * host are neither recorded nor logged.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { faultText } from '../resources/faults.ts';
import type { ForwardRequest, Head, Sink, Upstream } from '../upstream/upstream.ts';
import { writeHead } from './http.ts';
import { forwardedResponse, type GatewayResponse, throttledFailure } from './responses.ts';
import type { Host, Request } from './routes.ts';

export interface ReadDeps {
  upstream: Upstream;
  clock: Clock;
  /** Called with every answered read, as a possible passive observation. */
  onRead: (read: AnsweredRead) => void;
  readTimeoutMs: number;
}

export interface AnsweredRead {
  path: string;
  query: string;
  status: number;
  body: Uint8Array;
  startedAt: number;
  endedAt: number;
}

export interface ForwardedRead {
  request: Request;
  host: Host;
  authorization: ForwardRequest['authorization'];
}

/** Returns undefined when the answer was streamed to the caller. */
export async function forwardRead(
  deps: ReadDeps,
  { request, host, authorization }: ForwardedRead,
  outgoing: ServerResponse,
): Promise<GatewayResponse | undefined> {
  const { method, path, query, headers, body } = request;
  if (host !== 'auth') refuseWhileBlocked(deps);
  const { answer, outcome, startedAt, endedAt, streamed } = await deps.upstream.forward({
    method,
    path: `${path}${query}`,
    host,
    headers,
    body,
    authorization,
    family: 'read',
    deadlineAt: deps.clock.now() + deps.readTimeoutMs,
    overflow: (head, begun, stop) => streamTo(outgoing, head, begun, stop),
  });
  if (streamed) return undefined;
  if (answer?.complete) {
    const { status, body: bytes } = answer;
    if (host !== 'auth') deps.onRead({ path, query, status, body: bytes, startedAt, endedAt });
    return forwardedResponse(answer, method === 'HEAD' ? contentLength(answer) : []);
  }
  if (outcome.class === 'unavailable') throw throttledFailure(outcome.retryAt, endedAt);
  const cause = 'cause' in outcome ? faultText(outcome.cause) : undefined;
  throw new Failure(
    outcome.class === 'not_sent' ? 'upstream_not_reached' : 'upstream_unreadable',
    cause,
  );
}

/** @throws Failure `upstream_throttled` while the service asks the reads of apps to wait */
function refuseWhileBlocked({ upstream, clock }: ReadDeps): void {
  const until = upstream.blockedUntil('app-read');
  if (until !== undefined) throw throttledFailure(until, clock.now());
}

/** Starts a streamed response; the service is then read as fast as the caller reads. */
function streamTo(outgoing: ServerResponse, head: Head, begun: Uint8Array, stop: () => void): Sink {
  writeHead(outgoing, forwardedResponse({ ...head, body: begun }, contentLength(head)));
  outgoing.once('close', stop);
  outgoing.write(begun);
  return {
    write: (piece) => outgoing.write(piece),
    drained: (go) => void outgoing.once('drain', go),
    end: () => void outgoing.end(),
    cut: () => void outgoing.destroy(),
  };
}

function contentLength({ headers }: Head): [string, string][] {
  return headers.filter(([name]) => name.toLowerCase() === 'content-length');
}
