/**
 * The background workers of a daemon: what each pass does, how often it runs at least, and which
 * workers it wakes. Every worker finds its work in tables; a wake-up only shortens the wait.
 */
import { type Counts, readCounts } from '../../api/api.ts';
import type { ReplicaReads } from '../../db/access/replica.ts';
import type { Db } from '../../db/connect.ts';
import type { Daemon } from '../../db/leases.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Imports } from '../../imports/imports.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import type { Metrics } from '../../kernel/telemetry/metrics.ts';
import type { Wake } from '../../kernel/workers.ts';
import { keepDayEnd, type Ledger } from '../../ledger/ledger.ts';
import { findService, type Observer } from '../../observer/observer.ts';
import type { Operations } from '../../operations/operations.ts';
import { makeIncidentLog, type Outbox, SEQUENCE_MAX, sequence } from '../../outbox/outbox.ts';
import {
  type AlertCount,
  type Alerts,
  countAlerts,
  LATE,
  type Reconciler,
  STUCK,
} from '../../reconciler/reconciler.ts';
import { listSummaries, RECONCILIATION, type Reports } from '../../reports/reports.ts';
import { SERVICE_STATES } from '../../resources/service.ts';
import {
  countAttemptMinutes,
  countEndpointStates,
  type Webhooks,
} from '../../webhooks/webhooks.ts';
import type { Config } from '../config/config.ts';
import type { Heartbeat } from '../heartbeat.ts';
import type { Service } from '../service.ts';
import { housekeepingWorker } from './housekeeping.ts';
import type { Worker } from './schedule.ts';
import { searchWorker } from './search.ts';
import { findVerification, verificationWorker } from './verification.ts';
import type { Notifier } from './wake-up.ts';

interface Deps {
  config: Pick<
    Config,
    'daemon' | 'database' | 'databaseReadUrl' | 'observer' | 'ledger' | 'reports' | 'alerts'
  >;
  db: Db;
  reads: ReplicaReads;
  log: Log;
  operations: Pick<Operations, 'runOnce'>;
  gateway: Pick<Gateway, 'runQueue' | 'write'>;
  sampleWrite: Service['sampleWrite'];
  ledger: Ledger;
  observer: Pick<Observer, 'runOnce' | 'probeOnce' | 'sampleMinute'>;
  reconciler: Reconciler;
  alerts: Alerts;
  webhooks: Pick<Webhooks, 'endExpired' | 'removeDeleted' | 'removeOldBodies'>;
  daemon: Daemon;
  outbox: Outbox;
  reports: Pick<Reports, 'runDue' | 'writeFiles'>;
  imports: Pick<Imports, 'runOnce'>;
  heartbeat: Heartbeat;
  metrics: Metrics;
  /** Notified when events were numbered. */
  feed: Notifier;
  wake: Wake;
}

/** Every worker of the daemon's roles, in the order of the pipeline. */
export function makeWorkers(deps: Deps): Worker[] {
  const { roles, worker_interval_ms: intervalMs } = deps.config.daemon;
  const searches = roles.includes('gateway') || roles.includes('workers');
  return [
    ...presenceWorkers(deps),
    ...(searches ? [searchWorker({ ...deps, roles, intervalMs })] : []),
    ...(roles.includes('gateway') ? gatewayWorkers(deps) : []),
    ...(roles.includes('workers') ? stageWorkers(deps) : []),
  ];
}

function stageWorkers(deps: Deps): Worker[] {
  return [
    operationsWorker(deps),
    importsWorker(deps),
    ...reconciliationWorkers(deps),
    ...publishingWorkers(deps),
    ...reportWorkers(deps),
    housekeepingWorker(deps),
    gaugesWorker(deps),
    ...(deps.config.databaseReadUrl === undefined ? [] : [replicaWorker(deps)]),
  ];
}

/** Of workers that are woken: by others of this daemon, and by the search for what those miss. */
const WOKEN_MS = 30_000;
/** Of those that count whole minutes. */
const HALF_MINUTE_MS = 30_000;
/** Between the passes of those whose work may wait a second. */
const SECOND_MS = 1_000;
/** Writes of so long share a batch of postings, observations a pass of the reconciler. */
const GATHER_MS = { ledger: 200, reconciler: 100 };

/** While the database is away; other daemons send nothing until this one has proved it. */
const AWAY_MS = 500;

/** Workers that every daemon runs, with any roles. */
function presenceWorkers({ config, heartbeat, observer }: Deps): Worker[] {
  return [
    {
      name: 'heartbeat',
      intervalMs: config.daemon.heartbeat_timeout_ms / 3,
      pass: async (now) => ((await heartbeat.beat()) === 'away' ? now + AWAY_MS : undefined),
    },
    {
      name: 'poll_minutes',
      intervalMs: HALF_MINUTE_MS,
      pass: async (now) => {
        await observer.sampleMinute(now);
        return undefined;
      },
    },
  ];
}

function gatewayWorkers(deps: Deps): Worker[] {
  const { sampleWrite } = deps;
  return [queueWorker(deps), ...(sampleWrite ? [sampleWorker(sampleWrite, deps)] : [])];
}

function queueWorker({ gateway }: Deps): Worker {
  return {
    name: 'queue',
    intervalMs: WOKEN_MS,
    gapMs: SECOND_MS,
    // One pass may send several writes, each up to its own deadline.
    timeoutMs: 600_000,
    pass: async (now, signal) => (await gateway.runQueue(now, signal)).nextAt,
  };
}

const SAMPLE_INTERVAL_MS = 20_000;
const SAMPLE_OWNER = 'sample';

/** Writes of a sample app through the gateway, so that a new installation shows data. */
function sampleWorker(
  draw: NonNullable<Service['sampleWrite']>,
  { gateway, log }: { gateway: Pick<Gateway, 'write'>; log: Log },
): Worker {
  return {
    name: 'sample',
    intervalMs: SAMPLE_INTERVAL_MS,
    async pass() {
      const write = draw();
      try {
        if (write) await gateway.write({ ...write, owner: SAMPLE_OWNER });
      } catch (error) {
        // Such as while writes are frozen.
        if (!(error instanceof Failure)) throw error;
        log.debug({ code: error.code }, 'a sample write was refused');
      }
      return undefined;
    },
  };
}

function operationsWorker({ operations, wake }: Deps): Worker {
  return {
    name: 'operations',
    intervalMs: WOKEN_MS,
    gapMs: SECOND_MS,
    pass: async (now) => {
      if ((await operations.runOnce(now)) > 0) wake('observer', 'sequencer', 'webhooks');
      return undefined;
    },
  };
}

function importsWorker({ imports }: Deps): Worker {
  return {
    name: 'imports',
    intervalMs: WOKEN_MS,
    timeoutMs: 60_000,
    pass: (now, signal) => imports.runOnce(now, signal),
  };
}

function reconciliationWorkers(deps: Deps): Worker[] {
  const { config, ledger, observer, reconciler, alerts, wake } = deps;
  return [
    {
      name: 'ledger',
      intervalMs: WOKEN_MS,
      gapMs: GATHER_MS.ledger,
      pass: async (now, signal) => {
        const { posted, more } = await ledger.runOnce(now, signal);
        // What was posted may be under a fee rule that was replaced.
        return more ? now : posted > 0 ? now + SECOND_MS : undefined;
      },
    },
    {
      name: 'observer',
      intervalMs: WOKEN_MS,
      pass: async (now, signal) => {
        const pass = await observer.runOnce(now, signal, () => wake('reconciler'));
        return pass.nextAt;
      },
    },
    {
      name: 'probe',
      intervalMs: config.observer.probe_interval_ms,
      pass: (now) => observer.probeOnce(now),
    },
    {
      name: 'reconciler',
      intervalMs: WOKEN_MS,
      gapMs: GATHER_MS.reconciler,
      pass: async (now, signal) => {
        const { processed, more } = await reconciler.runOnce(now, signal);
        if (processed > 0) wake('ledger', 'observer', 'sequencer', 'webhooks');
        return more ? now : undefined;
      },
    },
    {
      name: 'alerts',
      intervalMs: WOKEN_MS,
      gapMs: SECOND_MS,
      pass: async (now) => {
        if ((await alerts.runOnce(now)) > 0) wake('sequencer', 'webhooks');
        return undefined;
      },
    },
  ];
}

function publishingWorkers({ db, log, feed }: Deps): Worker[] {
  const logIncidents = makeIncidentLog(db, log);
  return [
    {
      name: 'sequencer',
      intervalMs: WOKEN_MS,
      pass: async (now) => {
        const numbered = await sequence(db);
        if (numbered > 0) feed.notify();
        return numbered >= SEQUENCE_MAX ? now : undefined;
      },
    },
    {
      name: 'incidents',
      intervalMs: WOKEN_MS,
      gapMs: SECOND_MS,
      pass: async (now) => ((await logIncidents()) ? now : undefined),
    },
    {
      name: 'attempt_minutes',
      intervalMs: HALF_MINUTE_MS,
      pass: async (now) => ((await countAttemptMinutes(db, now)) ? now : undefined),
    },
  ];
}

function reportWorkers(deps: Deps): Worker[] {
  const { config, db, log, reports, wake } = deps;
  const { delivery } = config.reports;
  return [
    verificationWorker({ ...deps, intervalMs: config.ledger.verify_interval_ms }),
    {
      name: 'day_ends',
      intervalMs: 60_000,
      timeoutMs: 3_600_000,
      pass: async (now) => {
        const made = await keepDayEnd(db, now, config.reports.reconciliation.time_zone);
        return made ? now : undefined;
      },
    },
    {
      name: 'reports',
      intervalMs: 60_000,
      timeoutMs: 3_600_000,
      pass: async (now, signal) => {
        const { made, more } = await reports.runDue(now, signal);
        if (made > 0) wake('sequencer', 'webhooks', 'report_files');
        return more ? now : undefined;
      },
    },
    ...(delivery.folder === null && delivery.bucket.name === null
      ? []
      : [filesWorker({ log, reports })]),
  ];
}

function filesWorker({ log, reports }: Pick<Deps, 'log' | 'reports'>): Worker {
  return {
    name: 'report_files',
    intervalMs: 5_000,
    pass: async (now, signal) => {
      const { failed } = await reports.writeFiles(now, signal);
      for (const file of failed) log.error(file, 'a report file was not written; it is retried');
      return undefined;
    },
  };
}

const ENDPOINT_STATES = ['enabled', 'disabled'];

/** Sets the gauges of what waits and what is open. */
function gaugesWorker(deps: {
  config: Pick<Config, 'daemon' | 'reports' | 'alerts'>;
  db: Db;
  metrics: Metrics;
}): Worker {
  const { config, db, metrics } = deps;
  return {
    name: 'gauges',
    intervalMs: config.daemon.metrics_interval_ms,
    pass: async (now) => {
      setGauges(metrics, await readCounts(db, now, config.reports.stale_after_ms), now);
      setAlerts(metrics, await countAlerts(db), config.alerts.rules);
      const service = await findService(db);
      for (const state of SERVICE_STATES)
        metrics.serviceState.set({ state }, service?.state === state ? 1 : 0);
      const endpoints = await countEndpointStates(db);
      for (const state of ENDPOINT_STATES)
        metrics.endpoints.set({ state }, endpoints.find((one) => one.state === state)?.count ?? 0);
      const [report] = await listSummaries(db, { kind: RECONCILIATION, limit: 1 });
      if (report) {
        metrics.reportBreaks.set(report.breaks);
        metrics.reportAge.set(Math.max(0, now - report.createdAt) / 1000);
      }
      const verification = await findVerification(db);
      if (verification) {
        metrics.ledgerFindings.set(verification.findings);
        metrics.ledgerVerifyAge.set(Math.max(0, now - verification.endedAt) / 1000);
      }
      return undefined;
    },
  };
}

/** Sets the gauge of the replica, which may answer late, and is asked seldom by reports. */
function replicaWorker({ config, reads, metrics }: Pick<Deps, 'config' | 'reads' | 'metrics'>) {
  const worker: Worker = {
    name: 'replica',
    intervalMs: config.daemon.metrics_interval_ms,
    pass: async () => {
      metrics.replicaUsable.set((await reads.usesReplica()) ? 1 : 0);
      return undefined;
    },
  };
  return worker;
}

function setAlerts(
  metrics: Metrics,
  alerts: readonly AlertCount[],
  rules: readonly { name: string }[],
): void {
  for (const { name } of rules)
    metrics.alerts.set({ rule: name }, alerts.find(({ rule }) => rule === name)?.count ?? 0);
  const late = alerts.find(({ rule }) => rule === LATE);
  metrics.lateTargets.set(Number(late?.detail.targets ?? 0));
  metrics.stuckOperations.set(alerts.find(({ rule }) => rule === STUCK)?.count ?? 0);
}

function setGauges(metrics: Metrics, counts: Counts, now: Instant): void {
  for (const { stage, waiting, since } of counts.stages) {
    metrics.backlog.set({ stage }, waiting);
    metrics.backlogAge.set({ stage }, Math.max(0, now - (since ?? now)) / 1000);
  }
  metrics.openDrifts.set(counts.drifts.open);
  metrics.vanishedWallets.set(counts.vanished.count);
  metrics.driftAge.set(Math.max(0, now - (counts.drifts.oldestAt ?? now)) / 1000);
  metrics.driftMedian.set(counts.driftMedianS ?? 0);
  for (const state of ['unknown', 'undecided']) {
    const open = counts.operations.find((one) => one.state === state);
    metrics.unresolved.set({ state }, open?.count ?? 0);
    metrics.unresolvedAge.set({ state }, Math.max(0, now - (open?.oldestAt ?? now)) / 1000);
  }
  for (const [kind, count] of Object.entries(counts.quarantined))
    metrics.quarantined.set({ kind }, count);
  metrics.staleWallets.set(counts.staleWallets);
  const { count, expired, behind, oldestEventAt } = counts.consumers;
  metrics.consumers.set({ state: 'active' }, count - expired);
  metrics.consumers.set({ state: 'expired' }, expired);
  metrics.consumerBehind.set(behind);
  metrics.consumerAge.set(Math.max(0, now - (oldestEventAt ?? now)) / 1000);
}
