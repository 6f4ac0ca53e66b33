/**
 * The background workers of a daemon: what each pass does, how often it runs at least, and which
 * workers it wakes. Every worker finds its work in tables; a wake-up only shortens the wait.
 */
import type { Db } from '../../db/connect.ts';
import type { Daemon } from '../../db/leases.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Log } from '../../kernel/log.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import type { Wake } from '../../kernel/workers.ts';
import { keepDayEnd, type Ledger } from '../../ledger/ledger.ts';
import type { Observer } from '../../observer/observer.ts';
import type { Operations } from '../../operations/operations.ts';
import { logIncidents, type Outbox, SEQUENCE_MAX, sequence } from '../../outbox/outbox.ts';
import type { Alerts, Reconciler } from '../../reconciler/reconciler.ts';
import type { Reports } from '../../reports/reports.ts';
import { catchUp, countAttemptMinutes, type Webhooks } from '../../webhooks/webhooks.ts';
import type { Config } from '../config/config.ts';
import type { Heartbeat } from '../heartbeat.ts';
import type { Service } from '../service.ts';
import { gaugesWorker } from './gauges.ts';
import { housekeepingWorker } from './housekeeping.ts';
import { sampleWorker } from './sample.ts';
import type { Worker } from './schedule.ts';
import { verificationWorker } from './verification.ts';
import type { Notifier } from './wake-up.ts';

interface Deps {
  config: Pick<Config, 'daemon' | 'database' | 'observer' | 'ledger' | 'reports' | 'alerts'>;
  db: Db;
  log: Log;
  operations: Pick<Operations, 'runOnce'>;
  gateway: Pick<Gateway, 'runQueue' | 'write'>;
  sampleWrite: Service['sampleWrite'];
  ledger: Ledger;
  observer: Pick<Observer, 'runOnce' | 'probeOnce' | 'sampleMinute'>;
  reconciler: Reconciler;
  alerts: Alerts;
  webhooks: Pick<Webhooks, 'endExpired' | 'removeDeleted'>;
  daemon: Daemon;
  outbox: Outbox;
  reports: Pick<Reports, 'runDue' | 'writeFiles'>;
  heartbeat: Heartbeat;
  metrics: Metrics;
  /** Notified when events were numbered. */
  feed: Notifier;
  wake: Wake;
}

/** Every worker of the daemon's roles, in the order of the pipeline. */
export function makeWorkers(deps: Deps): Worker[] {
  const { roles } = deps.config.daemon;
  return [
    ...presenceWorkers(deps),
    ...(roles.includes('gateway') ? gatewayWorkers(deps) : []),
    ...(roles.includes('workers') ? stageWorkers(deps) : []),
  ];
}

function stageWorkers(deps: Deps): Worker[] {
  return [
    operationsWorker(deps),
    ...reconciliationWorkers(deps),
    ...publishingWorkers(deps),
    ...reportWorkers(deps),
    housekeepingWorker(deps),
    gaugesWorker(deps),
  ];
}

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
      intervalMs: 15_000,
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
    intervalMs: 1_000,
    // One pass may send several writes, each up to its own deadline.
    timeoutMs: 600_000,
    pass: async (now, signal) => (await gateway.runQueue(now, signal)).nextAt,
  };
}

function operationsWorker({ operations, wake }: Deps): Worker {
  return {
    name: 'operations',
    intervalMs: 1_000,
    pass: async (now) => {
      if ((await operations.runOnce(now)) > 0) wake('observer', 'sequencer', 'webhooks');
      return undefined;
    },
  };
}

function reconciliationWorkers(deps: Deps): Worker[] {
  const { config, ledger, observer, reconciler, alerts, wake } = deps;
  const intervalMs = config.daemon.worker_interval_ms;
  return [
    {
      name: 'ledger',
      intervalMs,
      pass: async (now, signal) => ((await ledger.runOnce(now, signal)).more ? now : undefined),
    },
    {
      name: 'observer',
      intervalMs,
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
      intervalMs,
      pass: async (now, signal) => {
        const { processed, more } = await reconciler.runOnce(now, signal);
        if (processed > 0) wake('ledger', 'observer', 'sequencer', 'webhooks');
        return more ? now : undefined;
      },
    },
    {
      name: 'alerts',
      intervalMs: 1_000,
      pass: async (now) => {
        if ((await alerts.runOnce(now)) > 0) wake('sequencer', 'webhooks');
        return undefined;
      },
    },
  ];
}

function publishingWorkers({ config, db, log, feed }: Deps): Worker[] {
  const intervalMs = config.daemon.worker_interval_ms;
  return [
    {
      name: 'sequencer',
      intervalMs,
      pass: async (now) => {
        const numbered = await sequence(db, catchUp);
        if (numbered > 0) feed.notify();
        return numbered >= SEQUENCE_MAX ? now : undefined;
      },
    },
    {
      name: 'incidents',
      intervalMs: 1_000,
      pass: async (now) => ((await logIncidents(db, log)) ? now : undefined),
    },
    {
      name: 'attempt_minutes',
      intervalMs: 15_000,
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
