/** The claimed deliveries of one endpoint in one daemon. */
import type { Instant } from '../../kernel/clock.ts';
import type { ClaimedDelivery, ClaimedEndpoint } from './queue-store.ts';
import type { Pool } from './slots.ts';

/** A claimed delivery with its endpoint as of the claim. */
export interface Job {
  delivery: ClaimedDelivery;
  endpoint: ClaimedEndpoint;
  leaseUntil: Instant;
}

export interface EndpointQueue {
  fresh: Job[];
  retries: Job[];
  sending: number;
  /** When deliveries were last accepted. */
  acceptedAt: Instant;
  origin: string;
  /** The slots that its next send uses: slow when its last one was, or failed before the start. */
  pool: Pool;
  /** Sends in flight as its health allows, and as it has kept up. */
  inFlightMax: number;
  ramp: number;
  /** The claim window and what happened since the last claim (limits.ts). */
  window: number;
  finished: number;
  degraded: boolean;
  inRing: boolean;
}

export function newQueue(pool: Pool): EndpointQueue {
  return {
    fresh: [],
    retries: [],
    sending: 0,
    acceptedAt: 0,
    origin: '',
    pool,
    inFlightMax: 1,
    ramp: 1,
    window: 1,
    finished: 0,
    degraded: false,
    inRing: false,
  };
}

/**
 * The slots of an endpoint's first send in this daemon. A failing one may hang, and after a start
 * all such endpoints together would fill the quick slots.
 */
export function firstPool(consecutiveFailures: number): Pool {
  return consecutiveFailures > 0 ? 'slow' : 'quick';
}

export function isRetry(job: Job): boolean {
  return job.delivery.attempts > 0;
}

export function waitingIn(queue: EndpointQueue): number {
  return queue.fresh.length + queue.retries.length;
}
