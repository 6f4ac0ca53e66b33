/**
 * The process that sends the webhooks of a daemon: a pool, a clock, and the dispatcher. It is
 * controlled by messages, and ends at once when the daemon is gone: what it was sending is then
 * sent again, with the same id. Signals that stop a daemon often reach all its processes (Ctrl+C,
 * systemd); this one goes on until the daemon asks it to stop.
 */
import { WRITER } from '../../db/access/roles.ts';
import { databaseClock } from '../../db/clock/clock.ts';
import { connect, type Db } from '../../db/connect.ts';
import { systemClock } from '../../kernel/clock.ts';
import { makeIds } from '../../kernel/ids.ts';
import { systemRandom } from '../../kernel/random.ts';
import { type Log, makeLog, printLine } from '../../kernel/telemetry/log.ts';
import {
  type Metrics,
  type MetricsSnapshot,
  makeMetrics,
  measurePools,
} from '../../kernel/telemetry/metrics.ts';
import { makeOutbox } from '../../outbox/outbox.ts';
import { makeEncryption, makeWebhooks } from '../../webhooks/webhooks.ts';
import { startTracing } from '../config/tracing.ts';
import { untilStopped } from '../process.ts';
import { makeSchedule, type Worker } from '../workers/schedule.ts';
import { makeWakeUps } from '../workers/wake-up.ts';
import type { Daemons, FromDelivery, Start, ToDelivery } from './messages.ts';

/** Runs until the daemon stops it; returns the exit code. */
export function runDelivery(): Promise<number> {
  if (!process.connected) {
    printLine('a daemon starts this process; set TALLYHOOK_ROLES=delivery and run npm start');
    return Promise.resolve(1);
  }
  const abandoned = new Promise<number>((resolve) => {
    process.once('disconnect', () => resolve(1));
  });
  return Promise.race([abandoned, deliver()]);
}

async function deliver(): Promise<number> {
  const stopAsked = new Promise<void>((resolve) => {
    process.on('message', ({ kind }: ToDelivery) => {
      if (kind === 'stop') resolve();
    });
  });
  const start = await new Promise<Start>((resolve) => process.once('message', resolve));
  const log = makeLog(start.config.log.level).child({ process: 'delivery' });
  const stopTracing = await startTracing(log);
  let delivery: Delivery;
  try {
    delivery = await openDelivery(start, log);
  } catch (err) {
    log.error({ err }, 'the delivery process could not start');
    return 1;
  }
  const { stop, recoversFrom } = delivery;
  process.on('message', (message: ToDelivery) => obey(delivery, message));
  const ended = untilStopped({ log, stop, recoversFrom }, (ask) => void stopAsked.then(ask));
  tell({ kind: 'ready' });
  return ended.finally(stopTracing);
}

function obey(delivery: Delivery, message: ToDelivery): void {
  if (message.kind === 'wake') delivery.wake();
  if (message.kind !== 'report') return;
  delivery.shareAmong(message.daemons);
  void delivery.snapshot().then((metrics) => tell({ kind: 'report', metrics }));
}

function tell(message: FromDelivery): void {
  // A daemon that is gone also ends the connection, which is handled above.
  process.send?.(message, undefined, undefined, () => {});
}

interface Delivery {
  wake(): void;
  /** Which daemons make deliveries, and how many share them. */
  shareAmong(daemons: Daemons): void;
  snapshot(): Promise<MetricsSnapshot>;
  /** Finishes sends within `daemon.drain_ms` or interrupts them, to be repeated. Idempotent. */
  stop(): Promise<void>;
  /** Replaces the pool if the error is the driver's known fault; else returns false. */
  recoversFrom(error: unknown): boolean;
}

/** Part of the time to stop after which sends are interrupted, so that their results are stored. */
const SENDS_SHARE = 0.8;

/** @throws DatabaseError when the database does not answer */
async function openDelivery(start: Start, log: Log): Promise<Delivery> {
  const { statement_timeout_ms: statementTimeoutMs, connections } = start.config.database;
  const db = connect({
    url: start.databaseUrl,
    role: WRITER,
    max: connections.delivery,
    statementTimeoutMs,
    name: 'tallyhook delivery',
  });
  const metrics = makeMetrics('delivery');
  measurePools(metrics, { delivery: db });
  const { schedule, webhooks, wake, shareAmong } = await makeDispatch(start, db, log, metrics);
  schedule.start();
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    await schedule.stop();
    await webhooks.drain(start.config.daemon.drain_ms * SENDS_SHARE);
    await webhooks.close();
    await db.end();
  };
  return {
    wake,
    shareAmong,
    snapshot: metrics.snapshot,
    stop() {
      stopped ??= stop();
      return stopped;
    },
    recoversFrom: (error) => db.renewAfter(error),
  };
}

/**
 * A daemon that is alone is woken for all deliveries that it makes, and finds when the next is due;
 * those of other daemons are found by looking for them.
 */
const ALONE_MS = 4_000;
/** Replays run in the background, page after page. */
const REPLAYS_MS = 5_000;

async function makeDispatch(start: Start, db: Db, log: Log, metrics: Metrics) {
  const { config, keys, settings } = start;
  const { worker_interval_ms: intervalMs, heartbeat_timeout_ms: aliveMs } = config.daemon;
  const clock = await databaseClock(db, log);
  const random = systemRandom;
  const ids = makeIds(clock, random);
  // Until it is told, there may be others.
  let daemons: Daemons = { living: 2, delivering: 1 };
  const wakeUps = makeWakeUps();
  const wake = () => wakeUps.wake('webhooks');
  const outbox = makeOutbox({ clock, ids });
  const webhooks = makeWebhooks({
    db,
    clock,
    wallClock: systemClock,
    random,
    ids,
    log,
    metrics,
    settings,
    encryption: makeEncryption(keys.key, random, keys.former),
    emit: outbox.emit,
    wake,
    daemons: () => daemons.delivering,
  });
  const workers: Worker[] = [
    {
      name: 'webhooks',
      intervalMs: Math.max(intervalMs, ALONE_MS),
      pass: async (now, signal) => {
        const { more, nextDueAt } = await webhooks.runOnce(now, signal);
        if (more || daemons.living === 1) return more ? now : nextDueAt;
        return Math.min(nextDueAt ?? Number.POSITIVE_INFINITY, now + intervalMs);
      },
    },
    {
      name: 'replays',
      intervalMs: REPLAYS_MS,
      pass: async (now) => {
        const more = await webhooks.replayOnce(now);
        if (more) wake();
        return more ? now : undefined;
      },
    },
    {
      name: 'delivery clock',
      intervalMs: aliveMs,
      pass: async () => {
        await clock.follow();
        return undefined;
      },
    },
  ];
  const passTimeoutMs = config.daemon.worker_pass_timeout_ms;
  const schedule = makeSchedule({ workers, clock, log, metrics, passTimeoutMs, wakeUps });
  const shareAmong = (told: Daemons) => {
    daemons = told;
  };
  return { schedule, webhooks, wake, shareAmong };
}
