/**
 * What changes no token: reads, and the authorization host whatever its method. Its answers go
 * through unchanged, the large ones piece by piece; none is recorded, and those of the
 * authorization host are not even looked at.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { ForwardRequest, Head, Sink, Upstream } from '../upstream/upstream.ts';
import { writeHead } from './http.ts';
import { type Answer, passedOn, throttled } from './replies.ts';
import type { Request } from './routes.ts';

export interface ReadDeps {
  upstream: Upstream;
  clock: Clock;
  /** Called with what an app read, since it is a look that cost nothing. */
  observed: (seen: ObservedRead) => void;
  readTimeoutMs: number;
}

/** A read of an app that the service answered. */
export interface ObservedRead {
  path: string;
  query: string;
  status: number;
  body: Uint8Array;
  startedAt: number;
  endedAt: number;
}

export interface PassedRead {
  request: Request;
  query: string;
  host: 'base' | 'auth' | 'tx';
  headers: [string, string][];
  authorization: ForwardRequest['authorization'];
}

/** Forwards it. Answers undefined when the answer went to the caller already, as a stream. */
export async function passRead(
  parts: ReadDeps,
  read: PassedRead,
  response: ServerResponse,
): Promise<Answer | undefined> {
  const { request, query, host } = read;
  if (host !== 'auth') refuseWhileBlocked(parts);
  const forwarded = await parts.upstream.forward({
    method: request.method,
    path: `${request.path}${query}`,
    host,
    headers: read.headers,
    body: request.body,
    authorization: read.authorization,
    family: 'read',
    deadlineAt: parts.clock.now() + parts.readTimeoutMs,
    overflow: (head, begun, stop) => streamTo(response, head, begun, stop),
  });
  const { answer, outcome, startedAt, endedAt, streamed } = forwarded;
  if (streamed) return undefined;
  if (answer?.complete) {
    const { status, body } = answer;
    if (host !== 'auth')
      parts.observed({ path: request.path, query, status, body, startedAt, endedAt });
    return passedOn(answer, request.method === 'HEAD' ? lengthIn(answer) : []);
  }
  if (outcome.class === 'unavailable') throw throttled(outcome.retryAt, endedAt);
  const cause = 'cause' in outcome ? outcome.cause : undefined;
  throw new Failure(
    outcome.class === 'not_sent' ? 'upstream_not_reached' : 'upstream_unreadable',
    cause,
  );
}

/** The service asked reads of apps to wait: we answer for it, and send nothing. */
function refuseWhileBlocked({ upstream, clock }: ReadDeps): void {
  const until = upstream.blockedUntil('app-read');
  if (until !== undefined) throw throttled(until, clock.now());
}

/** Begins a large answer; from here on it comes as fast as the caller reads. */
function streamTo(response: ServerResponse, head: Head, begun: Uint8Array, stop: () => void): Sink {
  const { status, headers } = passedOn({ ...head, body: begun }, lengthIn(head));
  writeHead(response, { status, headers });
  response.once('close', stop);
  response.write(begun);
  return {
    write: (piece) => response.write(piece),
    drained: (go) => void response.once('drain', go),
    end: () => void response.end(),
    cut: () => void response.destroy(),
  };
}

function lengthIn({ headers }: Head): [string, string][] {
  return headers.filter(([name]) => name.toLowerCase() === 'content-length');
}
