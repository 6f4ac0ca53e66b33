/**
 * Which service this daemon speaks to: the one that the environment names, or the sandbox in the
 * same process. A database remembers the one it watches and refuses another, because two services
 * in one set of books would be worthless.
 */
import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db } from '../db/connect.ts';
import { holdFolder } from '../db/embedded/folder-lock.ts';
import { fixInstallationFact } from '../db/leases.ts';
import type { Clock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Random } from '../kernel/random.ts';
import { startSandbox } from '../sandbox/sandbox.ts';
import type { Config, ServiceAddress } from './config/config.ts';

/** The credentials of the sandbox in the same process; anybody may know them. */
export const SANDBOX_CLIENT = { clientId: 'sandbox-client', clientSecret: 'sandbox-secret' };

export interface Service {
  address: ServiceAddress;
  /** The sandbox's address, when it runs in this process. */
  sandboxUrl: string | undefined;
  /** What the database remembers of it; holds no secret. */
  identity: string;
  close(): Promise<void>;
}

/** Opens the service, starting the sandbox if nothing is configured. */
export async function openService(
  config: Config,
  given: { clock: Clock; random: Random; log: Log },
): Promise<Service> {
  if (config.service) {
    const { baseUrl, authUrl, txUrl, clientId } = config.service;
    const identity = [...new Set([baseUrl, authUrl, txUrl]), `client ${clientId}`].join(', ');
    return { address: config.service, sandboxUrl: undefined, identity, close: async () => {} };
  }
  const directory = join(config.dataDir, 'sandbox');
  const world = await worldName(directory, given.random);
  const release = await holdFolder('sandbox', await realpath(directory));
  if (!release) {
    throw new Failure(
      'bad_setting',
      `another daemon runs the sandbox in ${directory}; stop it, or set UPSTREAM_BASE_URL`,
    );
  }
  const sandbox = await startSandbox({
    ...SANDBOX_CLIENT,
    seed: config.sandbox.seed,
    directory,
    clock: given.clock,
    log: given.log,
    liveliness: config.sandbox.liveliness,
    settleMs: config.sandbox.settle_ms,
  });
  return {
    address: { baseUrl: sandbox.url, authUrl: sandbox.url, txUrl: sandbox.url, ...SANDBOX_CLIENT },
    sandboxUrl: sandbox.url,
    identity: `the sandbox world ${world}`,
    async close() {
      await sandbox.close();
      await release();
    },
  };
}

/**
 * The name of the world in that folder: given once, so that a new world under old books is noticed.
 */
async function worldName(directory: string, random: Random): Promise<string> {
  await mkdir(directory, { recursive: true });
  const path = join(directory, 'world-name');
  const name = Buffer.from(random.bytes(6)).toString('hex');
  await writeFile(path, name, { flag: 'wx' }).catch(() => {});
  return (await readFile(path, 'utf8')).trim();
}

/** @throws Failure `bad_setting` when the database has been watching another service */
export async function insistOnService(db: Db, service: Service, clock: Clock): Promise<void> {
  const stands = await fixInstallationFact(db, 'service', service.identity, clock.now());
  if (stands === service.identity) return;
  throw new Failure(
    'bad_setting',
    `this database watches another service (${stands}), not ${service.identity}; ` +
      'give each service a database or DATA_DIR of its own',
  );
}
