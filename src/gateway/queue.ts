/**
 * Sends the writes of the request queue, each once, in order per wallet and token. A write that was
 * refused waits for its own retry and delays only those behind it. A host that is not reached, or
 * in maintenance, is tried with one write at a time, at growing intervals.
 */
import type { Instant } from '../kernel/clock.ts';
import type { QueuedSend } from '../operations/operations.ts';
import type { WriteOutcome } from '../upstream/upstream.ts';
import { type Host, kindsOf, routeOf } from './routes.ts';
import { sendAndConclude, type WriteDeps } from './writes.ts';

/** Sends open at once. A claim costs milliseconds, so it is made when half of them are free. */
const CONCURRENT_SENDS_MAX = 32;
const SENDS_PER_PASS_MAX = 1_000;
const PAUSE_BASE_MS = 1_000;
const PAUSE_MAX_MS = 60_000;

export interface QueuePass {
  sent: number;
  /** When the next pass is due; undefined: at the usual time. */
  nextAt: Instant | undefined;
}

/** One pass of the queue. @param isStopping ends the pass before its next claim */
type RunQueue = (now: Instant, isStopping: () => boolean) => Promise<QueuePass>;

/** A host that was not reached is next tried at that time. */
type Pauses = Map<Host, { tries: number; until: Instant }>;

export function makeQueue(deps: WriteDeps): RunQueue {
  const pauses: Pauses = new Map();
  return async (now, isStopping) => {
    const { upstream } = deps;
    const open = new Set<Promise<void>>();
    let sent = 0;
    for (let more = !(await deps.serviceDown()); more || open.size > 0; ) {
      const limit = CONCURRENT_SENDS_MAX - open.size;
      const isBlocked = upstream.blockedUntil('app-write') !== undefined;
      const stops = isStopping() || isBlocked || sent >= SENDS_PER_PASS_MAX;
      if (more && limit >= CONCURRENT_SENDS_MAX / 2) {
        const claimed = stops ? [] : await claim(deps, pauses, now, limit);
        for (const write of claimed) {
          const done = send(deps, pauses, write).finally(() => open.delete(done));
          open.add(done);
        }
        sent += claimed.length;
        more = claimed.length > 0;
        if (more) continue;
      }
      if (open.size === 0) break;
      // An answer makes room, and may allow the writes behind it.
      await Promise.race(open);
      more = !stops;
    }
    const nextAt = sent >= SENDS_PER_PASS_MAX ? now : upstream.blockedUntil('app-write');
    return { sent, nextAt };
  };
}

/** Claims writes of the hosts that are reached, or one of a host whose pause is over. */
async function claim(
  { clock, operations }: WriteDeps,
  pauses: Pauses,
  now: Instant,
  limit: number,
): Promise<QueuedSend[]> {
  const paused = [...pauses].flatMap(([host, { until }]) => (until > now ? kindsOf(host) : []));
  const isTrial = [...pauses.values()].some(({ until }) => until <= now);
  const claimed = await operations.claimQueued(clock.now(), isTrial ? 1 : limit, paused);
  for (const { method, path } of claimed) {
    const { host } = routeOf(method, plain(path));
    const pause = pauses.get(host);
    if (pause) pauses.set(host, pauseOf(pause.tries + 1, now));
  }
  return claimed;
}

function pauseOf(tries: number, at: Instant) {
  return { tries, until: at + Math.min(PAUSE_MAX_MS, PAUSE_BASE_MS * 2 ** tries) };
}

async function send(deps: WriteDeps, pauses: Pauses, queued: QueuedSend): Promise<void> {
  const { id, method, path, contentType, body, sendDeadlineAt, expiresAt } = queued;
  const route = routeOf(method, plain(path));
  const family = route.type === 'write' ? route.family : 'other';
  const { forwarded } = await sendAndConclude(deps, {
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
  if (!isAway(forwarded.outcome)) pauses.delete(route.host);
  else if (!pauses.has(route.host)) pauses.set(route.host, pauseOf(0, deps.clock.now()));
}

function isAway(outcome: WriteOutcome): boolean {
  return (
    outcome.class === 'not_sent' ||
    (outcome.class === 'unavailable' && outcome.reason === 'maintenance')
  );
}

function plain(path: string): string {
  return path.split('?')[0] ?? path;
}
