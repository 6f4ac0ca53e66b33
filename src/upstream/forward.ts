/**
 * Forwards requests of apps unchanged: without waiting for budget, without retry, without following
 * redirects. A second send follows only a refusal of the managed token, which proves that the first
 * applied nothing.
 */
import type { Clock, Instant } from '../kernel/clock.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import { type ClientToken, sendWithManagedToken, type TokenFailure } from './client-token.ts';
import type { Answer, ExchangeResult, Overflow } from './http/exchange.ts';
import { addressOf, type Host, type Transport } from './http/transport.ts';
import {
  classifyExchange,
  type ForwardFamily,
  isUnauthorized,
  rateSignalOf,
  type WriteOutcome,
} from './parse/outcome.ts';
import type { Budget } from './rate/budget.ts';
import type { Quota } from './rate/quota.ts';

/** One request of an app, sent unchanged. */
export interface ForwardRequest {
  method: string;
  /** Raw path and query. */
  path: string;
  host: 'base' | 'auth' | 'tx';
  /** Credentials and connection headers are left out. */
  headers: readonly (readonly [string, string])[];
  body: Uint8Array;
  /** The managed client token, the caller's own `Authorization` header, or none. */
  authorization: { managed: true } | { own: string } | 'none';
  family: ForwardFamily;
  /** After it no byte leaves and no answer is awaited. */
  deadlineAt: Instant;
  /** Called immediately before the first byte of every send; false prevents the send. */
  mayStillSend?: () => boolean;
  /** Awaited before a second send; when it rejects, the first answer stands. */
  beforeResend?: (after: 'unauthorized') => Promise<void>;
  /** Receives an answer that is larger than the client buffers; used for reads only. */
  overflow?: Overflow;
}

export interface Forwarded {
  /** The last answer; absent when none was read. */
  answer?: Answer | undefined;
  outcome: WriteOutcome;
  /** Just before the first byte of the last send; when nothing left, the start of the attempt. */
  startedAt: Instant;
  endedAt: Instant;
  /** The app number of the managed token, if the service named it. */
  appNo?: bigint | undefined;
  /** True when the body was passed to `overflow`, completely or not. */
  streamed?: true | undefined;
}

interface ForwardDeps {
  transport: Transport;
  token: ClientToken;
  budget: Budget;
  quota: Quota;
  hosts: { base: Host; auth: Host; tx: Host };
  clock: Clock;
  log: Log;
  metrics: Metrics;
  readTimeoutMs: number;
  writeTimeoutMs: number;
}

/** Headers that we set, or that belong to one connection only. */
const NOT_FORWARDED = new Set([
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Never rejects. */
export async function forward(deps: ForwardDeps, request: ForwardRequest): Promise<Forwarded> {
  const { clock, quota, metrics, token } = deps;
  const { authorization, family } = request;
  const cls = family === 'read' ? 'app-read' : 'app-write';
  const startedAt = clock.now();
  const unsent = (outcome: WriteOutcome, answer?: Answer): Forwarded => {
    metrics.upstreamRequests.inc({ class: cls, result: outcome.class });
    return { outcome, startedAt, endedAt: clock.now(), answer };
  };
  const retryAt = isLimited(request) ? quota.blockedUntil(cls) : undefined;
  if (retryAt !== undefined) return unsent({ class: 'unavailable', reason: 'throttled', retryAt });
  const timeoutMs = family === 'read' ? deps.readTimeoutMs : deps.writeTimeoutMs;
  const deadlineAt = Math.min(request.deadlineAt, startedAt + timeoutMs);
  const send = (credentials?: string) => sendOnce(deps, request, cls, deadlineAt, credentials);
  if (authorization === 'none') return send();
  if ('own' in authorization) return send(authorization.own);
  const managed = await sendWithManagedToken(
    token,
    { deadlineAt },
    send,
    ({ outcome }) => isUnauthorized(outcome),
    () => mayResend(deps, request),
  );
  if ('failure' in managed) return unsent(tokenOutcome(managed.failure), managed.failure.answer);
  return { ...managed.result, appNo: managed.appNo };
}

/**
 * Requests to the authorization host need no key, so anyone could provoke a 429 there, or use up
 * the budget of polls. So they are not counted, the answers to them limit no other traffic, and no
 * limit stops them. Our own token requests obey the deadlines of that host.
 */
function isLimited({ host }: ForwardRequest): boolean {
  return host !== 'auth';
}

async function sendOnce(
  { transport, budget, hosts, metrics }: ForwardDeps,
  request: ForwardRequest,
  cls: 'app-read' | 'app-write',
  deadlineAt: Instant,
  authorization: string | undefined,
): Promise<Forwarded> {
  const { method, path, host, body, mayStillSend, family, overflow } = request;
  const headers = request.headers.flatMap(([name, value]) =>
    NOT_FORWARDED.has(name.toLowerCase()) ? [] : [name, value],
  );
  headers.push('accept-encoding', 'identity');
  if (authorization !== undefined) headers.push('authorization', authorization);
  const exchanged = await transport.exchange(cls, {
    method,
    ...addressOf(hosts[host], path),
    headers,
    deadlineAt,
    body: body.length > 0 ? body : undefined,
    mayStillSend,
    overflow: family === 'read' ? overflow : undefined,
  });
  const outcome = classifyExchange(exchanged, family);
  metrics.upstreamRequests.inc({ class: cls, result: outcome.class });
  if (isLimited(request)) await budget.record(cls, rateSignalOf(exchanged));
  return forwardedOf(exchanged, outcome);
}

/** The first answer stands when the record of the second send fails. */
async function mayResend({ log }: ForwardDeps, request: ForwardRequest): Promise<boolean> {
  try {
    await request.beforeResend?.('unauthorized');
    return true;
  } catch (err) {
    log.warn({ err }, 'not sent again after a refused token');
    return false;
  }
}

function forwardedOf(exchanged: ExchangeResult, outcome: WriteOutcome): Forwarded {
  const { startedAt, endedAt } = exchanged;
  const answer = exchanged.end === 'not_sent' ? undefined : exchanged.answer;
  const streamed = exchanged.end === 'streamed' ? true : undefined;
  return { outcome, startedAt, endedAt, answer, streamed };
}

function tokenOutcome({ cause, retryAt }: TokenFailure): WriteOutcome {
  return cause === 'throttled' || cause === 'maintenance'
    ? { class: 'unavailable', reason: cause, retryAt }
    : { class: 'not_sent', cause: 'no_client_token' };
}
