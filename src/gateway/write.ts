/**
 * The one path of every write: recorded before it leaves, its answer durable before the caller sees
 * it.
 *
 *     record (commit) → send (no transaction open) → conclude (commit) → answer
 *
 * A crash after the first commit leaves an operation in `sending`, which becomes `unknown`; nothing
 * is ever sent a second time but after a 401 on the managed token, which proves that it was not
 * applied.
 */

import type { Conclusion, Journal, Operation } from '../journal/journal.ts';
import { type Clock, type Instant, pause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import type { Log } from '../kernel/log.ts';
import type { Caller } from '../keys/keys.ts';
import type { Forwarded, Upstream } from '../upstream/upstream.ts';
import {
  type Answer,
  operationHeaders,
  passedOn,
  problemAnswer,
  replayAnswer,
  throttled,
} from './answers.ts';
import { type Description, fingerprintOf, type Request } from './describe.ts';

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
}

export interface WriteParts {
  journal: Journal;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  /** What was last seen of the wallets or the token involved. */
  preImage: (description: WriteDescription) => Promise<Json>;
  /** False once this daemon no longer counts as alive: then it must not send. */
  isAlive: () => boolean;
  /** Called when an outcome was recorded, so that the later stages look at once. */
  concluded: (operation: Operation) => void;
  writeTimeoutMs: number;
}

/** How long a caller waits for its outcome to become durable while the database is away. */
const RECORD_OUTCOME_MS = 20_000;
/** How long we go on trying after that, so that the service's own answer is not lost. */
const KEEP_TRYING_MS = 600_000;

/**
 * Runs one write from intent to answer. @throws Failure for what is refused before anything is
 * recorded
 */
export async function runWrite(parts: WriteParts, write: IncomingWrite): Promise<Answer> {
  const { journal } = parts;
  const { description, caller, request } = write;
  const fingerprint = fingerprintOf(request, write.query);
  const preImage = await parts.preImage(description);
  const recorded = await journal.record({
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
    expiresAt: null,
    queue: false,
    dayLimit: null,
  });
  if ('held' in recorded) return replayAnswer(recorded.held, fingerprint);
  if ('queued' in recorded) throw new Failure('internal', 'queued without being asked');
  const forwarded = await send(parts, write, recorded.id, recorded.sendDeadlineAt);
  const operation = await conclude(parts, {
    operationId: recorded.id,
    outcome: forwarded.outcome,
    answer: forwarded.answer,
    endedAt: forwarded.endedAt,
  });
  return operation ? answerOf(operation, forwarded) : unrecorded(recorded.id);
}

function send(
  parts: WriteParts,
  write: IncomingWrite,
  operationId: string,
  deadlineAt: Instant,
): Promise<Forwarded> {
  const { clock, journal, upstream } = parts;
  return upstream.forward({
    method: write.request.method,
    path: `${write.request.path}${write.query}`,
    host: write.description.host,
    headers: write.headers,
    body: write.request.body,
    authorization: write.ownToken === undefined ? { managed: true } : { own: write.ownToken },
    family: write.description.family,
    deadlineAt,
    mayStillSend: () => parts.isAlive() && clock.now() < deadlineAt,
    beforeResend: (after) => journal.recordResend(operationId, after, deadlineAt),
  });
}

/**
 * Makes the outcome durable, however long the database takes; undefined when the caller waited
 * enough.
 */
async function conclude(
  { journal, clock, log, concluded }: WriteParts,
  conclusion: Conclusion,
): Promise<Operation | undefined> {
  const keepTrying = async () => {
    const giveUpAt = clock.now() + KEEP_TRYING_MS;
    for (let waitMs = 50; ; waitMs = Math.min(waitMs * 2, 2_000)) {
      try {
        const operation = await journal.conclude(conclusion);
        concluded(operation);
        return operation;
      } catch (error) {
        const { operationId } = conclusion;
        log.error({ err: error, operationId }, 'an outcome could not be recorded yet');
        if (clock.now() > giveUpAt) return undefined;
        await pause(waitMs);
      }
    }
  };
  const enough = new AbortController();
  const recorded = keepTrying().finally(() => enough.abort());
  const patience = pause(RECORD_OUTCOME_MS, enough.signal).then(() => undefined);
  return (
    (await Promise.race([recorded, patience])) ?? (enough.signal.aborted ? recorded : undefined)
  );
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
