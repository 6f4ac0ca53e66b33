/**
 * The one path of every write: recorded before it leaves, its answer durable before the caller sees
 * it.
 *
 *     limits → record (commit) → send (no transaction open) → conclude (commit) → answer
 *
 * A crash after the first commit leaves an operation in `sending`, which becomes `unknown`. What
 * left leaves a second time only after proof that it was not applied: a 401 on the managed token,
 * or, from the queue, a 429 or maintenance. A key that holds an operation is answered from it,
 * whatever else would refuse.
 */

import type { Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import { type Caller, checkLimits, dayLimitOf } from '../keys/keys.ts';
import type { KeyedOperation, Operation, Recorded } from '../operations/operations.ts';
import type { Forwarded } from '../upstream/upstream.ts';
import { isAmbiguous } from './ambiguity.ts';
import {
  type Answer,
  operationHeaders,
  passedOn,
  problemAnswer,
  queuedAnswer,
  replayAnswer,
  throttled,
} from './replies.ts';
import { type Description, fingerprintOf, type Request } from './routes.ts';
import { type SendDeps, sendAndConclude } from './send.ts';

export type WriteDescription = Extract<Description, { what: 'write' }>;

/** A write as the gateway received it. */
export interface IncomingWrite {
  request: Request;
  query: string;
  description: WriteDescription;
  caller: Caller;
  idempotencyKey: string | undefined;
  reference: string | undefined;
  /** The caller's own Authorization, or undefined for the managed client token. */
  ownToken: string | undefined;
  headers: [string, string][];
  /** Until when it may still be sent, when its caller chose to wait; only without `ownToken`. */
  waitsUntil?: Instant | undefined;
}

export interface WriteDeps extends SendDeps {
  /**
   * What was last seen of the wallets or the token involved; for what was never seen, after one
   * look, bounded in time.
   */
  preImage: (description: WriteDescription) => Promise<Json>;
  /** What holds that idempotency key of that owner. */
  heldBy: (owner: string, key: string) => Promise<KeyedOperation | undefined>;
  /** True while the service is known to be away: then a write that may wait is not tried. */
  serviceDown: () => Promise<boolean>;
  writeTimeoutMs: number;
}

/**
 * Runs one write from intent to answer. @throws Failure for what is refused before anything is
 * recorded
 */
export async function runWrite(parts: WriteDeps, write: IncomingWrite): Promise<Answer> {
  const fingerprint = fingerprintOf(write.request, write.query);
  let recorded: Recorded;
  try {
    recorded = await record(parts, write, fingerprint);
  } catch (error) {
    const held = await heldDespite(parts, write, error);
    if (!held) throw error;
    recorded = { held };
  }
  if ('held' in recorded) return replayAnswer(recorded.held, fingerprint);
  if ('queued' in recorded) return queuedAnswer(recorded.queued);
  const { forwarded, operation } = await sendAndConclude(parts, {
    operationId: recorded.id,
    method: write.request.method,
    path: `${write.request.path}${write.query}`,
    host: write.description.host,
    headers: write.headers,
    body: write.request.body,
    authorization: write.ownToken === undefined ? { managed: true } : { own: write.ownToken },
    family: write.description.family,
    deadlineAt: recorded.sendDeadlineAt,
  });
  if (!operation) return unrecorded(recorded.id);
  return wentBack(operation, forwarded) ? queuedAnswer(operation) : answerOf(operation, forwarded);
}

/**
 * Whether it went to the queue, and perhaps on from there already: nothing came of this send, but
 * the write stands.
 */
function wentBack({ expiresAt, state }: Operation, { outcome }: Forwarded): boolean {
  const unapplied = outcome.class === 'not_sent' || outcome.class === 'unavailable';
  return expiresAt !== null && unapplied && state !== 'rejected';
}

/** Checks what may refuse the write, and makes its intent durable. */
async function record(
  parts: WriteDeps,
  write: IncomingWrite,
  fingerprint: string,
): Promise<Recorded> {
  const { description, caller, request, waitsUntil } = write;
  refuseBeyondLimits(write);
  const queue = await mustWait(parts, waitsUntil !== undefined);
  const preImage = await parts.preImage(description);
  return parts.operations.record({
    kind: description.kind,
    owner: caller.owner,
    keyId: caller.keyId,
    idempotencyKey: write.idempotencyKey ?? null,
    fingerprint,
    reference: write.reference ?? null,
    method: request.method,
    path: `${request.path}${write.query}`,
    contentType: request.contentType ?? null,
    body: request.body,
    fields: description.fields,
    preImage,
    sendWithinMs: parts.writeTimeoutMs,
    expiresAt: waitsUntil ?? null,
    queue,
    dayLimit: dayLimitOf(caller.limits) ?? null,
  });
}

function refuseBeyondLimits(write: IncomingWrite): void {
  const { caller, description, request, query, headers } = write;
  const { limits } = caller;
  if (!limits) return;
  const { operationNo = null, amount = null, feeAmount = null } = description.fields;
  const encoding = headers.find(([name]) => name === 'content-encoding')?.[1];
  const read = isAmbiguous(request, query, encoding) ? null : amount;
  checkLimits(limits, { kind: description.kind, operationNo, amount: read, feeAmount });
}

/**
 * Whether the write is queued without being tried.
 * @throws Failure `upstream_throttled` for one that may not wait, with the service's deadline
 */
async function mustWait(parts: WriteDeps, mayWait: boolean): Promise<boolean> {
  const until = parts.upstream.blockedUntil('app-write');
  if (until === undefined) return mayWait && (await parts.serviceDown());
  if (mayWait) return true;
  throw throttled(until, parts.clock.now());
}

/** Refusals that say nothing about a write that was taken before. */
const NOT_OF_A_REPEAT = ['key_limit', 'upstream_throttled', 'frozen'];

async function heldDespite(
  { heldBy }: WriteDeps,
  { idempotencyKey, caller }: IncomingWrite,
  error: unknown,
): Promise<KeyedOperation | undefined> {
  if (idempotencyKey === undefined || !(error instanceof Failure)) return undefined;
  if (!NOT_OF_A_REPEAT.includes(error.code)) return undefined;
  return heldBy(caller.owner, idempotencyKey);
}

/** No answer is given that is not recorded: the caller hears that the outcome is not known yet. */
function unrecorded(operationId: string): Answer {
  const members = { operation_id: operationId, state: 'sending' };
  return problemAnswer(
    new Failure('outcome_unknown', 'the answer could not be recorded yet', members),
    [['tallyhook-operation', operationId]],
  );
}

function answerOf(operation: Operation, { answer, outcome, endedAt }: Forwarded): Answer {
  const headers = operationHeaders(operation);
  const members = { operation_id: operation.id, state: operation.state };
  if (outcome.class === 'not_sent') {
    return problemAnswer(new Failure('upstream_not_reached', outcome.cause, members), headers);
  }
  if (answer?.complete) return passedOn(answer, headers);
  if (outcome.class === 'unavailable') {
    return problemAnswer(throttled(outcome.retryAt, endedAt, members), headers);
  }
  return problemAnswer(new Failure('outcome_unknown', undefined, members), headers);
}
