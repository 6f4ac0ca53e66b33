/** Prometheus metrics. The only importer of prom-client. */
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  Registry,
} from 'prom-client';
import { VERSION } from '../version.ts';

export type Metrics = ReturnType<typeof makeMetrics>;

/** The metrics of a process as JSON, for the one that answers the scrape. */
export type MetricsSnapshot = object[];

/**
 * Makes a registry with every metric of the daemon.
 * @param process the label of the metrics of Node, such as memory
 */
export function makeMetrics(process = 'main') {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, labels: { process } });
  // Gauges that are named like counters, which `promtool check metrics` refuses.
  for (const what of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${what}_total`);
  const { counter, gauge, seconds } = makers([registry]);
  const setters: (() => void)[] = [];
  const { node } = globalThis.process.versions;
  const build = gauge('build_info', '1, with the version of the program and of Node', [
    'version',
    'node',
  ]);
  if (process === 'main') build.set({ version: VERSION, node }, 1);
  const snapshot = (): Promise<MetricsSnapshot> => {
    for (const set of setters) set();
    return registry.getMetricsAsJSON();
  };
  return {
    snapshot,
    /** The text for a scrape, with the metrics of other processes of this daemon. */
    text: async (others: readonly MetricsSnapshot[] = []) =>
      joined([await snapshot(), ...others]).metrics(),
    /** Calls `set` before each scrape, for gauges of the present moment. */
    beforeScrape: (set: () => void) => void setters.push(set),
    contentType: registry.contentType,
    gatewaySeconds: seconds(
      'gateway_request',
      'Duration of gateway requests, including the service',
      ['kind'],
    ),
    gatewayResponses: counter(
      'gateway_responses_total',
      'Responses of the gateway by status: 2xx to 4xx, 429, 5xx, and 502 to 504, which say why: ' +
        'the service refused a connection or answered nonsense, nothing is sent now, an outcome ' +
        'is unknown',
      ['status'],
    ),
    operations: counter(
      'operations_total',
      'Changes of the states of operations by this daemon, by kind of write and new state; a ' +
        'write begins as sending or queued, a reported one as executed',
      ['kind', 'state'],
    ),
    upstreamRequests: counter('upstream_requests_total', 'Requests to the service', [
      'class',
      'result',
    ]),
    pollRate: gauge(
      'poll_rate_per_second',
      'What bounds the polls of all daemons together: setting; by_apps, without a setting; ' +
        'learned from throttlings and outages, while that is less; effective, the least of these',
      ['bound'],
    ),
    polls: counter('polls_total', 'Polls of targets', ['kind', 'result']),
    attempts: counter('webhook_attempts_total', 'Webhook delivery attempts', ['result']),
    deliverySeconds: seconds(
      'webhook_delivery',
      'Time from the commit of an event to its delivery',
    ),
    passSeconds: seconds('worker_pass', 'Duration of one pass of a worker', ['worker']),
    passFailures: counter('worker_pass_failures_total', 'Worker passes that failed', ['worker']),
    passOverdue: gauge(
      'worker_pass_overdue_seconds',
      'Duration of the running pass of a worker that exceeded its timeout, else 0',
      ['worker'],
    ),
    role: gauge('role', '1 for each role of this daemon', ['role']),
    daemons: gauge('daemons', 'Living daemons that have a role, at the last heartbeat', ['role']),
    heartbeatAlive: gauge(
      'heartbeat_alive',
      '1 while this daemon is registered as living, 0 when its heartbeats fail: it sends nothing',
    ),
    clientTokenValid: gauge(
      'client_token_valid',
      '1 after the service issued a client token, 0 after it refused the client id or secret',
    ),
    frozen: gauge('writes_frozen', '1 while writes are frozen, else 0'),
    ...databaseGauges(gauge),
    ...pollingGauges(gauge),
    ...deliveryMetrics(counter, gauge),
    ...stateGauges(gauge),
    ...bookGauges(gauge),
  };
}

/**
 * Begins the series of these values of labels at 0, all combinations. Without that a series begins
 * at its first event, which is then no increase for Prometheus.
 */
export function beginSeries<L extends string>(
  metric: Counter<L> | Histogram<L>,
  values: Record<L, readonly string[]>,
): void {
  let all: Partial<Record<L, string>>[] = [{}];
  for (const [name, some] of Object.entries<readonly string[]>(values))
    all = all.flatMap((labels) => some.map((value) => ({ ...labels, [name]: value })));
  for (const labels of all)
    if (metric instanceof Histogram) metric.zero(labels);
    else metric.inc(labels, 0);
}

/** Sets the gauges of these pools before each scrape. */
export function measurePools(
  metrics: Pick<Metrics, 'beforeScrape' | 'poolRunning' | 'poolWaiting'>,
  pools: Record<string, { load(): { running: number; waiting: number } }>,
): void {
  metrics.beforeScrape(() => {
    for (const [pool, { load }] of Object.entries(pools)) {
      const { running, waiting } = load();
      metrics.poolRunning.set({ pool }, running);
      metrics.poolWaiting.set({ pool }, waiting);
    }
  });
}

/** Sums the samples of equal name and labels. */
function joined(snapshots: readonly MetricsSnapshot[]): Registry {
  const all = snapshots.map((metrics) =>
    metrics.map((metric) => ({ ...metric, aggregator: 'sum' })),
  );
  return AggregatorRegistry.aggregate(all);
}

function makers(registers: Registry[]) {
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter<L>({ name: `tallyhook_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) => {
    const made = new Gauge<L>({ name: `tallyhook_${name}`, help, labelNames, registers });
    // A new gauge exports 0, although nothing has been measured yet.
    if (labelNames.length === 0) made.remove();
    return made;
  };
  const seconds = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Histogram<L>({
      name: `tallyhook_${name}_seconds`,
      help,
      labelNames,
      registers,
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    });
  return { counter, gauge, seconds };
}

/** About the connections to the database, and its clock. */
function databaseGauges(gauge: ReturnType<typeof makers>['gauge']) {
  return {
    databaseUp: gauge(
      'database_up',
      '1 when the database answered this scrape and has not refused to record a write of apps of ' +
        'the last minutes, else 0',
    ),
    replicaUsable: gauge(
      'database_replica_usable',
      '1 while long reads use the replica of DATABASE_READ_URL, 0 while they use the primary',
    ),
    clockCorrection: gauge(
      'clock_correction_seconds',
      'What is added to the time of the database since its clock stepped; alert when not 0',
    ),
    poolRunning: gauge(
      'database_pool_running',
      'Statements and transactions that have a connection, by pool: gateway, workers, people, ' +
        'delivery',
      ['pool'],
    ),
    poolWaiting: gauge(
      'database_pool_waiting',
      'Statements and transactions that wait for a connection of their pool',
      ['pool'],
    ),
  };
}

/** About the polls of steady targets. */
function pollingGauges(gauge: ReturnType<typeof makers>['gauge']) {
  return {
    pollPrice: gauge(
      'poll_price_seconds',
      'Seconds of undetected change that a poll of a steady target must be expected to save',
    ),
    pollBudget: gauge(
      'poll_budget_per_second',
      'Polls per second that all daemons have left for steady targets',
    ),
    pollInterval: gauge('poll_interval_seconds', 'Mean interval between polls of a steady target'),
    expectedDelay: gauge(
      'poll_expected_delay_seconds',
      'Mean time from a change of a steady target to its poll, by the learned change rates',
    ),
    leastDelay: gauge(
      'poll_least_delay_seconds',
      'The least such mean that any schedule reaches with the budget of steady targets',
    ),
    maximumAge: gauge(
      'poll_maximum_age_seconds',
      'No steady target is left without a poll for longer, while the service answers',
    ),
    oldestPoll: gauge(
      'poll_oldest_age_seconds',
      'Time since the poll of the target that was polled longest ago',
    ),
  };
}

/** About the process that sends webhooks. */
function deliveryMetrics(
  counter: ReturnType<typeof makers>['counter'],
  gauge: ReturnType<typeof makers>['gauge'],
) {
  return {
    deliveryUp: gauge(
      'delivery_process_up',
      '1 while the process that sends webhooks is running, 0 while it is being restarted',
    ),
    deliveryStarts: counter(
      'delivery_process_starts_total',
      'Starts of the process that sends webhooks; each one after the first is a restart',
    ),
  };
}

/** Read from the database every `daemon.metrics_interval_ms`, and so equal on all daemons. */
function stateGauges(gauge: ReturnType<typeof makers>['gauge']) {
  return {
    backlog: gauge(
      'backlog_rows',
      'Rows that wait to be processed by a stage of any daemon: ledger, observer (polls that are ' +
        'due), reconciler (observations), outbox (events without a number), webhooks (deliveries)',
      ['stage'],
    ),
    backlogAge: gauge(
      'backlog_oldest_age_seconds',
      'How long the oldest row has waited to be processed by a stage; 0 without one',
      ['stage'],
    ),
    serviceState: gauge(
      'service_state',
      '1 for the state that the service is in, else 0: active, announced (a maintenance is), ' +
        'maintenance, unreachable',
      ['state'],
    ),
    endpoints: gauge('webhook_endpoints', 'Endpoints by state: enabled, disabled', ['state']),
    openDrifts: gauge(
      'open_drifts',
      'Differences between observed and expected balances that are not closed',
    ),
    vanishedWallets: gauge(
      'vanished_wallets',
      'Wallets that the service no longer shows, and of which the ledger holds a balance',
    ),
    driftAge: gauge(
      'open_drifts_oldest_age_seconds',
      'Time since the oldest drift that is not closed was first observed; 0 without one',
    ),
    driftMedian: gauge(
      'drift_resolution_median_seconds',
      'Median time from the first observation of a drift to its end, over 30 days; 0 without one',
    ),
    unresolved: gauge(
      'unresolved_operations',
      'Operations whose outcome evidence (unknown) or people (undecided) must find',
      ['state'],
    ),
    unresolvedAge: gauge(
      'unresolved_operations_oldest_age_seconds',
      'Time since the oldest unknown or undecided operation was recorded; 0 without one',
      ['state'],
    ),
    quarantined: gauge(
      'quarantined',
      'Postings and observations that wait for a person: npx tallyhook quarantine',
      ['kind'],
    ),
    alerts: gauge('alerts', 'Alerts of the rules of alerts.rules that are raised', ['rule']),
    lateTargets: gauge(
      'late_targets',
      'Targets that were not polled within twice the guaranteed maximum age',
    ),
    stuckOperations: gauge(
      'stuck_operations',
      'Executed operations that have not settled within a multiple of the time of their kind',
    ),
    consumers: gauge('consumers', 'Consumers of the feed by state: active, expired', ['state']),
    consumerBehind: gauge(
      'consumer_behind_events',
      'Events that the consumer that is furthest behind has not acknowledged or read',
    ),
    consumerAge: gauge(
      'consumer_oldest_event_age_seconds',
      'Time since the oldest event that a consumer has not acknowledged; 0 without one',
    ),
    staleWallets: gauge(
      'stale_wallets',
      'Wallets whose newest processed observation is older than reports.stale_after_ms',
    ),
  };
}

/** Of the newest report and the newest verification of the ledger, equal on all daemons. */
function bookGauges(gauge: ReturnType<typeof makers>['gauge']) {
  return {
    reportBreaks: gauge(
      'report_breaks',
      'Breaks in the newest reconciliation report; 0 when everything is balanced',
    ),
    reportAge: gauge('report_age_seconds', 'Time since the newest reconciliation report was made'),
    ledgerFindings: gauge(
      'ledger_verify_findings',
      'What the newest verification of the hash chain found; 0 when nothing was changed',
    ),
    ledgerVerifyAge: gauge(
      'ledger_verify_age_seconds',
      'Time since the newest verification of the hash chain',
    ),
  };
}
