/**
 * The path of every write:
 *
 *     limits → record (commit) → send (no transaction open) → conclude (commit) → respond
 *
 * A crash after the first commit leaves an operation in `sending`, which becomes `unknown`. A write
 * is resent only after proof that it was not applied. When no byte left, it is resent within its
 * deadline and the retry budget of this daemon; after a 401 on the managed token, once; after a 429
 * or maintenance, from the queue. Every send is recorded before it happens.
 */
import type { Refusals } from '../db/checks/refusals.ts';
import { isOutage, logOutage } from '../db/sqlstate.ts';
import { type Clock, type Instant, pause, withDeadline } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import { inSpan, traceHeaders } from '../kernel/telemetry/spans.ts';
import { type Caller, dayLimitOf } from '../keys/keys.ts';
import type {
  Conclusion,
  KeyedOperation,
  Operation,
  Operations,
  Recorded,
} from '../operations/operations.ts';
import { faultText, TLS_FAULTS } from '../resources/faults.ts';
import type { Forwarded, ForwardRequest, NotSentCause, Upstream } from '../upstream/upstream.ts';
import { checkKeyLimits } from './key-limits.ts';
import {
  forwardedResponse,
  type GatewayResponse,
  operationHeaders,
  problemResponse,
  queuedResponse,
  replayResponse,
  throttledFailure,
} from './responses.ts';
import { fingerprintOf, type Request, type WriteRoute } from './routes.ts';

interface SendDeps {
  operations: Operations;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  /** False when the heartbeat of this daemon has expired; then it must not send. */
  isAlive: () => boolean;
  /** Stores a heartbeat, so that the daemon is alive again. Absent: it stays as it is. */
  prove?: (() => Promise<unknown>) | undefined;
  /** Called after an outcome is recorded, to wake the later stages. */
  onConcluded: (operation: Operation) => void;
  retryBudget: RetryBudget;
  /** Absent: real time. */
  pause?: typeof pause;
}

/** A write as the gateway received it. */
export interface WriteInput {
  request: Request;
  route: WriteRoute;
  caller: Caller;
  idempotencyKey: string | undefined;
  reference: string | undefined;
  /** The caller's own Authorization; undefined for the managed client token. */
  ownToken: string | undefined;
  /** Until when it may wait in the request queue; only without `ownToken`. */
  waitsUntil?: Instant | undefined;
  /** Called once its intent is durable and before it is sent. */
  onRecorded?: ((operationId: string) => void) | undefined;
}

export interface WriteDeps extends SendDeps {
  /**
   * The last observation of the wallets or the token of a write; those without one are polled
   * first, bounded in time.
   */
  preImage: (route: WriteRoute) => Promise<Json>;
  findByIdempotencyKey: (owner: string, key: string) => Promise<KeyedOperation | undefined>;
  /** True during maintenance; a write that may wait is then queued unsent. */
  serviceDown: () => Promise<boolean>;
  /** Told how each intent is recorded. */
  refusals: Pick<Refusals, 'accepted' | 'failed'>;
  writeTimeoutMs: number;
}

/** @throws Failure for a write that is refused before it is recorded */
export async function runWrite(deps: WriteDeps, write: WriteInput): Promise<GatewayResponse> {
  const { request, route, ownToken } = write;
  const fingerprint = fingerprintOf(request);
  let recorded: Recorded;
  try {
    recorded = await inSpan('record', {}, () => record(deps, write, fingerprint));
    if ('id' in recorded || 'queued' in recorded) deps.refusals.accepted();
  } catch (error) {
    deps.refusals.failed(error);
    const held = await findRepeated(deps, write, error);
    if (!held) throw error;
    recorded = { held };
  }
  if ('held' in recorded) return replayResponse(recorded.held, fingerprint);
  if ('queued' in recorded) return queuedResponse(recorded.queued);
  // Another daemon received the deadline.
  if ('throttledUntil' in recorded)
    throw throttledFailure(recorded.throttledUntil, deps.clock.now());
  write.onRecorded?.(recorded.id);
  const { forwarded, operation } = await sendAndConclude(deps, {
    operationId: recorded.id,
    method: request.method,
    path: `${request.path}${request.query}`,
    host: route.host,
    headers: request.headers,
    body: request.body,
    authorization: ownToken === undefined ? { managed: true } : { own: ownToken },
    family: route.family,
    deadlineAt: recorded.sendDeadlineAt,
  });
  if (!operation) return unrecordedResponse(recorded.id, 'the answer is not recorded yet');
  return isRequeued(operation, forwarded)
    ? queuedResponse(operation)
    : responseOf(operation, forwarded);
}

/** True when the write was queued again; another daemon may have sent it since. */
function isRequeued({ expiresAt, state }: Operation, { outcome }: Forwarded): boolean {
  const unapplied = outcome.class === 'not_sent' || outcome.class === 'unavailable';
  return expiresAt !== null && unapplied && state !== 'rejected';
}

/** Applies the limits and makes the intent durable. */
async function record(deps: WriteDeps, write: WriteInput, fingerprint: string): Promise<Recorded> {
  const { route, caller, request, waitsUntil } = write;
  checkKeyLimits(caller.limits, request, route);
  const queue = await mustQueue(deps, waitsUntil !== undefined);
  const preImage = await deps.preImage(route);
  return deps.operations.record({
    kind: route.kind,
    owner: caller.owner,
    keyId: caller.keyId,
    idempotencyKey: write.idempotencyKey ?? null,
    fingerprint,
    reference: write.reference ?? null,
    method: request.method,
    path: `${request.path}${request.query}`,
    contentType: request.contentType ?? null,
    body: request.body,
    fields: route.fields,
    preImage,
    sendWithinMs: deps.writeTimeoutMs,
    expiresAt: waitsUntil ?? null,
    queue,
    dayLimit: dayLimitOf(caller.limits) ?? null,
  });
}

/**
 * True when the write is to be queued unsent.
 * @throws Failure `upstream_throttled` for a write that may not wait
 */
async function mustQueue(deps: WriteDeps, mayWait: boolean): Promise<boolean> {
  const until = deps.upstream.blockedUntil('app-write');
  if (until === undefined) return mayWait && (await deps.serviceDown());
  if (mayWait) return true;
  throw throttledFailure(until, deps.clock.now());
}

/** Errors that apply to new writes only; a repeat still gets its first answer. */
const NOT_FOR_REPEATS = ['key_limit', 'member_not_allowed', 'upstream_throttled', 'frozen'];

async function findRepeated(
  { findByIdempotencyKey }: WriteDeps,
  { idempotencyKey, caller }: WriteInput,
  error: unknown,
): Promise<KeyedOperation | undefined> {
  if (idempotencyKey === undefined || !(error instanceof Failure)) return undefined;
  if (!NOT_FOR_REPEATS.includes(error.code)) return undefined;
  return findByIdempotencyKey(caller.owner, idempotencyKey);
}

/** A write in state `sending`. */
type Sendable = Pick<
  ForwardRequest,
  'method' | 'path' | 'host' | 'headers' | 'body' | 'authorization' | 'family'
> & { operationId: string; deadlineAt: Instant };

interface Sent {
  forwarded: Forwarded;
  /** Undefined when the outcome could not be recorded in time. */
  operation: Operation | undefined;
}

/** Causes that may be temporary. */
const RESENDABLE: readonly NotSentCause[] = [
  ...TLS_FAULTS,
  'connection_refused',
  'connect_timeout',
  'name_lookup',
  'proxy_unreachable',
  'proxy_tls',
  'proxy_timeout',
  'proxy_target_unreachable',
  'proxy_closed',
  'not_connected',
];
const TRACE_HEADERS = ['traceparent', 'tracestate'];
const RESENDS_MAX = 2;
const RESEND_AFTER_MS = 100;
/** How long a caller waits for its outcome to become durable while the database is unavailable. */
const RECORD_WAIT_MS = 20_000;
/** How long recording is retried in total, so that the service's answer is not lost. */
const RECORD_RETRY_MS = 600_000;

/** Sends a write and makes its outcome durable. Never rejects. */
export async function sendAndConclude(deps: SendDeps, write: Sendable): Promise<Sent> {
  const forwarded = await send(deps, write);
  const { answer, outcome, endedAt, appNo } = forwarded;
  const { operationId } = write;
  const known = { expectedAppNo: appNo, ownAppNo: deps.upstream.appNo() };
  const conclusion = { operationId, outcome, answer, endedAt, ...known };
  const operation = await inSpan('conclude', {}, () => conclude(deps, conclusion));
  return { forwarded, operation };
}

async function send(deps: SendDeps, write: Sendable): Promise<Forwarded> {
  const { clock, upstream, retryBudget } = deps;
  const { deadlineAt } = write;
  retryBudget.earn();
  for (let resends = 0; ; resends++) {
    const forwarded = await forwardOnce(deps, write);
    const { outcome } = forwarded;
    if (outcome.class !== 'not_sent' || !RESENDABLE.includes(outcome.cause)) return forwarded;
    const waitMs = RESEND_AFTER_MS * 2 ** resends;
    if (resends === RESENDS_MAX || clock.now() + waitMs >= deadlineAt) return forwarded;
    if (upstream.blockedUntil('app-write') !== undefined || !retryBudget.take()) return forwarded;
    await (deps.pause ?? pause)(waitMs);
    if (!(await recordResend(deps, write, outcome.cause))) return forwarded;
  }
}

async function forwardOnce(deps: SendDeps, write: Sendable): Promise<Forwarded> {
  const { clock, operations, upstream, log, isAlive, prove } = deps;
  const { operationId, deadlineAt, ...request } = write;
  const attributes = { 'http.request.method': request.method, 'tallyhook.operation': operationId };
  // Such as after the machine was suspended.
  if (!isAlive()) await prove?.().catch((err) => log.warn({ err }, 'no heartbeat before a send'));
  return inSpan('send', { kind: 'client', attributes }, async (span) => {
    const forwarded = await upstream.forward({
      ...request,
      headers: withTrace(request.headers),
      deadlineAt,
      mayStillSend: () => isAlive() && clock.now() < deadlineAt,
      beforeResend: (after) => operations.recordResend(operationId, after, deadlineAt),
    });
    const { answer, outcome } = forwarded;
    if (answer) span.setAttribute('http.response.status_code', answer.status);
    span.setAttribute('tallyhook.outcome', outcome.class);
    return forwarded;
  });
}

/** The app's headers; the service hears of our span instead of the app's, if there is one. */
function withTrace(headers: Sendable['headers']): Sendable['headers'] {
  const own = traceHeaders();
  if (own.length === 0) return headers;
  return [...headers.filter(([name]) => !TRACE_HEADERS.includes(name)), ...own];
}

/** False when the resend could not be recorded; then the write is not resent. */
async function recordResend(deps: SendDeps, write: Sendable, after: string): Promise<boolean> {
  const { operationId, deadlineAt } = write;
  try {
    await deps.operations.recordResend(operationId, after, deadlineAt);
    return true;
  } catch (err) {
    deps.log.warn({ err, operationId }, 'resend not recorded, write not resent');
    return false;
  }
}

/** Retries while the database is unavailable. */
async function conclude(
  { operations, clock, log, onConcluded, pause: wait = pause }: SendDeps,
  conclusion: Conclusion,
): Promise<Operation | undefined> {
  const record = async () => {
    const giveUpAt = clock.now() + RECORD_RETRY_MS;
    for (let waitMs = 50; ; waitMs = Math.min(waitMs * 2, 2_000)) {
      try {
        const operation = await operations.conclude(conclusion);
        onConcluded(operation);
        return operation;
      } catch (error) {
        const { operationId } = conclusion;
        if (isOutage(error)) logOutage(log, error);
        else log.error({ err: error, operationId }, 'outcome not recorded yet');
        if (clock.now() > giveUpAt) return undefined;
        await wait(waitMs);
      }
    }
  };
  return withDeadline(record(), RECORD_WAIT_MS, () => undefined);
}

const RETRY_SHARE = 0.1;
const RETRIES_SAVED_MAX = 10;

/** Allows one resend per ten first sends, and saves up to ten. */
interface RetryBudget {
  /** Counts a first send. */
  earn(): void;
  /** False when no resend is left. */
  take(): boolean;
}

export function makeRetryBudget(): RetryBudget {
  let saved = RETRIES_SAVED_MAX;
  return {
    earn() {
      saved = Math.min(RETRIES_SAVED_MAX, saved + RETRY_SHARE);
    },
    take() {
      // Ten additions of a tenth may be slightly less than one.
      if (saved < 1 - 1e-9) return false;
      saved -= 1;
      return true;
    },
  };
}

/** For a caller who must not get an answer that is not recorded. */
export function unrecordedResponse(operationId: string, detail: string): GatewayResponse {
  const members = { operation_id: operationId, state: 'sending' };
  return problemResponse(new Failure('outcome_unknown', detail, members), [
    ['tallyhook-operation', operationId],
  ]);
}

function responseOf(
  operation: Operation,
  { answer, outcome, endedAt }: Forwarded,
): GatewayResponse {
  const headers = operationHeaders(operation);
  const members = { operation_id: operation.id, state: operation.state };
  if (outcome.class === 'not_sent') {
    return problemResponse(
      new Failure('upstream_not_reached', faultText(outcome.cause), members),
      headers,
    );
  }
  if (answer?.complete) return forwardedResponse(answer, headers);
  if (outcome.class === 'unavailable') {
    return problemResponse(throttledFailure(outcome.retryAt, endedAt, members), headers);
  }
  return problemResponse(new Failure('outcome_unknown', undefined, members), headers);
}
