/**
 * The service's own paths, recorded. An app changes its base URL and its token and gets the
 * service's own answers, byte for byte; writes are recorded on the way (write.ts), reads are passed
 * through and serve as looks. It works on Node's request and response, because a web framework
 * would normalise paths and merge headers.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isAway, toDatabaseError } from '../db/sqlstate.ts';
import { type Clock, monotonicMs } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Metrics } from '../kernel/metrics.ts';
import { type Caller, insistOnScope, isSecret, type Keys } from '../keys/keys.ts';
import type { ForwardRequest, TrafficClass, Upstream } from '../upstream/upstream.ts';
import { type Answer, passedOn, problemAnswer, throttled, unauthorizedAnswer } from './answers.ts';
import { type Description, describe, type Request } from './describe.ts';
import { headerOf, readBody, targetOf, writeAnswer } from './incoming.ts';
import { type IncomingWrite, runWrite, type WriteParts } from './write.ts';

export type { WriteDescription, WriteParts } from './write.ts';

export interface Gateway {
  /** Answers one request under /v1/. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Refuses new writes and resolves when those under way are answered. */
  drain(): Promise<void>;
}

export interface GatewayParts extends WriteParts {
  keys: Keys;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  /** Called with what an app read, since it is a look that cost nothing. */
  observed: (seen: ObservedRead) => void;
  bodyBytesMax: number;
  readTimeoutMs: number;
  /** Requests under way at most; more are answered 429. */
  concurrencyMax: number;
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

/** The gateway of one daemon. */
export function makeGateway(parts: GatewayParts): Gateway {
  const underWay = new Set<Promise<unknown>>();
  let draining = false;
  return {
    async handle(request, response) {
      const started = monotonicMs();
      const refusal = draining
        ? new Failure('shutting_down')
        : underWay.size >= parts.concurrencyMax
          ? new Failure('too_many_requests')
          : undefined;
      const work = answer(parts, request, refusal);
      underWay.add(work);
      try {
        const { kind, ...given } = await work;
        writeAnswer(request, response, given);
        parts.metrics.gatewaySeconds.observe({ kind }, (monotonicMs() - started) / 1000);
      } finally {
        underWay.delete(work);
      }
    },
    async drain() {
      draining = true;
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}

/** Every refusal ends here as an answer; whatever is not ours is logged and says nothing. */
async function answer(
  parts: GatewayParts,
  incoming: IncomingMessage,
  refusal: Failure | undefined,
): Promise<Answer & { kind: string }> {
  try {
    if (refusal) throw refusal;
    const { path, query } = targetOf(incoming.url ?? '');
    const body = await readBody(incoming, parts.bodyBytesMax);
    const method = incoming.method ?? 'GET';
    const contentType = headerOf(incoming, 'content-type');
    const request = { method, path, contentType, body };
    const description = describe(request);
    const kind = description.what === 'write' ? description.kind : description.what;
    return { ...(await route(parts, incoming, { request, query, description })), kind };
  } catch (raw) {
    const known = toDatabaseError(raw);
    const error = isAway(known) ? new Failure('database_unavailable') : known;
    if (!(error instanceof Failure)) parts.log.error({ err: error }, 'gateway call failed');
    return { ...problemAnswer(error), kind: 'refused' };
  }
}

/** Sends a request the way of its kind: private, read or write. */
async function route(
  parts: GatewayParts,
  incoming: IncomingMessage,
  given: { request: Request; query: string; description: Description },
): Promise<Answer> {
  const { request, query, description } = given;
  const authorization = headerOf(incoming, 'authorization');
  const headers = forwardedHeaders(incoming);
  const { host } = description;
  if (description.what === 'private') {
    // A key of ours is nobody else's business, even where no key is needed.
    const own = isSecret(bearerOf(authorization) ?? '') ? undefined : authorization;
    const asCame = own === undefined ? ('none' as const) : { own };
    return passRead(parts, { request, query, host, headers, authorization: asCame });
  }
  const identity = await identify(parts.keys, incoming, authorization);
  if (!identity) return unauthorizedAnswer(request.path);
  insistOnScope(identity.caller, 'gateway');
  if (description.what === 'read') {
    const { ownToken } = identity;
    const token = ownToken === undefined ? ({ managed: true } as const) : { own: ownToken };
    return passRead(parts, { request, query, host, headers, authorization: token });
  }
  const write: IncomingWrite = {
    ...given,
    ...identity,
    description,
    headers,
    idempotencyKey: idempotencyKeyOf(incoming),
    reference: boundedHeader(incoming, 'tallyhook-reference'),
  };
  refuseWhileBlocked(parts, 'app-write');
  return runWrite(parts, write);
}

/** The caller by its key, and its own token when it sent one beside the key. */
async function identify(
  keys: Keys,
  incoming: IncomingMessage,
  authorization: string | undefined,
): Promise<{ caller: Caller; ownToken: string | undefined } | undefined> {
  const bearer = bearerOf(authorization);
  if (bearer && isSecret(bearer)) {
    const caller = await keys.authenticate(bearer);
    return caller && { caller, ownToken: undefined };
  }
  const key = headerOf(incoming, 'tallyhook-key');
  const caller = key ? await keys.authenticate(key) : undefined;
  return caller && { caller, ownToken: authorization };
}

function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer\s+(\S+)$/i.exec(authorization ?? '')?.[1];
}

/** The service asked this class of traffic to wait: we answer for it, and send nothing. */
function refuseWhileBlocked({ upstream, clock }: GatewayParts, cls: TrafficClass): void {
  const until = upstream.blockedUntil(cls);
  const now = clock.now();
  if (until !== undefined && until > now) throw throttled(until, now);
}

interface PassedRead {
  request: Request;
  query: string;
  host: 'base' | 'auth' | 'tx';
  headers: [string, string][];
  authorization: ForwardRequest['authorization'];
}

/** Forwards what changes no token: reads, and the authorization host whatever its method. */
async function passRead(parts: GatewayParts, read: PassedRead): Promise<Answer> {
  const { request, query, host } = read;
  if (host !== 'auth') refuseWhileBlocked(parts, 'app-read');
  const forwarded = await parts.upstream.forward({
    method: request.method,
    path: `${request.path}${query}`,
    host,
    headers: read.headers,
    body: request.body,
    authorization: read.authorization,
    family: 'read',
    deadlineAt: parts.clock.now() + parts.readTimeoutMs,
  });
  const { answer, outcome, startedAt, endedAt } = forwarded;
  if (answer?.complete) {
    const { status, body } = answer;
    if (host !== 'auth')
      parts.observed({ path: request.path, query, status, body, startedAt, endedAt });
    return passedOn(answer);
  }
  if (outcome.class === 'unavailable') throw throttled(outcome.retryAt, endedAt);
  const cause = 'cause' in outcome ? outcome.cause : undefined;
  throw new Failure(
    outcome.class === 'not_sent' ? 'upstream_not_reached' : 'upstream_unreadable',
    cause,
  );
}

/**
 * What of the caller's headers goes up: those that say how to read the body and what is wanted
 * back.
 */
function forwardedHeaders(incoming: IncomingMessage): [string, string][] {
  const names = ['content-type', 'accept', 'accept-language', 'user-agent', 'cookie'];
  return names.flatMap((name) => {
    const value = headerOf(incoming, name);
    return value === undefined ? [] : [[name, value] as [string, string]];
  });
}

const HEADER_TEXT_MAX = 255;

function idempotencyKeyOf(incoming: IncomingMessage): string | undefined {
  const written = boundedHeader(incoming, 'idempotency-key');
  // The draft writes a quoted string (structured field); clients send it bare as well: both are one
  // key.
  const key = written?.replace(/^"(.*)"$/, '$1');
  if (key === '') throw new Failure('invalid_request', 'idempotency-key must not be empty');
  return key;
}

function boundedHeader(incoming: IncomingMessage, name: string): string | undefined {
  const value = headerOf(incoming, name);
  if (value === undefined) return undefined;
  if (value.length === 0 || value.length > HEADER_TEXT_MAX || !/^[\x20-\x7e]+$/.test(value)) {
    throw new Failure(
      'invalid_request',
      `${name} must be 1 to ${HEADER_TEXT_MAX} printable characters`,
    );
  }
  return value;
}
