/**
 * The service that this daemon works with: the one of the environment, or a sandbox in the same
 * process. A database stores which service it belongs to and is refused for another one.
 */
import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db, Queryable } from '../db/connect.ts';
import { findInstallationSetting, fixInstallationSetting } from '../db/leases.ts';
import { platform } from '../db/platform.ts';
import type { Clock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Random } from '../kernel/random.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { SampleWrite } from '../sandbox/sandbox.ts';
import type { UpstreamSettings } from '../upstream/upstream.ts';
import type { Config, ServiceAddress } from './config/config.ts';
import { proxySettings } from './config/stage-settings.ts';

/** The stored setting: the identity of the service that the database belongs to. */
export const SERVICE_SETTING = 'service';

/** The credentials of the sandbox; not a secret. */
const SANDBOX_CLIENT = { clientId: 'sandbox-client', clientSecret: 'sandbox-secret' };

/** For programs other than this daemon, whose own requests have ended before. */
const SANDBOX_DRAIN_MS = 1_000;

export interface Service {
  address: ServiceAddress;
  /** Set when the sandbox runs in this process. */
  sandboxUrl: string | undefined;
  /** Draws writes of a sample app, so that a new installation has data; only with the sandbox. */
  sampleWrite: (() => SampleWrite | undefined) | undefined;
  /** Stored in the database; contains no secret. */
  identity: string;
  close(): Promise<void>;
}

/** Starts the sandbox if no service is configured. @throws Failure `bad_setting` */
export async function openService(
  config: Config,
  deps: { clock: Clock; random: Random; log: Log },
): Promise<Service> {
  if (config.service) {
    const { baseUrl, authUrl, txUrl, clientId } = config.service;
    const identity = [...new Set([baseUrl, authUrl, txUrl]), `client ${clientId}`].join(', ');
    const none = { sandboxUrl: undefined, sampleWrite: undefined };
    return { address: config.service, ...none, identity, close: async () => {} };
  }
  const directory = join(config.dataDir, 'sandbox');
  const world = await worldName(directory, deps.random);
  const release = await platform.tryLock('sandbox', await realpath(directory));
  if (!release) {
    throw new Failure(
      'bad_setting',
      `another daemon runs the sandbox in ${directory}; stop it, or set UPSTREAM_BASE_URL`,
    );
  }
  const { startSandbox } = await import('../sandbox/sandbox.ts');
  const sandbox = await startSandbox({
    ...SANDBOX_CLIENT,
    seed: config.sandbox.seed,
    directory,
    clock: deps.clock,
    log: deps.log,
    // Its own traffic would be made elsewhere, and each change of a watched wallet a drift.
    backgroundTraffic: false,
    settleMs: config.sandbox.settle_ms,
  });
  return {
    address: { baseUrl: sandbox.url, authUrl: sandbox.url, txUrl: sandbox.url, ...SANDBOX_CLIENT },
    sandboxUrl: sandbox.url,
    sampleWrite: config.sandbox.background_traffic ? sandbox.sampleWrite : undefined,
    identity: `the sandbox world ${world}`,
    async close() {
      await sandbox.close(SANDBOX_DRAIN_MS);
      await release();
    },
  };
}

/** Generated with the sandbox's folder, so that a new world is not taken for the former one. */
async function worldName(directory: string, random: Random): Promise<string> {
  await mkdir(directory, { recursive: true });
  const path = join(directory, 'world-name');
  const name = Buffer.from(random.bytes(6)).toString('hex');
  await writeFile(path, name, { flag: 'wx' }).catch(() => {});
  return (await readFile(path, 'utf8')).trim();
}

/** @throws Failure `bad_setting` when the database belongs to another service */
export async function checkService(db: Db, service: Service, clock: Clock): Promise<void> {
  const { identity } = service;
  const stored = await fixInstallationSetting(db, SERVICE_SETTING, identity, clock.now());
  if (stored !== identity) throw otherService(stored, identity);
}

/** Why the service is no longer the one of the database, if `service move` gave it another. */
export async function findMove(db: Queryable, identity: string): Promise<Failure | undefined> {
  const stored = (await findInstallationSetting(db, SERVICE_SETTING))?.value ?? identity;
  return stored === identity ? undefined : otherService(stored, identity);
}

function otherService(stored: string, identity: string): Failure {
  return new Failure(
    'bad_setting',
    `this database belongs to another service (${stored}), not to ${identity}; ` +
      'use one database or DATA_DIR per service; if it is the same one at another address, ' +
      'run npx tallyhook service move',
  );
}

/** The settings of the client of the service; the doctor needs no other stage. */
export function upstreamSettings(config: Config): UpstreamSettings {
  const { upstream } = config;
  const { budget_per_s: budget, initial_rate_per_s: initial } = upstream;
  return {
    readTimeoutMs: upstream.read_timeout_ms,
    writeTimeoutMs: upstream.write_timeout_ms,
    connectTimeoutMs: upstream.connect_timeout_ms,
    proxies: proxySettings(config, upstream.proxy),
    bodyBytesMax: upstream.body_bytes_max,
    budgetPerS: budget === 'auto' ? null : budget,
    initialRatePerS: budget === 'auto' ? initial : Math.min(initial, budget),
    concurrencyMax: upstream.poll_concurrency_max,
    steadyShare: upstream.steady_share,
    waitingMax: upstream.poll_queue_max,
    waitMs: upstream.poll_queue_timeout_ms,
    forwardsMax: upstream.app_concurrency_max,
  };
}
