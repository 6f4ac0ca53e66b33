/**
 * One daemon's life: started left to right, stopped right to left. A start either ends ready or
 * leaves nothing behind; a stop lets what is under way finish, within a deadline, and is harmless
 * twice.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { retireDaemon, setInstallationFact } from '../db/leases.ts';
import { withDeadline } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { type Log, makeLog } from '../kernel/log.ts';
import { systemRandom } from '../kernel/random.ts';
import { BOOKS_FACT, booksFact, STALE_AFTER_FACT } from '../reports/reports.ts';
import { type Built, build } from './build.ts';
import type { Config } from './config/config.ts';
import { ensureAdmin } from './config/secrets.ts';
import { booksOf, nudgesOf } from './config/stage-settings.ts';
import { type Database, openDatabase } from './database.ts';
import { serverOf } from './server.ts';
import { insistOnService, openService, type Service } from './service.ts';
import { startNudges } from './workers/cron.ts';

export interface RunningDaemon {
  url: string;
  /** Shown once: the admin key, when this start made it. */
  adminKey: string | undefined;
  sandboxUrl: string | undefined;
  notes: string[];
  log: Log;
  /** Drains and ends, within the deadline of the configuration. Harmless twice. */
  stop(): Promise<void>;
  /** Takes the database driver's one known fault; false when the error is something else. */
  survives(error: unknown): boolean;
}

/** Starts a daemon. @throws Failure `bad_setting` and others; nothing is left running then */
export async function startDaemon(config: Config): Promise<RunningDaemon> {
  const log = makeLog(config.log.level);
  const undo: (() => Promise<void>)[] = [];
  try {
    const database = await openDatabase(config, log);
    undo.push(database.close);
    const { clock } = database;
    const service = await openService(config, { clock, random: systemRandom, log });
    undo.push(service.close);
    await insistOnService(database.db, service, clock);
    await tellFinance(database, config);
    const built = await build(config, database, service, log);
    undo.push(() => built.upstream.close());
    const adminKey = await ensureAdmin(built.keys, config);
    const server = serverOf(built);
    const url = await listen(server, config);
    const stopNudges = startNudges(nudgesOf(config), log, (name) => built.schedule.wake(name));
    undo.push(stopNudges);
    built.schedule.start();
    log.info({ url, daemon: built.daemon.id, service: service.identity }, 'ready');
    return {
      url,
      adminKey,
      sandboxUrl: service.sandboxUrl,
      notes: database.notes,
      log,
      stop: once(() => stop({ config, log, server, built, service, database, stopNudges })),
      survives: (error) => database.db.renewAfter(error),
    };
  } catch (error) {
    for (const step of undo.reverse()) await step().catch(() => {});
    throw error;
  }
}

/** The views of finance_v1 read settings too; they find them in the database. */
async function tellFinance({ db, clock }: Database, config: Config): Promise<void> {
  const staleAfterMs = String(config.reports.stale_after_ms);
  await setInstallationFact(db, BOOKS_FACT, booksFact(booksOf(config)), clock.now());
  await setInstallationFact(db, STALE_AFTER_FACT, staleAfterMs, clock.now());
}

function listen(server: Server, { http }: Config): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE' ? 'is in use; set PORT to another or to 0' : error.code;
      reject(new Failure('bad_setting', `${http.host}:${http.port} ${why}`));
    });
    server.listen(http.port, http.host, () => {
      const { address, port, family } = server.address() as AddressInfo;
      const host = address === '0.0.0.0' || address === '::' ? 'localhost' : address;
      resolve(`http://${family === 'IPv6' && host !== 'localhost' ? `[${host}]` : host}:${port}`);
    });
  });
}

interface Deps {
  config: Config;
  log: Log;
  server: Server;
  built: Built;
  service: Service;
  database: Database;
  stopNudges: () => Promise<void>;
}

/** Right to left: no new requests, then the workers, then what they used. */
async function stop(parts: Deps): Promise<void> {
  const { config, log, server, built, service, database } = parts;
  log.info('stopping');
  const drain = async () => {
    built.stopping.abort();
    server.close();
    server.closeIdleConnections();
    await parts.stopNudges();
    built.operations.close();
    await built.gateway.drain();
    await built.schedule.stop();
    await built.webhooks.drain(config.daemon.drain_ms);
    await built.webhooks.close();
    await built.upstream.close();
    return 'drained';
  };
  const how = await withDeadline(drain(), config.daemon.drain_ms, () => 'late');
  server.closeAllConnections();
  await service.close();
  await retireDaemon(database.db, built.daemon, database.clock.now()).catch((error: unknown) => {
    log.warn({ err: error }, 'this daemon could not say goodbye');
  });
  await database.close();
  log.info({ how }, 'stopped');
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}
