/**
 * Starts and stops one daemon inside a process. A failed start leaves nothing running; a stop lets
 * running work finish within a deadline.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ReadDatabaseTime } from '../db/clock/clock.ts';
import { retireDaemon, setInstallationSetting } from '../db/leases.ts';
import { pause, withDeadline } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { DrainableServer } from '../kernel/http/server.ts';
import { systemRandom } from '../kernel/random.ts';
import { type Log, makeLog } from '../kernel/telemetry/log.ts';
import type { Keys } from '../keys/keys.ts';
import { setFeeRules } from '../ledger/ledger.ts';
import {
  LEDGER_SETTING,
  ledgerSetting,
  STALE_AFTER_SETTING,
  TIME_ZONE_SETTING,
} from '../reports/reports.ts';
import { SCOPES } from '../resources/admin/key.ts';
import type { Role } from '../resources/admin/status.ts';
import { type Built, build } from './build.ts';
import type { Config } from './config/config.ts';
import { cronJobs, ledgerSettings } from './config/stage-settings.ts';
import { type Database, openDatabase } from './database.ts';
import { makeHttpServer } from './server.ts';
import { checkService, openService, type Service } from './service.ts';
import { startCron } from './workers/cron.ts';

export interface RunningDaemon {
  url: string;
  /** Of `/metrics`, if it has a port of its own. */
  metricsUrl: string | undefined;
  roles: readonly Role[];
  /** The admin key, if this start generated it. */
  adminKey: string | undefined;
  sandboxUrl: string | undefined;
  /** Lines for the operator, such as where the data are. */
  notes: string[];
  log: Log;
  /**
   * Stops being ready, and after `daemon.unready_ms` finishes running work and stops, within
   * `daemon.drain_ms`. Writes without an answer by then get 504 `outcome_unknown`. Idempotent.
   */
  stop(): Promise<void>;
  /** Aborts when its database was moved to another service: it sends nothing and must stop. */
  moved: AbortSignal;
  /** Replaces the database pool if the error is the driver's known fault; else returns false. */
  recoversFrom(error: unknown): boolean;
}

/**
 * Starts a daemon.
 * @param readTime reads the database's clock
 * @throws Failure such as `bad_setting`; nothing is left running then
 */
export async function startDaemon(
  config: Config,
  readTime?: ReadDatabaseTime,
): Promise<RunningDaemon> {
  const log = makeLog(config.log.level);
  const undo: (() => Promise<void>)[] = [];
  try {
    const database = await openDatabase(config, log, { readTime });
    undo.push(database.close);
    const { clock } = database;
    const service = await openService(config, { clock, random: systemRandom, log });
    undo.push(service.close);
    await checkService(database.db, service, clock);
    await storeSettings(database, config);
    const built = await build(config, database, service, log);
    undo.push(() => retire(built, database));
    undo.push(() => built.upstream.close());
    await built.heartbeat.prove();
    const { roles } = config.daemon;
    warnOfShortDrain(config, log);
    const { host, port, base_path: basePath, metrics_port: metricsPort } = config.http;
    const server = makeHttpServer({ ...built, roles, basePath });
    const origin = await listen(server, { host, port, setting: 'PORT' });
    const url = origin + basePath;
    undo.push(() => closeServer(server));
    const metrics = metricsPort === null ? undefined : await serveMetrics(built, host, metricsPort);
    if (metrics) undo.push(() => closeServer(metrics.server));
    // Only now, since a start that fails shows no key.
    const adminKey = await ensureAdminKey(built.keys, config, log);
    // A slow start may have taken longer than a daemon without a heartbeat counts as alive.
    await built.heartbeat.prove();
    const stopCron = startCron(cronJobs(config), log, built.wake);
    undo.push(stopCron);
    built.schedule.start();
    if (roles.includes('delivery')) built.delivery.start();
    log.info({ url, daemon: built.daemon.id, roles, service: service.identity }, 'ready');
    return {
      url,
      metricsUrl: metrics?.url,
      roles,
      adminKey,
      sandboxUrl: service.sandboxUrl,
      notes: database.notes,
      log,
      stop: once(() => stop({ config, log, server, metrics, built, service, database, stopCron })),
      moved: built.heartbeat.moved,
      recoversFrom: (error) =>
        // The error does not tell whose connection it was.
        [database.db, database.workersDb, database.peopleDb].filter((db) => db.renewAfter(error))
          .length > 0,
    };
  } catch (error) {
    for (const step of undo.reverse()) await step().catch(() => {});
    throw error;
  }
}

function warnOfShortDrain({ daemon, upstream }: Config, log: Log): void {
  const { drain_ms: drainMs } = daemon;
  const { write_timeout_ms: writeTimeoutMs } = upstream;
  if (drainMs < writeTimeoutMs)
    log.warn({ drainMs, writeTimeoutMs }, 'daemon.drain_ms is shorter than a write may take');
}

/** Stores the settings that the views of finance_v1 read, and the fee rules. */
async function storeSettings({ db, clock }: Database, config: Config): Promise<void> {
  const staleAfterMs = String(config.reports.stale_after_ms);
  const ledger = ledgerSettings(config);
  await setFeeRules(db, ledger, clock.now());
  await setInstallationSetting(db, LEDGER_SETTING, ledgerSetting(ledger), clock.now());
  await setInstallationSetting(db, STALE_AFTER_SETTING, staleAfterMs, clock.now());
  const { time_zone: timeZone } = config.reports.reconciliation;
  await setInstallationSetting(db, TIME_ZONE_SETTING, timeZone, clock.now());
}

/** Serves the metrics alone, until the daemon has stopped. */
async function serveMetrics({ gateway, makeMetricsApi }: Built, host: string, port: number) {
  const server = makeHttpServer({ gateway, api: makeMetricsApi(), roles: [] });
  const origin = await listen(server, { host, port, setting: 'TALLYHOOK_METRICS_PORT' });
  return { server, url: `${origin}/metrics` };
}

/** Returns the origin. @param at.setting the one that has the port */
function listen(
  server: Server,
  at: { host: string; port: number; setting: string },
): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === 'EADDRINUSE'
          ? `is in use; set ${at.setting} to another or to 0`
          : error.code;
      reject(new Failure('bad_setting', `${at.host}:${at.port} ${reason}`));
    });
    server.listen(at.port, at.host, () => {
      const { address, port, family } = server.address() as AddressInfo;
      const host = address === '0.0.0.0' || address === '::' ? 'localhost' : address;
      const shown = family === 'IPv6' && host !== 'localhost' ? `[${host}]` : host;
      resolve(`http://${shown}:${port}`);
    });
  });
}

async function closeServer(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
}

interface StopDeps {
  config: Config;
  log: Log;
  server: DrainableServer;
  metrics: { server: Server } | undefined;
  built: Built;
  service: Service;
  database: Database;
  stopCron: () => Promise<void>;
}

/** How long clients may take to read the answers that are given at the end of a stop. */
const FLUSH_MS = 1_000;

/**
 * Stops in reverse order of the pipeline: readiness, so that balancers send no more requests; then
 * the listener; then requests and workers, once they have ended; then what they use.
 */
async function stop(deps: StopDeps): Promise<void> {
  const { config, log, server, metrics, built, service, database, stopCron } = deps;
  log.info('stopping');
  const { unready_ms: unreadyMs, drain_ms: drainMs } = config.daemon;
  built.leaving.abort();
  // What it reads of a former service must not be recorded any longer than necessary.
  await pause(unreadyMs, built.heartbeat.moved);
  const delivered = built.delivery.stop(drainMs);
  const drain = async () => {
    built.stopping.abort();
    built.operations.close();
    // The gateway also waits for writes whose caller is gone.
    await Promise.all([server.drain(), built.gateway.drain(), stopCron()]);
    await built.schedule.stop();
    await built.upstream.close();
    return 'drained';
  };
  const result = await withDeadline(drain(), drainMs, () => 'timeout');
  const cut = built.gateway.cut();
  if (cut > 0) {
    log.warn({ writes: cut }, 'stopped before the answers of writes; their outcomes are unknown');
    await withDeadline(server.drain(), FLUSH_MS, () => {});
  }
  server.closeAllConnections();
  if (metrics) await closeServer(metrics.server);
  await delivered;
  await service.close();
  await retire(built, database).catch((error: unknown) => {
    log.warn({ err: error }, 'the leases of this daemon were not released; they expire');
  });
  await database.close();
  log.info({ result }, 'stopped');
}

/** Ends the registration, after the last heartbeat: a later one would make it again. */
async function retire({ heartbeat, daemon }: Built, { db, clock }: Database): Promise<void> {
  await heartbeat.end();
  await retireDaemon(db, daemon, clock.now());
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}

/** Ensures that a key with every scope exists; returns it if it was generated now. */
async function ensureAdminKey(keys: Keys, config: Config, log: Log): Promise<string | undefined> {
  if (config.adminKey) {
    if ((await keys.ensureAdmin(config.adminKey)) === 'invalid')
      log.warn('ADMIN_KEY is a key that is revoked or has expired; set a valid one');
    return undefined;
  }
  if ((await keys.list()).length > 0) return undefined;
  const { secret } = await keys.create({ name: 'admin', owner: 'admin', scopes: SCOPES });
  return secret;
}
