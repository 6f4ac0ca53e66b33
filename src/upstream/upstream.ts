/**
 * Client of the service: one typed method per read of our own, one `forward` for requests of apps,
 * one managed client token, one budget for polls. A write is sent at most once per call, twice
 * after a 401 on the managed token, and never waits behind polls. Nothing is retried, no redirect
 * is followed.
 */

import type { Clock, Instant } from '../kernel/clock.ts';
import type { ProxySettings } from '../kernel/http/forward-proxy.ts';
import type { Random } from '../kernel/random.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import { beginSeries, type Metrics } from '../kernel/telemetry/metrics.ts';
import { basicCredentials, ClientToken, fetchClientToken } from './client-token.ts';
import { type Forwarded, type ForwardRequest, forward } from './forward.ts';
import { loggingFaults } from './http/not-reached.ts';
import { makeTransport, parseHost } from './http/transport.ts';
import { OUTCOME_CLASSES } from './parse/outcome.ts';
import { INCONCLUSIVE_CAUSES } from './parse/read.ts';
import { Budget, type BudgetSettings, type BudgetView, type Share } from './rate/budget.ts';
import { openQuota, type QuotaStore, type TrafficClass } from './rate/quota.ts';
import { makeReads, type Reads } from './reads.ts';

export type { Forwarded, ForwardRequest } from './forward.ts';
export type { Head, NotSentCause, Sink } from './http/exchange.ts';
export type { WriteOutcome } from './parse/outcome.ts';
export type { Observation } from './parse/read.ts';
export { readToken, readWallet } from './parse/read.ts';
export type { TokenPage, TokenRecord, WalletRecord } from './parse/records.ts';
export type { BudgetView } from './rate/budget.ts';
export type { QuotaState, QuotaStore } from './rate/quota.ts';

export interface UpstreamSettings extends BudgetSettings {
  /** For a whole read, from the start of the connection to the last byte. */
  readTimeoutMs: number;
  /** The same for a write, unless its own deadline is earlier. */
  writeTimeoutMs: number;
  connectTimeoutMs: number;
  proxies: ProxySettings;
  /** The largest body that is buffered, in bytes. */
  bodyBytesMax: number;
  /** The bound of polls per second of all daemons together; null: the traffic of apps decides. */
  budgetPerS: number | null;
  /** The rate of polls at the start, until the first throttling. */
  initialRatePerS: number;
  /** Requests of apps open at once; one more is `not_sent`, `busy`. */
  forwardsMax: number;
}

export interface UpstreamDeps {
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
  quota: QuotaStore;
  settings: UpstreamSettings;
}

export interface Upstream extends Reads {
  /** Sends a request of an app and classifies the answer. Never rejects. */
  forward(request: ForwardRequest): Promise<Forwarded>;
  /** The deadline until which the service asked this class to send nothing; undefined if none. */
  blockedUntil(cls: TrafficClass): Instant | undefined;
  /** The number of the app that the managed token belongs to, once the service has named it. */
  appNo(): bigint | undefined;
  budget: BudgetView;
  /** Requests of apps of this daemon per second that the service answers without throttling. */
  appPerS(): number;
  /** Divides the budget among so many daemons that poll; `appPerS` is that of all daemons. */
  share(among: Share): void;
  /** Reads the stored quota again, to take over what other daemons have stored. */
  syncQuota(): Promise<void>;
  /** Removes the deadlines that the service has set, for all daemons; for people only. */
  clearDeadlines(): Promise<void>;
  /** The service was down: the rate of polls of all daemons begins low and rises. */
  slowStart(): Promise<void>;
  /** Ends all waits, lets open requests finish by their deadlines, and closes connections. */
  close(): Promise<void>;
}

/**
 * Opens the client; loads the stored quota first, so that no deadline is forgotten.
 * @throws Failure `bad_setting` for an invalid address; what the quota store throws
 */
export async function openUpstream(deps: UpstreamDeps): Promise<Upstream> {
  const { clock, random, log, metrics, settings } = deps;
  const { readTimeoutMs, writeTimeoutMs, connectTimeoutMs, bodyBytesMax, proxies } = settings;
  const hosts = {
    base: parseHost('UPSTREAM_BASE_URL', deps.baseUrl),
    auth: parseHost('UPSTREAM_AUTH_URL', deps.authUrl),
    tx: parseHost('UPSTREAM_TX_URL', deps.txUrl),
  };
  const quota = await openQuota(
    { store: deps.quota, clock, random, log },
    { setting: settings.budgetPerS, initialRate: settings.initialRatePerS },
  );
  const connecting = makeTransport(clock, {
    connectTimeoutMs,
    bodyBytesMax,
    proxies,
    // As many as requests can be open, so that none waits for a connection.
    connections: { polls: settings.concurrencyMax, 'app-read': settings.forwardsMax + 1 },
  });
  const transport = loggingFaults(connecting, log);
  const budget = new Budget({ quota, clock, metrics }, settings);
  const basic = basicCredentials(deps.clientId, deps.clientSecret);
  const fetchToken = () =>
    fetchClientToken({
      transport,
      auth: hosts.auth,
      basic,
      clock,
      timeoutMs: readTimeoutMs,
      async blockedUntil() {
        // Tokens are fetched seldom. What cannot be read is as it was.
        await quota.sync().catch(() => {});
        return quota.blockedUntil('client-token');
      },
      onSignal: (signal) => budget.record('client-token', signal),
    });
  const token = new ClientToken({ fetchToken, clock, random, log, metrics });
  const shared = { transport, token, budget, quota, hosts, clock, metrics, readTimeoutMs };
  const apps = { class: ['app-read', 'app-write'], result: OUTCOME_CLASSES };
  const polls = { class: ['polls'], result: ['seen', 'absent', ...INCONCLUSIVE_CAUSES] };
  for (const series of [apps, polls]) beginSeries(metrics.upstreamRequests, series);
  let open = 0;
  let closed = false;
  return {
    ...makeReads({ ...shared, basic }),
    async forward(request) {
      if (closed || open >= settings.forwardsMax)
        return refused(clock.now(), closed ? 'aborted' : 'busy');
      open += 1;
      try {
        return await forward({ ...shared, log, writeTimeoutMs }, request);
      } finally {
        open -= 1;
      }
    },
    blockedUntil: (cls) => quota.blockedUntil(cls),
    appNo: () => token.appNo,
    budget,
    appPerS: () => budget.appPerS(),
    share: (among) => budget.share(among),
    async syncQuota() {
      await quota.sync();
      budget.refresh();
    },
    async slowStart() {
      await quota.slowStart();
      budget.refresh();
    },
    async clearDeadlines() {
      await quota.clearDeadlines();
      budget.refresh();
    },
    async close() {
      closed = true;
      budget.close();
      await transport.close();
    },
  };
}

function refused(now: Instant, cause: 'aborted' | 'busy'): Forwarded {
  return { outcome: { class: 'not_sent', cause }, startedAt: now, endedAt: now };
}
