/**
 * Sends the writes of the request queue, in order, each once. A pass ends when a write had to be
 * queued again, so that an unavailable service is not sent all of them.
 */

import type { Instant } from '../kernel/clock.ts';
import type { QueuedSend } from '../operations/operations.ts';
import { routeOf } from './routes.ts';
import { sendAndConclude } from './send.ts';
import type { WriteDeps } from './writes.ts';

const CONCURRENT_SENDS_MAX = 4;
const SENDS_PER_PASS_MAX = 200;

export interface QueuePass {
  sent: number;
  /** When the next pass is due; undefined: at the usual time. */
  nextAt: Instant | undefined;
}

/** @param isStopping ends the pass before its next claim */
export async function runQueue(
  deps: WriteDeps,
  isStopping: () => boolean,
  now: Instant,
): Promise<QueuePass> {
  const blockedUntil = deps.upstream.blockedUntil('app-write');
  if (blockedUntil !== undefined) return { sent: 0, nextAt: blockedUntil };
  if (await deps.serviceDown()) return { sent: 0, nextAt: undefined };
  let sent = 0;
  while (sent < SENDS_PER_PASS_MAX && !isStopping()) {
    const claimed = await deps.operations.claimQueued(now, CONCURRENT_SENDS_MAX);
    if (claimed.length === 0) return { sent, nextAt: undefined };
    const concluded = await Promise.all(claimed.map((write) => sendQueued(deps, write)));
    sent += claimed.length;
    if (concluded.includes(false)) return { sent, nextAt: undefined };
  }
  return { sent, nextAt: now };
}

/** False when the write was queued again, or its outcome is not recorded yet. */
async function sendQueued(deps: WriteDeps, queued: QueuedSend): Promise<boolean> {
  const { id, method, path, contentType, body, sendDeadlineAt, expiresAt } = queued;
  const plain = path.split('?')[0] ?? path;
  const route = routeOf(method, plain);
  const family = route.type === 'write' ? route.family : 'other';
  const { operation } = await sendAndConclude(deps, {
    operationId: id,
    method,
    path,
    host: route.host,
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
