/**
 * The composition root: every stage is made here, in the order of the pipeline, and given what it
 * needs. It reads like the tree. Nothing starts to work before `schedule.start()`.
 */
import { makeApi } from '../api/api.ts';
import { makeConsole } from '../console/console.ts';
import { type Daemon, registerDaemon } from '../db/leases.ts';
import { readMigrations } from '../db/migrate.ts';
import { makeGateway } from '../gateway/gateway.ts';
import { makeEncryption } from '../kernel/encryption.ts';
import { makeIds } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { makeMetrics } from '../kernel/metrics.ts';
import { systemRandom } from '../kernel/random.ts';
import { makeKeys } from '../keys/keys.ts';
import { listAbsorbed, makeLedger } from '../ledger/ledger.ts';
import { addWallets, availableSince, makeObserver, makeQuotaKeeper } from '../observer/observer.ts';
import {
  findByIdempotencyKey,
  makeDecisions,
  makeOperations,
  makeReportedOperations,
} from '../operations/operations.ts';
import { makeOutbox } from '../outbox/outbox.ts';
import { makeReconciler } from '../reconciler/reconciler.ts';
import { makeReports } from '../reports/reports.ts';
import { openUpstream } from '../upstream/upstream.ts';
import { makeWebhooks, type Webhooks } from '../webhooks/webhooks.ts';
import type { Config } from './config/config.ts';
import { masterKeyOf } from './config/secrets.ts';
import {
  booksOf,
  firstPollSettings,
  gatewaySettings,
  observerSettings,
  operationsSettings,
  reconcilerSettings,
  reportSettings,
  upstreamSettings,
  webhookSettings,
} from './config/stage-settings.ts';
import type { Database } from './database.ts';
import { preImageFrom } from './first-poll.ts';
import { makeHeartbeat } from './heartbeat.ts';
import { observedRead } from './passive-observations.ts';
import type { Service } from './service.ts';
import { gently } from './workers/coalesce.ts';
import { makeNotifier } from './workers/notifier.ts';
import { makeSchedule } from './workers/schedule.ts';
import { workersOf } from './workers/workers.ts';

export type Built = Awaited<ReturnType<typeof build>>;

type Wake = (...names: string[]) => void;

/** Makes every stage of one daemon. */
export async function build(config: Config, database: Database, service: Service, log: Log) {
  const base = await foundation(config, database, service, log);
  let ring: Wake = () => {};
  const wake: Wake = (...names) => ring(...names);
  const stages = pipeline(config, base, service, wake);
  const sequenced = makeNotifier();
  const gateway = makeGateway({
    ...base,
    ...stages,
    ...gatewaySettings(config),
    preImage: preImageFrom({ ...base, ...stages, ...firstPollSettings(config) }),
    // With the deadline of `single`: a caller waits for them.
    heldBy: (owner, key) => base.db.single((q) => findByIdempotencyKey(q, owner, key)),
    serviceDown: async () => (await base.db.single(availableSince)) === Number.POSITIVE_INFINITY,
    isAlive: base.heartbeat.isAlive,
    concluded: concludedWakes(wake, stages.webhooks),
    observed: observedRead(stages.observer, log),
  });
  const schedule = makeSchedule({
    ...base,
    workers: workersOf({ config, ...base, ...stages, gateway, sequenced, wake }),
    passDeadlineMs: config.daemon.pass_deadline_ms,
  });
  ring = schedule.wake;
  const stopping = new AbortController();
  const api = makeApi({
    ...base,
    ...stages,
    migrations: await readMigrations(),
    nextEvent: sequenced.next,
    wake,
    stopping: stopping.signal,
    feedWaitMaxMs: config.http.feed_wait_max_ms,
    bodyBytesMax: config.http.body_bytes_max,
  });
  api.route('/', makeConsole());
  return { ...base, ...stages, schedule, gateway, api, stopping };
}

/**
 * Who is told how soon: subscribers at once where there are any, the pull feed, the books and the
 * looks in batches worth a commit.
 */
function concludedWakes(wake: Wake, webhooks: Webhooks): () => void {
  const tell = gently(5, () => {
    if (webhooks.isStirring()) wake('webhooks');
  });
  const number = gently(25, () => wake('sequencer'));
  const settle = gently(250, () => wake('ledger', 'observer'));
  return () => {
    tell();
    number();
    settle();
  };
}

/**
 * What every stage stands on: time, chance, names, secrets, this daemon's life, the way to the
 * service.
 */
async function foundation(config: Config, database: Database, service: Service, log: Log) {
  const { db, clock } = database;
  const random = systemRandom;
  const ids = makeIds(clock, random);
  const metrics = makeMetrics();
  const seal = makeEncryption(await masterKeyOf(config, random), random);
  const aliveMs = config.daemon.alive_ms;
  const daemon: Daemon = await registerDaemon(db, ids.next('dmn'), clock.now(), aliveMs);
  const keys = makeKeys({ db, clock, random, ids });
  const upstream = await openUpstream({
    ...service.address,
    clock,
    random,
    log,
    metrics,
    quota: makeQuotaKeeper(db, clock),
    settings: upstreamSettings(config),
  });
  const heartbeat = makeHeartbeat({ database, daemon, upstream, log, aliveMs });
  return { db, clock, random, ids, metrics, seal, log, daemon, keys, upstream, heartbeat };
}

/** The stages, from what was asked to what is told. */
function pipeline(
  config: Config,
  base: Awaited<ReturnType<typeof foundation>>,
  service: Service,
  wake: Wake,
) {
  const webhooks = makeWebhooks({
    ...base,
    settings: webhookSettings(config, service.sandboxUrl !== undefined),
    emit: (tx, drafts) => outbox.emit(tx, drafts),
    wake: () => wake('webhooks'),
    daemons: base.heartbeat.living,
  });
  const outbox = makeOutbox({ ...base, fanOut: webhooks.fanOut });
  const given = { ...base, outbox, books: booksOf(config) };
  const operations = makeOperations({
    ...given,
    settings: operationsSettings(config, given.books),
  });
  const decisions = makeDecisions(given);
  const elsewhere = makeReportedOperations({
    ...given,
    absorbed: (tx, operations, before) => listAbsorbed(tx, operations, given.books, before),
    observe: addWallets,
  });
  const ledger = makeLedger(given);
  const observer = makeObserver({ ...given, settings: observerSettings(config) });
  const reconciler = makeReconciler({ ...given, operations, settings: reconcilerSettings(config) });
  const reports = makeReports({ ...given, settings: reportSettings(config) });
  const recorded = { operations, decisions, elsewhere };
  return { webhooks, outbox, ...recorded, ledger, observer, reconciler, reports };
}
