/**
 * The gateway: serves the service's own paths to apps. It records and sends writes (writes.ts),
 * forwards reads (reads.ts) and returns the service's answers byte for byte. It works on Node's
 * request and response, because web frameworks normalise paths and merge headers.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isUnavailable, logOutage, toDatabaseError } from '../db/sqlstate.ts';
import { type Instant, monotonicMs } from '../kernel/clock.ts';
import { type ErrorCode, Failure } from '../kernel/errors.ts';
import { checkEncoding } from '../kernel/http/request.ts';
import type { TrustedProxies } from '../kernel/http/trusted-proxies.ts';
import { jsonText } from '../kernel/json.ts';
import { beginSeries, type Metrics } from '../kernel/telemetry/metrics.ts';
import { inSpan } from '../kernel/telemetry/spans.ts';
import { type AddressLimit, type Keys, makeAddressLimit, requireScope } from '../keys/keys.ts';
import { KINDS } from '../resources/operations/operation.ts';
import {
  authenticate,
  type BodyLimits,
  boundedHeader,
  forwardedHeaders,
  headerOf,
  type Identity,
  idempotencyKeyOf,
  readBody,
  serviceAuthorization,
  type Target,
  targetOf,
  traceparentOf,
  waitsUntil,
  writeResponse,
} from './http.ts';
import { makeQueue, type QueuePass } from './queue.ts';
import { type ForwardedRead, forwardRead, type ReadDeps } from './reads.ts';
import { type GatewayResponse, problemResponse, unauthorizedResponse } from './responses.ts';
import { fieldsOf, type Request, type Route, routeOf } from './routes.ts';
import { makeRetryBudget, runWrite, unrecordedResponse, type WriteDeps } from './writes.ts';

export type { AnsweredRead } from './reads.ts';
export type { WriteRoute } from './routes.ts';
export type { WriteDeps } from './writes.ts';

export interface Gateway {
  /**
   * Answers one request under /v1/. Never rejects.
   * @param sendContinue sends `100 Continue`, to a client that waits for it before its body
   */
  handle(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    sendContinue?: () => void,
  ): Promise<void>;
  /** Makes a write of the daemon itself, recorded and sent like that of an app. @throws Failure */
  write(write: OwnWrite): Promise<void>;
  /** One pass over the request queue; it ends before its next claim when the signal aborts. */
  runQueue(now: Instant, signal?: AbortSignal): Promise<QueuePass>;
  /** Refuses new requests and resolves when all running requests are answered. */
  drain(): Promise<void>;
  /**
   * Answers the writes that are recorded and not answered yet with 504 `outcome_unknown`, because
   * the daemon stops without their outcome. Returns how many it answered.
   */
  cut(): number;
}

/** A write without a request of an app. */
interface OwnWrite {
  path: string;
  body: object;
  /** To whom it belongs. */
  owner: string;
}

export interface GatewayDeps extends Omit<WriteDeps, 'retryBudget'>, ReadDeps {
  keys: Keys;
  metrics: Metrics;
  /** The address of the client. */
  addressOf: TrustedProxies['addressOf'];
  bodyBytesMax: number;
  /** Request slots; further requests are answered 429. */
  concurrencyMax: number;
  /** Unauthenticated requests per second and address. */
  openPathsPerS: number;
  /** How long a write waits in the request queue when its caller sets no end. */
  queueTtlMs: number;
}

interface Call {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  sendContinue: (() => void) | undefined;
  /** The recorded write whose outcome it waits for. */
  operationId?: string;
}
interface Limits {
  /** Requests that have arrived in full. */
  slots: Slots;
  unauthenticatedSlots: Slots;
  /** Bodies of unauthenticated requests. */
  arrivals: Arrivals;
  addressLimit: AddressLimit;
}
type Deps = GatewayDeps & WriteDeps & Limits;
/** `response` is undefined when it is already written; `kind` is the label of the metric. */
type Handled = { response: GatewayResponse | undefined; kind: string };

/** Unauthenticated requests may use at most 25 % of the request slots. */
const UNAUTHENTICATED_SHARE = 0.25;
/** What the metric calls requests that are no writes. */
const NOT_WRITES = ['read', 'unauthenticated', 'refused'];
/** Statuses that the metric tells apart, and classes of the others. */
const STATUSES = ['2xx', '3xx', '4xx', '429', '5xx', '502', '503', '504'];
const BODY_DEADLINE_MS = 30_000;
const UNAUTHENTICATED_BODY = { bytesMax: 65_536, deadlineMs: 10_000 };
const ARRIVALS_MAX = 256;

export function makeGateway(gatewayDeps: GatewayDeps): Gateway {
  const { openPathsPerS, concurrencyMax } = gatewayDeps;
  const deps: Deps = {
    ...gatewayDeps,
    retryBudget: makeRetryBudget(),
    addressLimit: makeAddressLimit(openPathsPerS),
    slots: makeSlots(concurrencyMax),
    arrivals: makeArrivals(ARRIVALS_MAX),
    unauthenticatedSlots: makeSlots(Math.ceil(concurrencyMax * UNAUTHENTICATED_SHARE)),
  };
  beginSeries(deps.metrics.gatewaySeconds, { kind: [...NOT_WRITES, ...KINDS] });
  beginSeries(deps.metrics.gatewayResponses, { status: STATUSES });
  const running = new Map<Promise<unknown>, Call>();
  let draining = false;
  const runQueue = makeQueue(deps);
  return {
    async handle(incoming, outgoing, sendContinue) {
      const started = monotonicMs();
      const full = deps.slots.isFull() ? 'too_many_requests' : undefined;
      const refusal = draining ? 'shutting_down' : full;
      const call: Call = { incoming, outgoing, sendContinue };
      const work = respond(deps, call, refusal);
      running.set(work, call);
      try {
        const { response, kind } = await work;
        if (response) writeResponse(incoming, outgoing, response, deps.bodyBytesMax);
        deps.metrics.gatewaySeconds.observe({ kind }, (monotonicMs() - started) / 1000);
        if (response) deps.metrics.gatewayResponses.inc({ status: statusOf(response.status) });
      } finally {
        running.delete(work);
      }
    },
    write: (write) => (draining ? Promise.resolve() : writeOwn(deps, write)),
    runQueue: (now, signal) => runQueue(now, () => draining || signal?.aborted === true),
    async drain() {
      draining = true;
      while (running.size > 0) await Promise.allSettled(running.keys());
    },
    cut() {
      let answered = 0;
      for (const { incoming, outgoing, operationId } of running.values()) {
        if (operationId === undefined || outgoing.headersSent) continue;
        const response = unrecordedResponse(operationId, 'the daemon stopped before the answer');
        writeResponse(incoming, outgoing, response, deps.bodyBytesMax);
        answered += 1;
      }
      return answered;
    },
  };
}

function statusOf(status: number): string {
  const exact = String(status);
  return STATUSES.includes(exact) ? exact : `${exact[0]}xx`;
}

async function writeOwn(deps: Deps, { path, body, owner }: OwnWrite): Promise<void> {
  const contentType = 'application/json';
  const headers: Request['headers'] = [['content-type', contentType]];
  const text = Buffer.from(jsonText(body));
  const request = { method: 'POST', path, query: '', contentType, headers, body: text };
  const route = routeOf(request.method, path);
  if (route.type !== 'write') throw new Failure('invalid_request', `${path} is no write`);
  await runWrite(deps, {
    request,
    route: { ...route, fields: fieldsOf(request) },
    reference: undefined,
    caller: { owner, keyId: `key_${owner}`, scopes: ['gateway'] },
    idempotencyKey: undefined,
    ownToken: undefined,
  });
}

/** Turns every error into a response; unexpected errors are logged and answered as a bare 500. */
async function respond(deps: Deps, call: Call, refusal: ErrorCode | undefined): Promise<Handled> {
  try {
    if (refusal) throw new Failure(refusal);
    return await dispatch(deps, call);
  } catch (raw) {
    const known = toDatabaseError(raw);
    if (isUnavailable(known)) logOutage(deps.log, known);
    const error = isUnavailable(known) ? new Failure('database_unavailable') : known;
    if (!(error instanceof Failure)) {
      const traceparent = traceparentOf(call.incoming);
      deps.log.error({ err: error, traceparent }, 'gateway request failed');
    }
    return { response: problemResponse(error), kind: 'refused' };
  }
}

async function dispatch(deps: Deps, call: Call): Promise<Handled> {
  const { incoming } = call;
  // The answer to a TRACE repeats the request, and with it the managed token.
  if (incoming.method === 'TRACE') throw new Failure('method_not_allowed');
  const target = targetOf(incoming.url ?? '');
  const route = routeOf(incoming.method ?? 'GET', target.path);
  if (route.type === 'unauthenticated') {
    const request = await deps.arrivals.run((displaced) =>
      requestOf(call, target, {
        ...UNAUTHENTICATED_BODY,
        bytesMax: Math.min(UNAUTHENTICATED_BODY.bytesMax, deps.bodyBytesMax),
        displaced,
      }),
    );
    await deps.addressLimit.take(deps.addressOf(incoming) ?? '');
    const own = serviceAuthorization(incoming);
    const authorization = own === undefined ? ('none' as const) : { own };
    return deps.unauthenticatedSlots.run(() => read(deps, call, request, route, authorization));
  }
  const identity = await authenticate(deps, incoming);
  if (!identity) return { response: unauthorizedResponse(target.path), kind: 'refused' };
  requireScope(identity.caller, 'gateway');
  if (route.type === 'write') return write(deps, call, target, route, identity);
  const { ownToken } = identity;
  const token = ownToken === undefined ? ({ managed: true } as const) : { own: ownToken };
  return read(deps, call, await requestOf(call, target, bodyLimits(deps)), route, token);
}

async function read(
  deps: Deps,
  call: Call,
  request: Request,
  { host, type: kind }: Route,
  authorization: ForwardedRead['authorization'],
): Promise<Handled> {
  const forwarded = { request, host, authorization };
  return {
    response: await deps.slots.run(() => forwardRead(deps, forwarded, call.outgoing)),
    kind,
  };
}

async function write(
  deps: Deps,
  call: Call,
  target: Target,
  route: Extract<Route, { type: 'write' }>,
  identity: Identity,
): Promise<Handled> {
  const { incoming } = call;
  // Invalid headers are refused before the body is read, and a body of which nothing is recorded.
  checkEncoding(headerOf(incoming, 'content-encoding'));
  const chosen = {
    idempotencyKey: idempotencyKeyOf(incoming),
    reference: boundedHeader(incoming, 'tallyhook-reference'),
    waitsUntil: waitOf(deps, incoming, identity),
  };
  const request = await requestOf(call, target, bodyLimits(deps));
  const fields = fieldsOf(request);
  const onRecorded = (operationId: string) => {
    call.operationId = operationId;
  };
  const input = { request, route: { ...route, fields }, ...identity, ...chosen, onRecorded };
  const options = {
    kind: 'server' as const,
    from: incoming.headers,
    attributes: { 'http.request.method': request.method, 'url.path': request.path },
  };
  const response = await inSpan(`write ${route.kind}`, options, async (span) => {
    const answer = await deps.slots.run(() => runWrite(deps, input));
    span.setAttributes({ 'http.response.status_code': answer.status, ...operationOf(answer) });
    return answer;
  });
  return { response, kind: route.kind };
}

/** The operation in the headers of an answer, as attributes of a span. */
function operationOf({ headers }: GatewayResponse): Record<string, string> {
  return Object.fromEntries(
    headers
      .filter(([name]) => name.startsWith('tallyhook-'))
      .map(([name, value]) => [name.replace('-', '.'), value]),
  );
}

/**
 * Until when the write may wait in the request queue; undefined when the caller did not choose to.
 * @throws Failure `invalid_request`
 */
function waitOf(
  { clock, queueTtlMs }: Deps,
  incoming: IncomingMessage,
  { ownToken }: Identity,
): Instant | undefined {
  const prefer = headerOf(incoming, 'prefer');
  const expires = headerOf(incoming, 'tallyhook-expires');
  const until = waitsUntil(prefer, expires, clock.now(), queueTtlMs);
  if (until === undefined) return undefined;
  // The queue does not store the caller's token.
  if (ownToken !== undefined)
    throw new Failure('invalid_request', 'respond-async requires the managed token');
  return until;
}

function bodyLimits({ bodyBytesMax }: Deps) {
  return { bytesMax: bodyBytesMax, deadlineMs: BODY_DEADLINE_MS };
}

async function requestOf(
  { incoming, sendContinue }: Call,
  { path, query }: Target,
  limits: Omit<BodyLimits, 'sendContinue'>,
): Promise<Request> {
  const method = incoming.method ?? 'GET';
  const contentType = headerOf(incoming, 'content-type');
  const headers = forwardedHeaders(incoming);
  const body = await readBody(incoming, { ...limits, sendContinue });
  return { method, path, query, contentType, headers, body };
}

interface Slots {
  /** @throws Failure `too_many_requests` when all slots are taken */
  run<T>(work: () => Promise<T>): Promise<T>;
  isFull(): boolean;
}

function makeSlots(max: number): Slots {
  let taken = 0;
  return {
    isFull: () => taken >= max,
    async run(work) {
      if (taken >= max) throw new Failure('too_many_requests');
      taken++;
      try {
        return await work();
      } finally {
        taken--;
      }
    },
  };
}

interface Arrivals {
  /** The signal aborts when too many later bodies arrive at once. */
  run<T>(work: (displaced: AbortSignal) => Promise<T>): Promise<T>;
}

/**
 * Bounds the bodies that arrive at once. The oldest makes room: bodies that are never sent in full
 * then displace each other, and not those that come at once.
 */
function makeArrivals(max: number): Arrivals {
  const arriving = new Set<AbortController>();
  return {
    async run(work) {
      const [oldest] = arriving;
      if (arriving.size >= max) oldest?.abort();
      const own = new AbortController();
      arriving.add(own);
      own.signal.addEventListener('abort', () => arriving.delete(own));
      try {
        return await work(own.signal);
      } finally {
        arriving.delete(own);
      }
    },
  };
}
