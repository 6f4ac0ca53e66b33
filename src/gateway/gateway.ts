/**
 * The service's own paths, recorded. An app changes its base URL and its token and gets the
 * service's own answers, byte for byte; writes are recorded on the way (write.ts), reads are passed
 * through and serve as looks (passing.ts). It works on Node's request and response, because a web
 * framework would normalise paths and merge headers. Who calls is known before a body is read.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isAway, isTooSlow, toDatabaseError } from '../db/sqlstate.ts';
import { type Instant, monotonicMs } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Metrics } from '../kernel/metrics.ts';
import { type Keys, requireScope } from '../keys/keys.ts';
import { type AddressLimit, makeAddressLimit } from './address-limit.ts';
import {
  boundedHeader,
  foreignAuthorization,
  forwardedHeaders,
  type Identity,
  idempotencyKeyOf,
  identify,
} from './auth.ts';
import { headerOf, readBody, type Target, targetOf, writeAnswer } from './http.ts';
import { waitsUntil } from './preference.ts';
import { type QueuePass, runQueue } from './queue.ts';
import { type PassedRead, passRead, type ReadDeps } from './reads.ts';
import { type Answer, problemAnswer, unauthorizedAnswer } from './replies.ts';
import { makeRetryBudget } from './retry-budget.ts';
import { type Classified, classify, describe, type Request } from './routes.ts';
import { runWrite, type WriteDeps } from './writes.ts';

export type { QueuePass } from './queue.ts';
export type { ObservedRead } from './reads.ts';
export type { WriteDeps, WriteDescription } from './writes.ts';

export interface Gateway {
  /**
   * Answers one request under /v1/. Never rejects.
   * @param goOn sends `100 Continue`, for a caller that waits for it before its body
   */
  handle(request: IncomingMessage, response: ServerResponse, goOn?: () => void): Promise<void>;
  /** One pass over the writes whose callers chose to wait. */
  runQueue(now: Instant): Promise<QueuePass>;
  /** Refuses new writes and resolves when those under way are answered. */
  drain(): Promise<void>;
}

export interface GatewayDeps extends WriteDeps, ReadDeps {
  keys: Keys;
  metrics: Metrics;
  bodyBytesMax: number;
  /** Requests under way at most; more are answered 429. */
  concurrencyMax: number;
  /** How often one address may ask for what needs no key, per second. */
  openPathsPerS: number;
  /** How long a write waits whose caller chose to, and named no end. */
  queueTtlMs: number;
}

/** One call: what came, and how to let its body come. */
interface Call {
  incoming: IncomingMessage;
  response: ServerResponse;
  goOn: (() => void) | undefined;
}
type Deps = GatewayDeps & { addresses: AddressLimit; strangers: Set<Call> };
/** Undefined: the answer is written already. */
type Told = { answer: Answer | undefined; kind: string };

/** The gateway of one daemon. */
export function makeGateway(given: GatewayDeps): Gateway {
  const addresses = makeAddressLimit(given.openPathsPerS);
  const strangers = new Set<Call>();
  const parts: Deps = { retries: makeRetryBudget(), ...given, addresses, strangers };
  const underWay = new Set<Promise<unknown>>();
  let draining = false;
  return {
    async handle(incoming, response, goOn) {
      const started = monotonicMs();
      const refusal = draining
        ? new Failure('shutting_down')
        : underWay.size >= parts.concurrencyMax
          ? new Failure('too_many_requests')
          : undefined;
      const work = tell(parts, { incoming, response, goOn }, refusal);
      underWay.add(work);
      try {
        const { answer, kind } = await work;
        if (answer) writeAnswer(incoming, response, answer, parts.bodyBytesMax);
        parts.metrics.gatewaySeconds.observe({ kind }, (monotonicMs() - started) / 1000);
      } finally {
        underWay.delete(work);
      }
    },
    runQueue: (now) => runQueue(parts, () => draining, now),
    async drain() {
      draining = true;
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}

/** Every refusal ends here as an answer; whatever is not ours is logged and says nothing. */
async function tell(parts: Deps, call: Call, refusal: Failure | undefined): Promise<Told> {
  try {
    if (refusal) throw refusal;
    return await route(parts, call);
  } catch (raw) {
    const known = toDatabaseError(raw);
    const away = isAway(known) || isTooSlow(known);
    const error = away ? new Failure('database_unavailable') : known;
    if (!(error instanceof Failure)) parts.log.error({ err: error }, 'gateway call failed');
    return { answer: problemAnswer(error), kind: 'refused' };
  }
}

/** Sends a request the way of its kind: private, read or write. */
async function route(parts: Deps, call: Call): Promise<Told> {
  const { incoming } = call;
  // Its answer would repeat what we send, and with it our own token.
  if (incoming.method === 'TRACE') throw new Failure('method_not_allowed');
  const target = targetOf(incoming.url ?? '');
  const classified = classify(incoming.method ?? 'GET', target.path);
  if (classified.what === 'private') {
    refuseTooOften(parts, incoming);
    const own = foreignAuthorization(incoming);
    const authorization = own === undefined ? ('none' as const) : { own };
    return amongStrangers(parts, call, () => pass(parts, call, target, classified, authorization));
  }
  const identity = await identify(parts.keys, incoming);
  if (!identity) return { answer: unauthorizedAnswer(target.path), kind: 'refused' };
  requireScope(identity.caller, 'gateway');
  if (classified.what === 'read') {
    const { ownToken } = identity;
    const token = ownToken === undefined ? ({ managed: true } as const) : { own: ownToken };
    return pass(parts, call, target, classified, token);
  }
  return write(parts, call, target, identity);
}

async function pass(
  parts: Deps,
  call: Call,
  target: Target,
  { host, what: kind }: Exclude<Classified, { what: 'write' }>,
  authorization: PassedRead['authorization'],
): Promise<Told> {
  const request = await requestOf(parts, call, target);
  const headers = forwardedHeaders(call.incoming);
  const read = { request, query: target.query, host, headers, authorization };
  return { answer: await passRead(parts, read, call.response), kind };
}

async function write(parts: Deps, call: Call, target: Target, identity: Identity): Promise<Told> {
  const { incoming } = call;
  // What is wrong with the head is said before the body is taken.
  const asked = {
    headers: forwardedHeaders(incoming),
    idempotencyKey: idempotencyKeyOf(incoming),
    reference: boundedHeader(incoming, 'tallyhook-reference'),
    waitsUntil: waitOf(parts, incoming, identity),
  };
  const request = await requestOf(parts, call, target);
  const description = describe(request);
  if (description.what !== 'write') throw new Failure('internal', 'a write that is none');
  const { query } = target;
  const answer = await runWrite(parts, { request, query, description, ...identity, ...asked });
  return { answer, kind: description.kind };
}

/** Until when the caller lets its write wait. @throws Failure `invalid_request` */
function waitOf(
  { clock, queueTtlMs }: Deps,
  incoming: IncomingMessage,
  { ownToken }: Identity,
): Instant | undefined {
  const prefer = headerOf(incoming, 'prefer');
  const expires = headerOf(incoming, 'tallyhook-expires');
  const until = waitsUntil(prefer, expires, clock.now(), queueTtlMs);
  if (until === undefined) return undefined;
  // Neither a token of the caller nor how a body is packed is kept to send with later.
  if (ownToken !== undefined)
    throw new Failure('invalid_request', 'respond-async needs the managed token');
  if (headerOf(incoming, 'content-encoding') !== undefined)
    throw new Failure('invalid_request', 'respond-async needs a body without content-encoding');
  return until;
}

async function requestOf(
  { bodyBytesMax }: Deps,
  { incoming, goOn }: Call,
  { path }: Target,
): Promise<Request> {
  const method = incoming.method ?? 'GET';
  const contentType = headerOf(incoming, 'content-type');
  const body = await readBody(incoming, bodyBytesMax, goOn);
  return { method, path, contentType, body };
}

/** Those who need no key may be slow all together, and leave most of the room to the others. */
const STRANGERS_SHARE = 0.25;

/** @throws Failure `too_many_requests` when too many without a key are under way */
async function amongStrangers<T>(
  { strangers, concurrencyMax }: Deps,
  call: Call,
  work: () => Promise<T>,
): Promise<T> {
  if (strangers.size >= Math.ceil(concurrencyMax * STRANGERS_SHARE))
    throw new Failure('too_many_requests');
  strangers.add(call);
  try {
    return await work();
  } finally {
    strangers.delete(call);
  }
}

/** @throws Failure `too_many_requests` with the seconds to wait */
function refuseTooOften({ addresses }: Deps, { socket }: IncomingMessage): void {
  const wait = addresses.take(socket.remoteAddress ?? '');
  if (wait > 0) throw new Failure('too_many_requests', undefined, { retry_after_s: wait });
}
