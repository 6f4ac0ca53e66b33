/**
 * What apps ask, sent as it is. No waiting for budget, no retry, no redirect; a second send only
 * after the service refused the managed token, which proves that the first did nothing.
 */
import type { Clock, Instant } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Metrics } from '../kernel/metrics.ts';
import { sendManaged } from './auth/credentials.ts';
import type { ClientToken, TokenFailure } from './auth/token.ts';
import type { Exchanged } from './http/exchange.ts';
import { type Host, target } from './http/hosts.ts';
import type { Transport } from './http/transport.ts';
import { isUnauthorized, judge } from './parse/outcome.ts';
import type { Budget } from './rate/budget.ts';
import { learn, lessonOf } from './rate/learning.ts';
import type { Quota } from './rate/quota.ts';
import type { Answer, Forwarded, ForwardRequest, TrafficClass, WriteOutcome } from './types.ts';

export interface ForwardOptions {
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

/** Set by us, or belonging to one connection only. */
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

interface Sent {
  exchanged: Exchanged;
  outcome: WriteOutcome;
}

/** Sends one request of an app and judges what came of it. Never rejects. */
export async function forward(
  options: ForwardOptions,
  request: ForwardRequest,
): Promise<Forwarded> {
  const { clock, quota, metrics, token } = options;
  const { authorization, signal } = request;
  const cls = request.family === 'read' ? 'app-read' : 'app-write';
  const triedAt = clock.now();
  const untried = (outcome: WriteOutcome, answer?: Answer): Forwarded => {
    metrics.upstreamRequests.inc({ class: cls, result: outcome.class });
    const times = { startedAt: triedAt, endedAt: clock.now() };
    return { outcome, ...times, sends: 0, ...(answer ? { answer } : {}) };
  };
  const retryAt = quota.blockedUntil(cls);
  if (retryAt !== undefined) return untried({ class: 'unavailable', reason: 'throttled', retryAt });
  const deadlineAt = deadlineOf(options, request, triedAt);
  const send = (value: string | undefined) => sendOnce(options, request, cls, deadlineAt, value);
  if (authorization === 'none' || 'own' in authorization)
    return told(await send(authorization === 'none' ? undefined : authorization.own), 1);
  const managed = await sendManaged(
    token,
    { deadlineAt, signal },
    send,
    ({ outcome }) => isUnauthorized(outcome),
    () => mayResend(options, request),
  );
  if ('failure' in managed) return untried(tokenOutcome(managed.failure), managed.failure.answer);
  const { appNo } = managed;
  return { ...told(managed.last, managed.sends), ...(appNo === undefined ? {} : { appNo }) };
}

async function sendOnce(
  { transport, budget, hosts, clock, metrics }: ForwardOptions,
  request: ForwardRequest,
  cls: TrafficClass,
  deadlineAt: Instant,
  authorization: string | undefined,
): Promise<Sent> {
  const { method, path, host, body, mayStillSend, signal, family, overflow } = request;
  const headers = request.headers.flatMap(([name, value]) =>
    NOT_FORWARDED.has(name.toLowerCase()) ? [] : [name, value],
  );
  headers.push('accept-encoding', 'identity');
  if (authorization !== undefined) headers.push('authorization', authorization);
  budget.charge();
  const exchanged = await transport.exchange(cls, {
    method,
    ...target(hosts[host], path),
    headers,
    deadlineAt,
    ...(body.length > 0 ? { body } : {}),
    ...(mayStillSend ? { mayStillSend } : {}),
    ...(signal ? { signal } : {}),
    ...(overflow && family === 'read' ? { overflow } : {}),
  });
  const now = clock.now();
  const outcome = judge(exchanged, family, now);
  metrics.upstreamRequests.inc({ class: cls, result: outcome.class });
  await learn(budget, cls, lessonOf(exchanged, now));
  return { exchanged, outcome };
}

/** When the bookkeeping before a second send fails, the first answer stands. */
async function mayResend({ log }: ForwardOptions, request: ForwardRequest): Promise<boolean> {
  try {
    await request.beforeResend?.('unauthorized');
    return true;
  } catch (err) {
    log.warn({ err }, 'not sent again after a refused token');
    return false;
  }
}

/** The last try is told. One that did not leave is not counted as a send. */
function told({ exchanged, outcome }: Sent, tries: number): Forwarded {
  const { startedAt, endedAt } = exchanged;
  const sends = exchanged.end === 'not_sent' ? tries - 1 : tries;
  const answer = exchanged.end === 'not_sent' ? undefined : exchanged.answer;
  const streamed = exchanged.end === 'streamed' ? { streamed: true as const } : {};
  return { outcome, startedAt, endedAt, sends, ...(answer ? { answer } : {}), ...streamed };
}

function tokenOutcome({ cause, retryAt }: TokenFailure): WriteOutcome {
  if (cause !== 'throttled' && cause !== 'maintenance')
    return { class: 'not_sent', cause: 'no_client_token' };
  return {
    class: 'unavailable',
    reason: cause,
    ...(retryAt === undefined ? {} : { retryAt }),
  };
}

function deadlineOf(options: ForwardOptions, request: ForwardRequest, now: Instant): Instant {
  const ms = request.family === 'read' ? options.readTimeoutMs : options.writeTimeoutMs;
  return Math.min(request.deadlineAt, now + ms);
}
