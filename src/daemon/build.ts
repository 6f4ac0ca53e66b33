/**
 * The composition root: every stage is made here, in the order of the pipeline, and given what it needs.
 * It reads like the tree. Nothing starts to work before `schedule.start()`.
 */
import { makeApi } from '../api/api.ts';
import { makeConsole } from '../console/console.ts';
import { type Daemon, enrolDaemon } from '../db/leases.ts';
import { readMigrations } from '../db/migrate.ts';
import { makeGateway } from '../gateway/gateway.ts';
import { makeJournal } from '../journal/journal.ts';
import { systemChance } from '../kernel/chance.ts';
import { makeIds } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { makeMetrics } from '../kernel/metrics.ts';
import { makeSeal } from '../kernel/seal.ts';
import { makeKeys } from '../keys/keys.ts';
import { makeLedger } from '../ledger/ledger.ts';
import { makeObserver, makeQuotaKeeper } from '../observer/observer.ts';
import { makeOutbox } from '../outbox/outbox.ts';
import { makeReconciler } from '../reconciler/reconciler.ts';
import { makeReports } from '../reports/reports.ts';
import { openUpstream } from '../upstream/upstream.ts';
import { makeWebhooks } from '../webhooks/webhooks.ts';
import type { Config } from './config.ts';
import type { Database } from './database.ts';
import { makeHeartbeat } from './heartbeat.ts';
import { makeNotifier } from './notifier.ts';
import { observedRead, preImageFrom } from './observed.ts';
import { makeSchedule } from './schedule.ts';
import { masterKeyOf } from './secrets.ts';
import type { Service } from './service.ts';
import {
  booksOf,
  gatewaySettings,
  observerSettings,
  reconcilerSettings,
  reportSettings,
  upstreamSettings,
  webhookSettings,
} from './stage-settings.ts';
import { workersOf } from './workers.ts';

export type Built = Awaited<ReturnType<typeof build>>;

/** Makes every stage of one daemon. */
export async function build(config: Config, database: Database, service: Service, log: Log) {
  const { db, clock } = database;
  const chance = systemChance;
  const ids = makeIds(clock, chance);
  const metrics = makeMetrics();
  const seal = makeSeal(await masterKeyOf(config, chance), chance);
  const daemon: Daemon = await enrolDaemon(
    db,
    ids.next('dmn'),
    clock.now(),
    config.daemon.alive_ms,
  );
  const keys = makeKeys({ db, clock, chance, ids });
  const upstream = await openUpstream({
    ...service.address,
    clock,
    chance,
    log,
    metrics,
    quota: makeQuotaKeeper(db, clock),
    settings: upstreamSettings(config),
  });
  const books = booksOf(config);
  const webhooks = makeWebhooks({
    db,
    clock,
    chance,
    ids,
    seal,
    log,
    metrics,
    settings: webhookSettings(config, service.sandboxUrl !== undefined),
    emit: (tx, drafts) => outbox.emit(tx, drafts),
    wake: () => schedule.wake('webhooks'),
    daemons: () => heartbeat.living(),
  });
  const outbox = makeOutbox({ clock, ids, fanOut: webhooks.fanOut });
  const journal = makeJournal({ db, clock, ids, daemon, outbox });
  const ledger = makeLedger({ db, daemon, clock, books, log, metrics });
  const observer = makeObserver({
    db,
    clock,
    chance,
    ids,
    upstream,
    outbox,
    metrics,
    settings: observerSettings(config),
  });
  const reconciler = makeReconciler({
    db,
    daemon,
    ids,
    journal,
    books,
    outbox,
    settings: reconcilerSettings(config),
  });
  const reports = makeReports({ db, clock, ids, outbox, settings: reportSettings(config) });
  const heartbeat = makeHeartbeat({
    database,
    daemon,
    upstream,
    log,
    aliveMs: config.daemon.alive_ms,
  });
  const sequenced = makeNotifier();
  const schedule = makeSchedule({
    workers: workersOf({
      config,
      db,
      journal,
      ledger,
      observer,
      reconciler,
      webhooks,
      reports,
      heartbeat,
      sequenced,
      wake: (...names) => schedule.wake(...names),
    }),
    clock,
    log,
    metrics,
    passDeadlineMs: config.daemon.pass_deadline_ms,
  });
  const gateway = makeGateway({
    journal,
    upstream,
    keys,
    clock,
    log,
    metrics,
    ...gatewaySettings(config),
    preImage: preImageFrom(db),
    isAlive: heartbeat.isAlive,
    concluded: () => schedule.wake('ledger', 'observer', 'sequencer', 'webhooks'),
    observed: observedRead(observer, log),
  });
  const stopping = new AbortController();
  const api = makeApi({
    db,
    clock,
    log,
    metrics,
    keys,
    observer,
    upstream,
    webhooks,
    reports,
    migrations: await readMigrations(),
    nextEvent: sequenced.next,
    stopping: stopping.signal,
    feedWaitMaxMs: config.http.feed_wait_max_ms,
    bodyBytesMax: config.http.body_bytes_max,
  });
  api.route('/', makeConsole());
  return {
    daemon,
    metrics,
    keys,
    upstream,
    webhooks,
    journal,
    ledger,
    observer,
    reconciler,
    reports,
    heartbeat,
    schedule,
    gateway,
    api,
    stopping,
  };
}
