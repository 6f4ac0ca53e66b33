/**
 * The table of periodic work: who runs, how often at least, and whom a pass that did something
 * wakes. Work is found in tables; a wake-up only makes it sooner.
 */
import type { Db } from '../../db/connect.ts';
import { dropPartitions, makePartitions } from '../../db/partitions.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Observer } from '../../observer/observer.ts';
import type { Operations } from '../../operations/operations.ts';
import { SEQUENCE_MAX, sequence } from '../../outbox/outbox.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import type { Reports } from '../../reports/reports.ts';
import type { Webhooks } from '../../webhooks/webhooks.ts';
import type { Config } from '../config/config.ts';
import type { Heartbeat } from '../heartbeat.ts';
import type { Notifier } from './notifier.ts';
import type { Worker } from './schedule.ts';

interface Given {
  config: Config;
  db: Db;
  operations: Operations;
  gateway: Gateway;
  ledger: Ledger;
  observer: Observer;
  reconciler: Reconciler;
  webhooks: Webhooks;
  reports: Reports;
  heartbeat: Heartbeat;
  sequenced: Notifier;
  wake: (...names: string[]) => void;
}

/** Every worker of a daemon, in the order of the pipeline. */
export function workersOf(given: Given): Worker[] {
  return [...asking(given), ...knowing(given), ...telling(given)];
}

/** Who keeps this daemon alive, and what was asked on its way. */
function asking({ config, heartbeat, operations, gateway, wake }: Given): Worker[] {
  return [
    {
      name: 'heartbeat',
      pollMs: config.daemon.alive_ms / 3,
      pass: async () => {
        await heartbeat.beat();
        return undefined;
      },
    },
    {
      name: 'operations',
      pollMs: 1_000,
      pass: async (now) => {
        if ((await operations.runOnce(now)) > 0) wake('observer', 'sequencer', 'webhooks');
        return undefined;
      },
    },
    {
      name: 'queue',
      pollMs: 1_000,
      // One pass may send as many writes as its bound, each up to its own deadline.
      deadlineMs: 600_000,
      pass: async (now) => (await gateway.runQueue(now)).nextAt,
    },
  ];
}

/** Who finds out what is true. */
function knowing({ config, ledger, observer, reconciler, wake }: Given): Worker[] {
  const pollMs = config.daemon.poll_ms;
  return [
    {
      name: 'ledger',
      pollMs,
      pass: async (now) => ((await ledger.runOnce(now)).more ? now : undefined),
    },
    {
      name: 'observer',
      pollMs,
      pass: async (now) => {
        const { observations, nextAt } = await observer.runOnce(now);
        if (observations > 0) wake('reconciler');
        return nextAt;
      },
    },
    { name: 'probe', pollMs: config.observer.probe_ms, pass: (now) => observer.probeOnce(now) },
    {
      name: 'reconciler',
      pollMs,
      pass: async (now) => {
        const { judged, more } = await reconciler.runOnce(now);
        if (judged > 0) wake('ledger', 'observer', 'sequencer', 'webhooks');
        return more ? now : undefined;
      },
    },
  ];
}

/** Who tells it, and who keeps the house. */
function telling({ config, db, sequenced, webhooks, reports, wake }: Given): Worker[] {
  const pollMs = config.daemon.poll_ms;
  return [
    {
      name: 'sequencer',
      pollMs,
      pass: async (now) => {
        const numbered = await sequence(db);
        if (numbered > 0) sequenced.ring();
        return numbered === SEQUENCE_MAX ? now : undefined;
      },
    },
    {
      name: 'webhooks',
      pollMs,
      pass: async (now) => {
        const { more, nextDueAt } = await webhooks.runOnce(now);
        return more ? now : nextDueAt;
      },
    },
    {
      name: 'reports',
      pollMs: 60_000,
      deadlineMs: 3_600_000,
      pass: async (now) => {
        const { made, more } = await reports.runDue(now);
        if (made > 0) wake('sequencer', 'webhooks');
        return more ? now : undefined;
      },
    },
    {
      name: 'house-keeping',
      pollMs: 3_600_000,
      pass: async (now) => {
        await makePartitions(db, now);
        await dropPartitions(db, now, config.database.retention_days);
        return undefined;
      },
    },
  ];
}
