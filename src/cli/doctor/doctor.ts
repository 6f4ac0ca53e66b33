/**
 * `tallyhook doctor`: checks configuration, database and service, one line per check. Like a start,
 * it makes missing partitions and corrects a step of the database's clock; it changes nothing else.
 */
import {
  type Config,
  checkService,
  type Database,
  masterKeyTools,
  openService,
  upstreamSettings,
  verificationTools,
} from '../../daemon/daemon.ts';
import { findMissingGuards } from '../../db/checks/guards.ts';
import { listLiving } from '../../db/leases.ts';
import { isoText, monotonicMs, pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { systemRandom } from '../../kernel/random.ts';
import { makeLog, printLine } from '../../kernel/telemetry/log.ts';
import { makeMetrics } from '../../kernel/telemetry/metrics.ts';
import { makeQuotaStore } from '../../observer/observer.ts';
import { findFreeze } from '../../operations/operations.ts';
import { countAlerts } from '../../reconciler/reconciler.ts';
import { ROLES, type Role } from '../../resources/admin/status.ts';
import { faultText } from '../../resources/faults.ts';
import { type Observation, openUpstream, type Upstream } from '../../upstream/upstream.ts';
import { withDatabase } from '../installation.ts';
import {
  checkCommits,
  checkConnections,
  checkHeartbeats,
  checkLogin,
  checkReplica,
} from './postgres.ts';

interface Check {
  check: string;
  ok: boolean;
  found: string;
}

export async function runDoctor(options: { json?: true }): Promise<number> {
  const checks: Check[] = [];
  const run = async (check: string, work: () => Promise<string>) => {
    try {
      checks.push({ check, ok: true, found: await work() });
    } catch (error) {
      const found = error instanceof Failure ? (error.detail ?? error.code) : 'failed';
      checks.push({ check, ok: false, found });
    }
  };
  await run('configuration and database', () =>
    withDatabase(async (database, config) => {
      await run('login', () => checkLogin(database, config));
      await run('connections', () => checkConnections(database, config));
      await run('commits', () => checkCommits(database));
      await run('heartbeats', () => checkHeartbeats(database));
      await run('replica', () => checkReplica(database, config));
      await run('guards', () => checkGuards(database));
      await run('ledger', () => checkLedger(database));
      await run('clock', () => checkClock(database));
      await run('master key', () => checkMasterKey(database, config));
      await run('writes', () => checkWrites(database));
      await run('roles', () => checkRoles(database));
      await run('alerts', () => checkAlerts(database, config));
      await run('service', () => checkUpstream(database, config));
      return config.databaseUrl
        ? 'external Postgres, migrated'
        : `embedded Postgres in ${config.dataDir}`;
    }),
  );
  if (options.json) printLine(jsonText({ ok: checks.every((c) => c.ok), checks }));
  else
    for (const { check, ok, found } of checks)
      printLine(`${ok ? 'ok  ' : 'FAIL'}  ${check}: ${found}`);
  return checks.every((c) => c.ok) ? 0 : 1;
}

async function checkGuards({ db }: Database): Promise<string> {
  const missing = await findMissingGuards(db);
  if (missing.length > 0) throw new Failure('bad_setting', `missing: ${missing.join(', ')}`);
  return 'all enabled';
}

/** The newest verification of the hash chain. */
async function checkLedger({ db }: Database): Promise<string> {
  const { findVerification } = await verificationTools();
  const last = await findVerification(db);
  if (!last) return 'not verified yet; npx tallyhook verify does it now';
  const { findings, transactions, endedAt } = last;
  if (findings > 0)
    throw new Failure(
      'bad_setting',
      `${findings} findings on ${isoText(endedAt)}; npx tallyhook verify prints them`,
    );
  return `${transactions} transactions verified on ${isoText(endedAt)}`;
}

async function checkMasterKey(database: Database, config: Config): Promise<string> {
  const { openMasterKeys } = await masterKeyTools();
  const { provedSince } = await openMasterKeys(database, config, systemRandom);
  return provedSince === undefined ? 'not used yet' : 'decrypts the secrets of this database';
}

async function checkWrites({ db }: Database): Promise<string> {
  const freeze = await findFreeze(db);
  if (!freeze) return 'allowed';
  const { cause, frozenAt, frozenBy, reason } = freeze;
  const since = `frozen since ${isoText(frozenAt)} by ${frozenBy}: ${reason}`;
  const end =
    cause === 'restored'
      ? 'npx tallyhook doctor --restored compares, and says how to allow them again'
      : 'npx tallyhook unfreeze --reason … allows them again';
  throw new Failure('bad_setting', `${since}; ${end}`);
}

/** How long a daemon may take from its start until its process of webhooks is ready. */
const STARTING_MS = 5_000;
const RETRY_MS = 500;

/** Every role needs a living daemon, unless none runs at all. */
async function checkRoles({ db, clock }: Database): Promise<string> {
  const since = monotonicMs();
  let missing: Role[];
  do {
    const living = await listLiving(db, clock.now());
    if (living.length === 0) return 'no daemon is running';
    missing = ROLES.filter((role) => !living.some((roles) => roles.includes(role)));
    if (missing.length === 0) return `${living.length} living daemon(s) perform every role`;
    await pause(RETRY_MS);
  } while (monotonicMs() - since < STARTING_MS);
  throw new Failure(
    'bad_setting',
    `no living daemon performs ${missing.join(', ')}; start one with TALLYHOOK_ROLES=` +
      `${missing.join(',')}, or see the log of the one that has it`,
  );
}

/** The rules of the configuration and what is raised; only an invalid rule is an error. */
async function checkAlerts({ db }: Database, { alerts }: Config): Promise<string> {
  const raised = (await countAlerts(db)).map(({ rule, count }) => `${rule} (${count})`);
  return `${alerts.rules.length} rules; raised: ${raised.join(', ') || 'none'}`;
}

async function checkClock({ clock }: Database): Promise<string> {
  const time = `database time is ${isoText(clock.now())}`;
  const correctionMs = clock.correctionMs();
  return correctionMs === 0
    ? time
    : `${time}, of which ${correctionMs} ms correct a step of the clock of its server`;
}

/** Reads the maintenance status and fetches a client token. */
async function checkUpstream(database: Database, config: Config): Promise<string> {
  if (!config.service) return 'not configured; the daemon runs the sandbox';
  return withUpstream(database, config, async (upstream, identity) => {
    const maintenance = await upstream.maintenance();
    if (maintenance.result !== 'seen')
      throw new Failure('upstream_unreadable', `maintenance status: ${reasonOf(maintenance)}`);
    const token = await upstream.checkToken();
    if (token.result !== 'seen')
      throw new Failure('upstream_unreadable', `client token: ${reasonOf(token)}`);
    const valid = token.record.active === false ? 'inactive' : 'valid';
    return `${identity}: ${maintenance.record.status}, client token ${valid}`;
  });
}

function reasonOf(observation: Observation<unknown>): string {
  if (observation.result === 'absent') return observation.message;
  if (observation.result === 'seen') return observation.result;
  return faultText(observation.reason ?? observation.cause);
}

/**
 * Opens the configured service, runs the work, and closes it.
 * @param ofAny also when the database belongs to another service
 * @throws Failure `bad_setting`
 */
export async function withUpstream<T>(
  { db, clock }: Database,
  config: Config,
  work: (upstream: Upstream, identity: string) => Promise<T>,
  ofAny = false,
): Promise<T> {
  const log = makeLog('error');
  const opened = await openService(config, { clock, random: systemRandom, log });
  if (!ofAny) await checkService(db, opened, clock);
  const upstream = await openUpstream({
    ...opened.address,
    clock,
    random: systemRandom,
    log,
    metrics: makeMetrics(),
    quota: makeQuotaStore(db),
    settings: upstreamSettings(config),
  });
  try {
    return await work(upstream, opened.identity);
  } finally {
    await upstream.close();
  }
}
