/**
 * What waits is sent when the service is back: a few at a time, in the journal's order, each once.
 * A pass ends when one of them had to go back, so that a service that is still away is not asked
 * for all of them.
 */

import type { Instant } from '../kernel/clock.ts';
import type { QueuedSend } from '../operations/operations.ts';
import { classify, hostOf } from './routes.ts';
import { sendAndConclude } from './send.ts';
import type { WriteDeps } from './writes.ts';

/** Queued writes open at once, and in one pass at most. */
const AT_ONCE = 4;
const PASS_MAX = 200;

export interface QueuePass {
  sent: number;
  /** When the next pass makes sense; undefined: at the usual time. */
  nextAt: Instant | undefined;
}

/** One pass. @param stopped asked before each claim; true: no more is taken */
export async function runQueue(
  parts: WriteDeps,
  stopped: () => boolean,
  now: Instant,
): Promise<QueuePass> {
  const blockedUntil = parts.upstream.blockedUntil('app-write');
  if (blockedUntil !== undefined) return { sent: 0, nextAt: blockedUntil };
  if (await parts.serviceDown()) return { sent: 0, nextAt: undefined };
  let sent = 0;
  while (sent < PASS_MAX && !stopped()) {
    const claimed = await parts.operations.claimQueued(now, AT_ONCE);
    if (claimed.length === 0) return { sent, nextAt: undefined };
    const gone = await Promise.all(claimed.map((write) => sendQueued(parts, write)));
    sent += claimed.length;
    if (gone.includes(false)) return { sent, nextAt: undefined };
  }
  return { sent, nextAt: now };
}

/** Sends one; false when it went back to the queue, or its outcome is not recorded yet. */
async function sendQueued(parts: WriteDeps, queued: QueuedSend): Promise<boolean> {
  const { id, method, path, contentType, body, sendDeadlineAt, expiresAt } = queued;
  const plain = path.split('?')[0] ?? path;
  const classified = classify(method, plain);
  const family = classified.what === 'write' ? classified.family : 'other';
  const { operation } = await sendAndConclude(parts, {
    operationId: id,
    method,
    path,
    host: hostOf(plain),
    headers: [
      ['accept', 'application/json'],
      ...(contentType === null ? [] : [['content-type', contentType] as [string, string]]),
    ],
    body,
    authorization: { managed: true },
    family,
    deadlineAt: Math.min(sendDeadlineAt, expiresAt),
  });
  return operation !== undefined && operation.state !== 'queued';
}
