/** The settings of webhooks. The config file sets some; the rest have the defaults below. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../kernel/clock.ts';
import type { RetryPolicy } from './delivery/attempt-result.ts';
import type { SendLimits } from './delivery/http/attempt.ts';
import type { ProxyUse } from './delivery/http/connector.ts';
import type { HealthPolicy } from './endpoints/health.ts';

const SECOND_MS = 1_000;

export interface WebhookSettings {
  retry: RetryPolicy;
  health: HealthPolicy;
  send: SendLimits;
  /** Ranges that are allowed beside public addresses, such as `127.0.0.0/8`. */
  allowCidrs: readonly string[];
  /** Receivers without encryption. */
  allowHttp: boolean;
  proxies: ProxyUse;
  /** Concurrent sends that have taken less than `slowAfterMs`. */
  concurrency: number;
  /** Concurrent sends that have taken longer; they no longer count towards `concurrency`. */
  slowConcurrency: number;
  slowAfterMs: number;
  retryShare: number;
  inFlightPerEndpoint: number;
  /** Quick sends, and slow ones, to all endpoints on one origin. */
  connectionsPerOrigin: number;
  /** Claimed deliveries that wait for a send slot in one daemon. */
  claimMax: number;
  /** Claimed deliveries of one endpoint, waiting or in flight. */
  claimPerEndpointMax: number;
  /** A claim's lease is the request deadline plus this. */
  leaseMarginMs: number;
  /** With ordering, a delivery whose next attempt is further away no longer blocks its subject. */
  orderedWaitMaxMs: number;
  /** How long a rotated key keeps signing, unless the request says otherwise. */
  rotationOverlapMs: number;
  endpointsMax: number;
  endpointsPerOwner: number;
  /** How long deliveries are kept; only events of that time can be replayed. */
  keepMs: number;
  userAgent: string;
}

/** The schedule that Standard Webhooks recommends: ten attempts over 75 hours. */
const SCHEDULE_MS = [
  0,
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

export const defaults: WebhookSettings = {
  retry: { scheduleMs: SCHEDULE_MS, jitter: 0.1, giveUpMs: 7 * DAY_MS },
  health: {
    openAfter: 10,
    pauseBaseMs: 5 * SECOND_MS,
    pauseCapMs: HOUR_MS,
    disableAfterMs: 5 * DAY_MS,
  },
  send: {
    deadlineMs: 15 * SECOND_MS,
    // Less than `slowAfterMs`: a body that stalls does not make its endpoint a slow one.
    bodyMs: 500,
    readBytesMax: 64 * 1024,
    keepBytesMax: 16 * 1024,
  },
  allowCidrs: [],
  allowHttp: true,
  proxies: {},
  concurrency: 128,
  slowConcurrency: 512,
  slowAfterMs: SECOND_MS,
  retryShare: 0.3,
  inFlightPerEndpoint: 8,
  connectionsPerOrigin: 64,
  claimMax: 256,
  claimPerEndpointMax: 64,
  leaseMarginMs: 15 * SECOND_MS,
  orderedWaitMaxMs: 15 * MINUTE_MS,
  rotationOverlapMs: DAY_MS,
  endpointsMax: 10_000,
  endpointsPerOwner: 1_000,
  keepMs: 90 * DAY_MS,
  userAgent: 'Tallyhook/1 (webhooks)',
};
