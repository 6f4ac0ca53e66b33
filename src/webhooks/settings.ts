/**
 * The limits of webhooks, each with its unit; `defaults` are those of the contract and the design.
 */

import type { SendLimits } from './delivery/attempt.ts';
import type { HealthPolicy } from './delivery/health.ts';
import type { RetryPolicy } from './delivery/verdict.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export interface WebhookSettings {
  retry: RetryPolicy;
  health: HealthPolicy;
  send: SendLimits;
  /** Ranges that may be sent to beside public addresses, such as `127.0.0.0/8`. */
  allowCidrs: readonly string[];
  /** Sends at once that take no longer than `slowAfterMs`. */
  concurrency: number;
  /** Sends at once that take longer: they wait apart, so that they hold up nobody. */
  slowConcurrency: number;
  slowAfterMs: number;
  /** The part of `concurrency` that retries may have at most. */
  retryShare: number;
  /** Sends at once to one endpoint. */
  inFlightPerEndpoint: number;
  /** Deliveries that one daemon holds beside its sends, and of one endpoint. */
  claimMax: number;
  claimPerEndpointMax: number;
  /** Beyond the deadline of a request, how long a claim lasts. */
  leaseMarginMs: number;
  /** A delivery whose next try is later than this no longer holds up its subject. */
  orderedWaitMaxMs: number;
  /** How long a rotated key goes on signing, unless told otherwise. */
  rotationOverlapMs: number;
  /** Endpoints at most. */
  endpointsMax: number;
  userAgent: string;
}

/** Standard Webhooks' own schedule: ten tries over 75 hours. */
const SCHEDULE_MS = [
  0,
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];

export const defaults: WebhookSettings = {
  retry: { scheduleMs: SCHEDULE_MS, jitter: 0.1, giveUpMs: 7 * DAY },
  health: { openAfter: 10, holdBaseMs: 5 * SECOND, holdCapMs: HOUR, disableAfterMs: 5 * DAY },
  send: {
    deadlineMs: 15 * SECOND,
    readBytesMax: 64 * 1024,
    keepBytesMax: 16 * 1024,
    connectionsPerOrigin: 64,
  },
  allowCidrs: [],
  concurrency: 128,
  slowConcurrency: 512,
  slowAfterMs: SECOND,
  retryShare: 0.3,
  inFlightPerEndpoint: 8,
  claimMax: 256,
  claimPerEndpointMax: 64,
  leaseMarginMs: 15 * SECOND,
  orderedWaitMaxMs: 15 * MINUTE,
  rotationOverlapMs: DAY,
  endpointsMax: 10_000,
  userAgent: 'Tallyhook/1 (webhooks)',
};
