/**
 * The composition root: makes every stage of a daemon in the order of the pipeline and passes each
 * one its deps. No work starts before `schedule.start()`.
 */
import { makeApi, makeMetricsApi, readReport } from '../api/api.ts';
import { makeConsole, makeSessionRoutes } from '../console/console.ts';
import { makeRefusals } from '../db/checks/refusals.ts';
import type { Tx } from '../db/connect.ts';
import { registerDaemon } from '../db/leases.ts';
import { readMigrations } from '../db/migrate.ts';
import { makeGateway } from '../gateway/gateway.ts';
import { makeImports } from '../imports/imports.ts';
import { type Instant, pause, systemClock } from '../kernel/clock.ts';
import { makeTrustedProxies } from '../kernel/http/trusted-proxies.ts';
import { makeIds } from '../kernel/ids.ts';
import { systemRandom } from '../kernel/random.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import { makeMetrics, measurePools } from '../kernel/telemetry/metrics.ts';
import type { Wake } from '../kernel/workers.ts';
import { makeAudit, makeKeys, makeSessions } from '../keys/keys.ts';
import { listIncludedInOpenings, makeLedger, makeOperatorMappings } from '../ledger/ledger.ts';
import {
  addWallets,
  availableSince,
  expedite,
  makeObserver,
  makeQuotaStore,
  targetName,
} from '../observer/observer.ts';
import {
  findByIdempotencyKey,
  makeDecisions,
  makeOperations,
  makeReportedOperations,
} from '../operations/operations.ts';
import { makeConsumers, makeOutbox, type OwnOutbox } from '../outbox/outbox.ts';
import {
  feeRuleAnnouncement,
  makeAlerts,
  makeDrifts,
  makeReconciler,
} from '../reconciler/reconciler.ts';
import { makePeriods, makeReports } from '../reports/reports.ts';
import { openUpstream } from '../upstream/upstream.ts';
import { makeWebhooks } from '../webhooks/webhooks.ts';
import type { Config } from './config/config.ts';
import {
  alertSettings,
  decisionSettings,
  firstPollSettings,
  gatewaySettings,
  ledgerSettings,
  observerSettings,
  operationsSettings,
  reconcilerSettings,
  reportSettings,
  signInSettings,
  webhookSettings,
} from './config/stage-settings.ts';
import type { Database } from './database.ts';
import { makeSupervisor } from './delivery/supervisor.ts';
import { makeHeartbeat } from './heartbeat.ts';
import { makeIdentityProof } from './identity.ts';
import { openProvedKeys } from './master-key.ts';
import { makePreImages } from './observations/first-poll.ts';
import { recordPassiveReads } from './observations/passive.ts';
import { type Service, upstreamSettings } from './service.ts';
import { makeSchedule } from './workers/schedule.ts';
import { coalesce, makeNotifier, makeWakeUps } from './workers/wake-up.ts';
import { makeWorkers } from './workers/workers.ts';

export type Built = Awaited<ReturnType<typeof build>>;
type Base = Awaited<ReturnType<typeof makeBase>>;
type Stages = ReturnType<typeof makeStages>;

/** Makes every stage of one daemon. */
export async function build(config: Config, database: Database, service: Service, log: Log) {
  const base = await makeBase(config, database, service, log);
  const { workersDb, peopleDb, clock, daemon, metrics, keys, upstream, delivery } = base;
  const { wakeUps } = base;
  const { wake } = wakeUps;
  const stages = makeStages(config, base, service, wake);
  const gateway = buildGateway(config, base, stages, wake);
  const feed = makeNotifier();
  const schedule = makeSchedule({
    clock,
    log,
    metrics,
    wakeUps,
    passTimeoutMs: config.daemon.worker_pass_timeout_ms,
    workers: makeWorkers({
      ...stages,
      config,
      db: workersDb,
      reads: base.reads,
      log,
      metrics,
      heartbeat: base.heartbeat,
      daemon,
      gateway,
      feed,
      wake,
      sampleWrite: service.sampleWrite,
    }),
  });
  const leaving = new AbortController();
  const stopping = new AbortController();
  const audit = makeAudit({ db: peopleDb, clock });
  const { encryption } = base;
  const sessions = makeSessions({ clock, encryption, random: systemRandom });
  const apiDeps = {
    ...stages,
    db: peopleDb,
    clock,
    log,
    metrics: config.http.metrics_port === null ? metrics : undefined,
    keys,
    sessions,
    upstream,
    wake,
    delivery,
    audit,
    roles: config.daemon.roles,
    migrations: await readMigrations(),
    nextEvent: feed.wait,
    leaving: leaving.signal,
    stopping: stopping.signal,
    staleAfterMs: config.reports.stale_after_ms,
    feedWaitMaxMs: config.http.feed_wait_max_ms,
    bodyBytesMax: config.http.body_bytes_max,
    settings: config.effective,
    basePath: config.http.base_path,
    consoleUrl: config.reports.console_url ?? undefined,
    trusted: base.trusted,
    isAlive: base.heartbeat.isAlive,
    refusals: base.refusals,
  };
  const api = makeApi(apiDeps);
  const signIn = signInSettings(config);
  const { heartbeat } = base;
  const people = { keys, sessions, trusted: base.trusted };
  const page = makeConsole({
    basePath: config.http.base_path,
    signIn: signIn && { settings: signIn, ...people, audit, clock, log, encryption },
  });
  if (config.daemon.roles.includes('api')) {
    const { time_zone: timeZone } = config.reports.reconciliation;
    const basePath = config.http.base_path;
    api.route('/', makeSessionRoutes({ ...people, basePath, timeZone }));
    api.route('/', page);
  }
  const { operations } = stages;
  return {
    daemon,
    delivery,
    heartbeat,
    keys,
    upstream,
    operations,
    schedule,
    wake,
    gateway,
    api,
    makeMetricsApi: () => makeMetricsApi({ ...apiDeps, metrics }),
    leaving,
    stopping,
  };
}

/** What all stages rest on: identity, metrics, encryption, keys, and the client of the service. */
async function makeBase(config: Config, database: Database, service: Service, log: Log) {
  const { db, workersDb, peopleDb, reads, clock } = database;
  const random = systemRandom;
  const ids = makeIds(clock, random);
  const metrics = makeMetrics();
  measurePools(metrics, { gateway: db, workers: workersDb, people: peopleDb });
  const { key, former, both: encryption } = await openProvedKeys(database, config, random);
  const { heartbeat_timeout_ms: aliveMs, roles } = config.daemon;
  for (const role of roles) metrics.role.set({ role }, 1);
  const daemon = await registerDaemon(db, ids.next('dmn'), clock.now(), aliveMs, roles);
  const keys = makeKeys({ db, clock, random, ids });
  const upstream = await openUpstream({
    ...service.address,
    clock,
    random,
    log,
    metrics,
    quota: makeQuotaStore(db),
    settings: upstreamSettings(config),
  });
  const trusted = makeTrustedProxies(config.http.trusted_proxies);
  const identity = makeIdentityProof({ database, dataDir: config.dataDir, log });
  const effectSettings = ledgerSettings(config);
  const operatorMappings = makeOperatorMappings({
    db: peopleDb,
    clock,
    operators: effectSettings.operators,
    observe: pollWallet,
    onMapped: () => wakeUps.wake('ledger'),
  });
  const heartbeat = makeHeartbeat({
    database,
    identity,
    daemon,
    service: service.identity,
    upstream,
    operatorMappings,
    log,
    metrics,
    aliveMs,
    roles: () => roles.filter((role) => role !== 'delivery' || delivery.isRunning()),
  });
  const delivery = makeSupervisor({
    start: {
      kind: 'start',
      databaseUrl: database.url,
      config: { daemon: config.daemon, database: config.database, log: config.log },
      keys: { key, former },
      settings: webhookSettings(config, service.sandboxUrl !== undefined),
    },
    daemons: () => ({ living: heartbeat.living(), delivering: heartbeat.delivering() }),
    log,
    metrics,
  });
  const wakeUps = makeWakeUps({ webhooks: delivery.wake });
  return {
    db,
    workersDb,
    peopleDb,
    reads,
    clock,
    random,
    ids,
    metrics,
    encryption,
    log,
    daemon,
    keys,
    upstream,
    heartbeat,
    refusals: makeRefusals(),
    delivery,
    trusted,
    wakeUps,
    effectSettings,
    operatorMappings,
  };
}

/** Has a wallet polled from now on, and at once. */
async function pollWallet(tx: Tx, addr: string, now: Instant): Promise<void> {
  await addWallets(tx, [addr], now);
  await expedite(tx, new Map([[targetName({ kind: 'wallet', addr }), now]]));
}

/** The stages between the gateway and the API. */
function makeStages(config: Config, base: Base, service: Service, wake: Wake) {
  const { workersDb, peopleDb, reads, clock, random, ids, metrics, encryption, log } = base;
  const { daemon, upstream, heartbeat, effectSettings, operatorMappings } = base;
  const outbox = makeOutbox({ clock, ids });
  const context = { clock, random, ids, metrics, log, daemon, outbox, effectSettings };
  const workers = { ...context, db: workersDb };
  const people = { ...context, db: peopleDb };
  const webhooks = makeWebhooks({
    ...workers,
    peopleDb,
    wallClock: systemClock,
    encryption,
    settings: webhookSettings(config, service.sandboxUrl !== undefined),
    emit: outbox.emit,
    wake: () => wake('webhooks'),
  });
  const operations = makeOperations({
    ...context,
    db: base.db,
    prove: heartbeat.beat,
    settings: operationsSettings(config, effectSettings),
  });
  const deciding = { ...people, ...decisionSettings(config) };
  const decisions = makeDecisions({ ...deciding, pollToken: pollsOf(base) });
  const drifts = makeDrifts({ ...deciding, operations });
  const reportedOperations = makeReportedOperations({
    ...people,
    tokenAppNo: () => upstream.appNo(),
    includedInOpenings: (tx, reported, before) =>
      listIncludedInOpenings(tx, reported, effectSettings, before),
    observe: addWallets,
    onRecorded: wakeAfterOutcome(wake, outbox),
  });
  const imports = makeImports({ ...workers, peopleDb, reportedOperations, readReport });
  const ledger = makeLedger({
    ...workers,
    announceFeeRules: feeRuleAnnouncement(outbox),
    onMovedGives: (tx, keys, now) =>
      expedite(tx, new Map(keys.map((key) => [`wallet:${key}`, now]))),
  });
  const observer = makeObserver({ ...workers, upstream, settings: observerSettings(config) });
  const reconciler = makeReconciler({
    ...workers,
    operations,
    settings: reconcilerSettings(config),
    pendingPolls: observer.pendingPolls,
  });
  const alerts = makeAlerts({ ...workers, observer, settings: alertSettings(config) });
  const reporting = { ...people, reads, settings: reportSettings(config) };
  return {
    outbox,
    webhooks,
    consumers: makeConsumers(people),
    operations,
    decisions,
    drifts,
    reportedOperations,
    operatorMappings,
    imports,
    ledger,
    observer,
    reconciler,
    alerts,
    reports: makeReports(reporting),
    periods: makePeriods(reporting),
  };
}

/** Has a token polled after a decision, which is committed: a failure is only logged. */
function pollsOf({ peopleDb, clock, log }: Base): (token: TokenRef) => Promise<void> {
  return (token) => {
    const due = new Map([[targetName({ kind: 'token', ...token }), clock.now()]]);
    const onError = (err: unknown) => log.warn({ err }, 'a decided token is polled later');
    return peopleDb.single((q) => expedite(q, due)).catch(onError);
  };
}

type TokenRef = { contractId: bigint; tokenId: bigint };

function buildGateway(config: Config, base: Base, stages: Stages, wake: Wake) {
  const { db, clock, log, metrics, keys, upstream, heartbeat, refusals, trusted } = base;
  const { operations, observer, outbox } = stages;
  return makeGateway({
    operations,
    upstream,
    clock,
    log,
    keys,
    metrics,
    addressOf: trusted.addressOf,
    ...gatewaySettings(config),
    preImage: makePreImages({
      db,
      observer,
      upstream,
      clock,
      pause,
      log,
      ...firstPollSettings(config, base.effectSettings),
    }),
    // `single` bounds the wait of the caller.
    findByIdempotencyKey: (owner, key) => db.single((q) => findByIdempotencyKey(q, owner, key)),
    serviceDown: async () => (await db.single(availableSince)) === Number.POSITIVE_INFINITY,
    isAlive: heartbeat.isAlive,
    refusals,
    prove: heartbeat.beat,
    onConcluded: wakeAfterOutcome(wake, outbox),
    onRead: recordPassiveReads(observer, log),
  });
}

/**
 * Wakes the later stages after a recorded outcome. Webhooks are woken soonest, because subscribers
 * wait for them; the gaps of the others make each commit cover more outcomes.
 */
function wakeAfterOutcome(wake: Wake, outbox: OwnOutbox): () => void {
  const deliver = coalesce(5, () => {
    if (outbox.hasRecentDeliveries()) wake('webhooks');
  });
  const number = coalesce(25, () => wake('sequencer'));
  const postAndPoll = coalesce(250, () => wake('ledger', 'observer'));
  return () => {
    deliver();
    number();
    postAndPoll();
  };
}
