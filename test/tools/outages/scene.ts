/**
 * Where an outage happens: a Postgres, the simulated service behind a relay, daemons as processes,
 * a receiver, and apps that write and read. Every part is real and of its own.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../../src/kernel/clock.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import { type App, makeApp } from '../../harness/app.ts';
import { type Authority, makeAuthority } from '../../harness/certificates.ts';
import {
  CLIENT,
  type DaemonProcess,
  environmentOf,
  spawnDaemon,
  V8_FLAGS,
} from '../../harness/daemon.ts';
import { freePort } from '../../harness/listen.ts';
import { type Receiver, startReceiver } from '../../harness/receiver.ts';
import { startNameServer } from '../hostile/name-server.ts';
import { openPostgres, type Postgres } from './postgres.ts';
import { openRelay, type Relay } from './relay.ts';

export interface ScenePlan {
  /** The roles of each daemon; one with all of them by default. */
  roles?: readonly (readonly string[])[];
  /** Settings beside those of every outage. */
  settings?: Readonly<Record<string, object>>;
  /** A disk of its own for Postgres, of this size. */
  diskMb?: number;
  /** A standby, which the daemons use as their replica. */
  replica?: boolean;
  /** The service speaks TLS. */
  tls?: boolean;
  /** The daemons know the service by a name, which may cease to resolve. */
  named?: boolean;
  /** The clock of Postgres can be stepped. */
  clock?: boolean;
}

/** One daemon, which may be restarted with another environment or heap. */
export interface Unit {
  name: string;
  url: string;
  /** Whether Prometheus has it among its targets. */
  isTarget: boolean;
  process: DaemonProcess | undefined;
  kill(): Promise<void>;
  stop(): Promise<void>;
  /** @throws Error when it does not start */
  start(changes?: { env?: Record<string, string>; flags?: readonly string[] }): Promise<void>;
}

export interface Scene {
  postgres: Postgres;
  sandbox: Sandbox;
  toService: Relay;
  toReceiver: Relay;
  name: { resolves: boolean };
  authority: Authority | undefined;
  receiver: Receiver;
  units: readonly [Unit, ...Unit[]];
  wallets: readonly string[];
  /** The lines of all daemons so far, also of those that were replaced. */
  log(): string[];
  close(): Promise<void>;
}

const ALL = ['gateway', 'api', 'workers', 'delivery'];
const SERVICE_NAME = 'service.test';
const PRELOAD = pathToFileURL(join(import.meta.dirname, 'use-service-name.ts')).href;
const WALLETS = 60;
const PLENTY = 10n ** 15n;

/** What differs from the defaults: the gauges are read as often as a scrape, and ends come soon. */
const SETTINGS = {
  daemon: { metrics_interval_ms: 5_000 },
  upstream: { budget_per_s: 60, initial_rate_per_s: 60 },
  reconciler: { quiescence_ms: 5_000, undecided_after_ms: 60_000 },
};

export async function openScene(bin: string, plan: ScenePlan): Promise<Scene> {
  const closes: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const one of closes.splice(0).reverse()) await one();
  };
  try {
    return { ...(await open(bin, plan, closes)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  bin: string,
  plan: ScenePlan,
  closes: (() => Promise<unknown>)[],
): Promise<Omit<Scene, 'close'>> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-outage-'));
  closes.push(() => rm(folder, { recursive: true, force: true }));
  const { diskMb, replica = false, clock = false, tls } = plan;
  const postgres = await openPostgres({ bin, diskMb, standby: replica, clock });
  closes.push(() => postgres.close());
  const sandbox = await startSandbox({ ...CLIENT, seed: 5, clock: systemClock });
  closes.push(() => sandbox.close());
  const wallets = Array.from({ length: WALLETS }, (_, n) => `0x0a${String(n).padStart(38, '0')}`);
  for (const addr of wallets) sandbox.control.setWallet(addr, { amt_token: PLENTY });
  const authority = tls ? await makeAuthority(folder) : undefined;
  const toService = await openRelay(sandbox.port, await authority?.issue('service'));
  closes.push(() => toService.close());
  const receiver = await startReceiver();
  closes.push(() => receiver.close());
  const toReceiver = await openRelay(receiver.port);
  closes.push(() => toReceiver.close());

  const name = { resolves: true };
  const names = await startNameServer((_, isIpv4) =>
    name.resolves && isIpv4 ? '127.0.0.1' : null,
  );
  closes.push(() => names.close());
  const host = plan.named ? SERVICE_NAME : '127.0.0.1';
  const ended: { output(): string }[] = [];
  const env: Record<string, string> = {
    ...environmentOf(postgres.ownerUrl, `${tls ? 'https' : 'http'}://${host}:${toService.port}`),
    DATABASE_URL: postgres.daemonUrl,
    DATABASE_OWNER_URL: postgres.ownerUrl,
  };
  if (plan.named) {
    env.NODE_OPTIONS = `--import=${PRELOAD}`;
    env.OUTAGE_NAME_SERVER = names.address;
  }
  if (authority) env.NODE_EXTRA_CA_CERTS = authority.certFile;
  if (postgres.standby) env.DATABASE_READ_URL = postgres.standby.url;
  const units: Unit[] = [];
  for (const [n, roles] of (plan.roles ?? [ALL]).entries())
    units.push(await makeUnit({ n, roles, env, plan, ended }));
  closes.push(() => Promise.all(units.map((unit) => unit.kill())));
  for (const unit of units) await unit.start();
  const [first, ...others] = units;
  if (!first) throw new Error('a scene needs a daemon');
  const app = makeApp(() => first.url);
  await subscribe(app, `http://127.0.0.1:${toReceiver.port}`, wallets);
  const log = () =>
    [...ended, ...units.flatMap((unit) => unit.process ?? [])].flatMap((one) =>
      one.output().split('\n'),
    );
  const all: Scene['units'] = [first, ...others];
  const ways = { toService, toReceiver, name };
  return { postgres, sandbox, ...ways, authority, receiver, units: all, wallets, log };
}

async function makeUnit(input: {
  n: number;
  roles: readonly string[];
  env: Record<string, string>;
  plan: ScenePlan;
  ended: { output(): string }[];
}): Promise<Unit> {
  const { n, roles, env, plan, ended } = input;
  // A restart keeps its port, as an address of Prometheus and apps does.
  const port = await freePort();
  const settings = merged(
    { ...SETTINGS, http: { port } },
    { daemon: { roles: [...roles] } },
    plan.settings ?? {},
  );
  const unit: Unit = {
    name: `daemon-${n + 1}`,
    url: `http://127.0.0.1:${port}`,
    isTarget: true,
    process: undefined,
    kill: async () => void (await end()?.kill()),
    stop: async () => void (await end()?.stop()),
    async start({ env: changes = {}, flags = V8_FLAGS } = {}) {
      try {
        unit.process = await spawnDaemon({ ...env, ...changes }, settings, { flags });
      } catch (error) {
        ended.push({ output: () => String(error) });
        throw error;
      }
    },
  };
  const end = () => {
    const ending = unit.process;
    if (ending) ended.push(ending);
    unit.process = undefined;
    return ending;
  };
  return unit;
}

/** Settings by section; the later ones replace single names. */
function merged(...all: Record<string, object>[]): Record<string, object> {
  const result: Record<string, object> = {};
  for (const [section, values] of all.flatMap(Object.entries))
    result[section] = { ...result[section], ...values };
  return result;
}

async function subscribe({ call }: App, url: string, wallets: readonly string[]): Promise<void> {
  const endpoint = { url: `${url}/hook`, event_types: ['operation.*'] };
  const watches = wallets.map((addr) => ({ kind: 'wallet', addr }));
  for (const [path, body] of [
    ['/api/endpoints', endpoint],
    ['/api/watches', watches],
  ] as const) {
    const { status, text } = await call('POST', path, body);
    if (status !== 201) throw new Error(`${path} was answered ${status} ${text}`);
  }
}
