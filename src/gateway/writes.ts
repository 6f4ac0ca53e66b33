/**
 * The path of every write:
 *
 *     limits → record (commit) → send (no transaction open) → conclude (commit) → respond
 *
 * A crash after the first commit leaves an operation in `sending`, which becomes `unknown`. A sent
 * write is resent only after proof that the service did not apply it: a 401 on the managed token,
 * or, from the queue, a 429 or maintenance.
 */

import type { Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import { inSpan } from '../kernel/spans.ts';
import { type Caller, dayLimitOf } from '../keys/keys.ts';
import type { KeyedOperation, Operation, Recorded } from '../operations/operations.ts';
import type { Forwarded } from '../upstream/upstream.ts';
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
import { type SendDeps, sendAndConclude } from './send.ts';

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
  writeTimeoutMs: number;
}

/** @throws Failure for a write that is refused before it is recorded */
export async function runWrite(deps: WriteDeps, write: WriteInput): Promise<GatewayResponse> {
  const { request, route, ownToken } = write;
  const fingerprint = fingerprintOf(request);
  let recorded: Recorded;
  try {
    recorded = await inSpan('record', {}, () => record(deps, write, fingerprint));
  } catch (error) {
    const held = await findRepeated(deps, write, error);
    if (!held) throw error;
    recorded = { held };
  }
  if ('held' in recorded) return replayResponse(recorded.held, fingerprint);
  if ('queued' in recorded) return queuedResponse(recorded.queued);
  // Another daemon received the deadline.
  if ('throttledUntil' in recorded)
    throw throttledFailure(recorded.throttledUntil, deps.clock.now());
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
  if (!operation) return unrecordedResponse(recorded.id);
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

/** The caller must not get an answer that is not recorded. */
function unrecordedResponse(operationId: string): GatewayResponse {
  const members = { operation_id: operationId, state: 'sending' };
  return problemResponse(
    new Failure('outcome_unknown', 'the answer is not recorded yet', members),
    [['tallyhook-operation', operationId]],
  );
}

function responseOf(
  operation: Operation,
  { answer, outcome, endedAt }: Forwarded,
): GatewayResponse {
  const headers = operationHeaders(operation);
  const members = { operation_id: operation.id, state: operation.state };
  if (outcome.class === 'not_sent') {
    return problemResponse(new Failure('upstream_not_reached', outcome.cause, members), headers);
  }
  if (answer?.complete) return forwardedResponse(answer, headers);
  if (outcome.class === 'unavailable') {
    return problemResponse(throttledFailure(outcome.retryAt, endedAt, members), headers);
  }
  return problemResponse(new Failure('outcome_unknown', undefined, members), headers);
}
