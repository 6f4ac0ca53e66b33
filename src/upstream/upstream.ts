/**
 * The door of this stage: how to speak to the service. One typed method for each thing we ask
 * ourselves, one `forward` for what apps ask, one client token, and one budget for looks.
 *
 * It promises: a write is sent at most once for each call (twice after a 401 on the managed token),
 * a write never waits behind a look, and `not_sent` is said only with proof. It never retries a
 * read, never follows a redirect, and never writes a token or a secret anywhere.
 */

import type { Clock, Instant } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Metrics } from '../kernel/metrics.ts';
import type { Random } from '../kernel/random.ts';
import { basicCredentials, fetchClientToken } from './auth/credentials.ts';
import { makeClientToken } from './auth/token.ts';
import { forward } from './forward.ts';
import { parseHost } from './http/hosts.ts';
import { makeTransport } from './http/transport.ts';
import { type BudgetView, makeBudget } from './rate/budget.ts';
import { type Lesson, learn } from './rate/learning.ts';
import { openQuota } from './rate/quota.ts';
import { makeReads, type Reads } from './reads.ts';
import type { Forwarded, ForwardRequest, QuotaKeeper, TrafficClass } from './types.ts';

export { readToken, readWallet } from './parse/read.ts';
export type {
  MaintenanceRecord,
  TokenCheckRecord,
  TokenPage,
  TokenRecord,
  WalletRecord,
} from './parse/records.ts';
export type { BudgetView } from './rate/budget.ts';
export type { Reads, TokensQuery } from './reads.ts';
export type {
  Answer,
  Forwarded,
  ForwardFamily,
  ForwardRequest,
  Head,
  InconclusiveCause,
  NotSentCause,
  Observation,
  Overflow,
  Priority,
  QuotaKeeper,
  QuotaState,
  Sink,
  TrafficClass,
  UnknownCause,
  WriteOutcome,
} from './types.ts';

export interface UpstreamSettings {
  /** The whole of a read, from the first attempt to connect to the last byte. */
  readTimeoutMs: number;
  /** The same for a write, if its own deadline is not earlier. */
  writeTimeoutMs: number;
  connectTimeoutMs: number;
  /** The largest answer that is read, in bytes. */
  bodyBytesMax: number;
  /** The ceiling for looks, in requests per second, of all daemons together. */
  budgetPerS: number;
  /**
   * Where looks begin when nothing was learned; doubled every ten clean seconds. Left out: the
   * ceiling itself when that is 5 or less, else 1.
   */
  startRatePerS?: number;
  /** Looks open at once. */
  concurrencyMax: number;
  /** The part of the budget that steady looks keep, and looks keep from app traffic; 0 to 1. */
  steadyShare: number;
  /** Looks that may wait for budget, and for how long. */
  waitingMax: number;
  waitMs: number;
  /** Requests of apps open at once; one more is `not_sent`, `busy`. */
  forwardsMax: number;
}

export interface UpstreamOptions {
  /** Origins, or origins with a path before `/v1`. */
  baseUrl: string;
  authUrl: string;
  txUrl: string;
  clientId: string;
  clientSecret: string;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  quota: QuotaKeeper;
  settings: UpstreamSettings;
}

export interface Upstream extends Reads {
  /** Sends any request of an app, and judges what came of it. Never rejects. */
  forward(request: ForwardRequest): Promise<Forwarded>;
  /** Until when the service asked this class to be silent; undefined when it may speak now. */
  blockedUntil(cls: TrafficClass): Instant | undefined;
  budget: BudgetView;
  /** Divides the budget among that many living daemons. */
  shareAmong(daemons: number): void;
  /** Reads the kept quota again: what other daemons drew counts for us. */
  syncQuota(): Promise<void>;
  /** Ends all waiting, lets open requests finish up to their deadlines, closes connections. */
  close(): Promise<void>;
}

/**
 * Opens the way to the service; the kept quota is read first, so that no deadline is forgotten.
 * @throws Failure `bad_setting` for an address that is none; what the quota's keeper throws
 */
export async function openUpstream(options: UpstreamOptions): Promise<Upstream> {
  const { clock, random, log, metrics, settings } = options;
  const hosts = {
    base: parseHost('UPSTREAM_BASE_URL', options.baseUrl),
    auth: parseHost('UPSTREAM_AUTH_URL', options.authUrl),
    tx: parseHost('UPSTREAM_TX_URL', options.txUrl),
  };
  const ceiling = settings.budgetPerS;
  const startRate = settings.startRatePerS ?? (ceiling <= 5 ? ceiling : 1);
  const quota = await openQuota({ keeper: options.quota, clock, random, log, ceiling, startRate });
  const transport = makeTransport(clock, {
    connectTimeoutMs: settings.connectTimeoutMs,
    bodyBytesMax: settings.bodyBytesMax,
    // As many as can be open, so that nobody waits for a connection of somebody else.
    connections: { polls: settings.concurrencyMax, 'app-read': settings.forwardsMax + 1 },
  });
  const budget = makeBudget(quota, clock, settings, (perS) => metrics.upstreamRate.set(perS));
  const basic = basicCredentials(options.clientId, options.clientSecret);
  const fetchOptions = {
    transport,
    auth: hosts.auth,
    basic,
    clock,
    timeoutMs: settings.readTimeoutMs,
    onLesson: (lesson: Lesson) => learn(budget, 'polls', lesson),
  };
  const token = makeClientToken({
    issue: () => fetchClientToken(fetchOptions),
    clock,
    random,
    log,
  });
  const shared = { transport, token, budget, quota, hosts, clock, log, metrics };
  const timeouts = {
    readTimeoutMs: settings.readTimeoutMs,
    writeTimeoutMs: settings.writeTimeoutMs,
  };
  let open = 0;
  let closed = false;
  return {
    ...makeReads({ ...shared, basic, timeoutMs: settings.readTimeoutMs }),
    async forward(request) {
      if (closed || open >= settings.forwardsMax)
        return turnedAway(clock.now(), closed ? 'aborted' : 'busy');
      open += 1;
      try {
        return await forward({ ...shared, ...timeouts }, request);
      } finally {
        open -= 1;
      }
    },
    blockedUntil: (cls) => quota.blockedUntil(cls),
    budget,
    shareAmong: (daemons) => budget.shareAmong(daemons),
    async syncQuota() {
      await quota.sync();
      budget.follow();
    },
    async close() {
      closed = true;
      budget.close();
      await transport.close();
      await quota.flush();
    },
  };
}

function turnedAway(now: Instant, cause: 'aborted' | 'busy'): Forwarded {
  return { outcome: { class: 'not_sent', cause }, startedAt: now, endedAt: now, sends: 0 };
}
