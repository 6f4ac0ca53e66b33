/**
 * From the first byte of a recorded write to its durable outcome. A write is sent again only when
 * it is proved that nothing left, a few times, within its deadline and this daemon's budget; every
 * send is a row before it happens. What left is never sent again here, but once after a 401 on the
 * managed token; what the service put off goes back to the queue, if its caller waits.
 */

import { type Clock, type Instant, pause, withDeadline } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Conclusion, Operation, Operations } from '../operations/operations.ts';
import type { Forwarded, ForwardRequest, NotSentCause, Upstream } from '../upstream/upstream.ts';
import type { RetryBudget } from './retry-budget.ts';

/** What a sender needs from the house. */
export interface SendDeps {
  operations: Operations;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  /** False once this daemon no longer counts as alive: then it must not send. */
  isAlive: () => boolean;
  /** Called when an outcome was recorded, so that the later stages look at once. */
  concluded: (operation: Operation) => void;
  /** What sends again may cost; absent: nothing is sent again. */
  retries?: RetryBudget;
  /** How waits are waited; absent: in real time. */
  pause?: typeof pause;
}

/** A write in state `sending`. */
export type Sendable = Pick<
  ForwardRequest,
  'method' | 'path' | 'host' | 'headers' | 'body' | 'authorization' | 'family'
> & { operationId: string; deadlineAt: Instant };

export interface Sent {
  forwarded: Forwarded;
  /** Undefined when the outcome could not be recorded for too long. */
  operation: Operation | undefined;
}

/** Proofs that nothing left, which may be another the next time. */
const WORTH_AGAIN: readonly NotSentCause[] = [
  'connection_refused',
  'connect_timeout',
  'name_lookup',
  'tls',
  'not_connected',
];
const AGAIN_MAX = 2;
const AGAIN_AFTER_MS = 100;
/** How long a caller waits for its outcome to become durable while the database is away. */
const RECORD_OUTCOME_MS = 20_000;
/** How long we go on trying after that, so that the service's own answer is not lost. */
const KEEP_TRYING_MS = 600_000;

/** Sends, again where that is proved harmless, and makes the outcome durable. Never rejects. */
export async function sendAndConclude(parts: SendDeps, write: Sendable): Promise<Sent> {
  const forwarded = await send(parts, write);
  const { answer, outcome, endedAt, appNo } = forwarded;
  const operation = await conclude(parts, {
    operationId: write.operationId,
    outcome,
    answer,
    endedAt,
    expectedAppNo: appNo,
  });
  return { forwarded, operation };
}

async function send(parts: SendDeps, write: Sendable): Promise<Forwarded> {
  const { clock, upstream, retries } = parts;
  const { deadlineAt } = write;
  retries?.earn();
  for (let again = 0; ; again++) {
    const forwarded = await forwardOnce(parts, write);
    const { outcome } = forwarded;
    if (outcome.class !== 'not_sent' || !WORTH_AGAIN.includes(outcome.cause)) return forwarded;
    const waitMs = AGAIN_AFTER_MS * 2 ** again;
    if (again === AGAIN_MAX || clock.now() + waitMs >= deadlineAt) return forwarded;
    if (upstream.blockedUntil('app-write') !== undefined || !retries?.take()) return forwarded;
    await (parts.pause ?? pause)(waitMs);
    if (!(await mayAgain(parts, write, outcome.cause))) return forwarded;
  }
}

function forwardOnce(parts: SendDeps, write: Sendable): Promise<Forwarded> {
  const { clock, operations, upstream, isAlive } = parts;
  const { operationId, deadlineAt, ...request } = write;
  return upstream.forward({
    ...request,
    deadlineAt,
    mayStillSend: () => isAlive() && clock.now() < deadlineAt,
    beforeResend: (after) => operations.recordResend(operationId, after, deadlineAt),
  });
}

/** The row of the next send; without it there is none, and the proof of the last one stands. */
async function mayAgain(parts: SendDeps, write: Sendable, after: string): Promise<boolean> {
  const { operationId, deadlineAt } = write;
  try {
    await parts.operations.recordResend(operationId, after, deadlineAt);
    return true;
  } catch (err) {
    parts.log.warn({ err, operationId }, 'not sent again');
    return false;
  }
}

/** Makes the outcome durable, however long the database takes. */
async function conclude(
  { operations, clock, log, concluded, pause: wait = pause }: SendDeps,
  conclusion: Conclusion,
): Promise<Operation | undefined> {
  const keepTrying = async () => {
    const giveUpAt = clock.now() + KEEP_TRYING_MS;
    for (let waitMs = 50; ; waitMs = Math.min(waitMs * 2, 2_000)) {
      try {
        const operation = await operations.conclude(conclusion);
        concluded(operation);
        return operation;
      } catch (error) {
        const { operationId } = conclusion;
        log.error({ err: error, operationId }, 'an outcome could not be recorded yet');
        if (clock.now() > giveUpAt) return undefined;
        await wait(waitMs);
      }
    }
  };
  return withDeadline(keepTrying(), RECORD_OUTCOME_MS, () => undefined);
}
