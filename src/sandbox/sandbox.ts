/**
 * The public module of the sandbox: the complete service of the interface, simulated, on one port.
 * The port serves the three hosts of the interface and, below `/_sandbox`, the control surface.
 * The same seed, calls and clock give the same bytes. With a directory, no acknowledged write is
 * lost when the process is killed. There is no access control: members need no password, and every
 * client that reaches the port can use the control surface.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { type Clock, withDeadline } from '../kernel/clock.ts';
import { type DrainableServer, makeServer } from '../kernel/http/server.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import {
  type SampleWrite,
  sampleWrite,
  scheduleBackgroundTraffic,
} from './chain/background-traffic.ts';
import { resumeChain } from './chain/chain.ts';
import { type Control, makeControl } from './control/control.ts';
import { makeControlSurface } from './control/http.ts';
import { buildApp, unreadable } from './http/app.ts';
import { makePipeline } from './http/pipeline.ts';
import type { Settings } from './state/records.ts';
import { makeRequestLog } from './state/request-log.ts';
import { insertSeedData, REDIRECT_URIS } from './state/seed-data.ts';
import { type Switches, switchesSchema } from './state/switches.ts';
import { noStore, openStore } from './state/tables.ts';
import { makeWorld, type World } from './world.ts';

/** Bounds on slow, idle and simultaneous connections. */
const LIMITS = {
  requestTimeout: 30_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 5_000,
  maxHeaderSize: 16 * 1024,
  connectionsMax: 1_000,
};

export interface SandboxOptions {
  seed: number;
  clientId: string;
  clientSecret: string;
  /** Default 127.0.0.1. */
  host?: string;
  /** Default 0, which picks a free port. */
  port?: number;
  /** The folder of the stored world; without it, the world is in memory only. */
  directory?: string;
  clock: Clock;
  log?: Log;
  /** Whether wallets and tokens change now and then without a request. Default false. */
  backgroundTraffic?: boolean;
  /** Median settle time of the chain. */
  settleMs?: number;
  /** Registered redirect URIs for authorization codes. */
  redirectUris?: string[];
  switches?: Partial<Switches>;
}

export type { SampleWrite } from './chain/background-traffic.ts';

export interface Sandbox {
  url: string;
  port: number;
  /** The state, for tests. */
  world: World;
  /** The operations of the control surface, without HTTP. */
  control: Control;
  /** The next write of an app that makes some itself. */
  sampleWrite(): SampleWrite | undefined;
  /**
   * Waits so long for answers, cuts all connections and closes the store; a second call has no
   * effect.
   * @param drainMs default 0
   */
  close(drainMs?: number): Promise<void>;
}

/**
 * Starts a sandbox. A world in the directory continues and keeps its seed; switches in the options
 * replace its own.
 * @throws Failure `bad_setting` for damaged data; the error of `listen`
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const world = openWorld(options);
  const requests = makeRequestLog();
  const control = makeControl(world, requests);
  const pipeline = makePipeline(world, requests, options.log);
  const app = buildApp(world, pipeline, makeControlSurface(control), options.log);
  const listener = getRequestListener((request, env) => app.fetch(request, env), {
    overrideGlobalObjects: false,
    errorHandler: () => {
      const { headers, body } = unreadable(world, 400);
      return new Response(body, { status: 400, headers });
    },
  });
  const server = makeServer(
    (request, response, proceed) => {
      proceed?.();
      return listener(request, response);
    },
    (status) => unreadable(world, status),
    LIMITS,
  );
  const host = options.host ?? '127.0.0.1';
  const port = await listen(server, options.port ?? 0, host).catch((error: unknown) => {
    world.close();
    throw error;
  });
  let closed: Promise<void> | undefined;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    world,
    control,
    sampleWrite: () => sampleWrite(world),
    close(drainMs = 0) {
      closed ??= stop(server, world, drainMs);
      return closed;
    },
  };
}

function openWorld(options: SandboxOptions): World {
  const { seed, clientId, clientSecret, clock, directory } = options;
  const switches: Partial<Switches> = { ...options.switches };
  if (options.settleMs !== undefined) switches.settle_median_ms = options.settleMs;
  if (options.backgroundTraffic !== undefined) {
    switches.background_traffic = options.backgroundTraffic;
  }
  const settings: Settings = {
    seed,
    offset_ms: 0,
    window: null,
    redirect_uris: options.redirectUris ?? REDIRECT_URIS,
    fail_next: 0,
    background_at: null,
    switches: switchesSchema.parse(switches),
  };
  const app = {
    app_no: 101n,
    name: 'Sandbox App',
    client_id: clientId,
    client_secret: clientSecret,
  };
  const store = directory === undefined ? noStore : openStore(directory);
  const world = makeWorld(app, clock, store, settings);
  if (world.isNew) {
    world.clear(settings);
    insertSeedData(world);
  } else {
    world.change({ switches: { ...world.switches(), ...switches } });
    if (options.redirectUris) world.change({ redirect_uris: options.redirectUris });
  }
  resumeChain(world);
  scheduleBackgroundTraffic(world);
  world.advance();
  return world;
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
  });
}

async function stop(server: DrainableServer, world: World, drainMs: number): Promise<void> {
  const ended = new Promise((resolve) => server.once('close', resolve));
  await withDeadline(server.drain(), drainMs, () => {});
  server.closeAllConnections();
  await ended;
  world.close();
}
