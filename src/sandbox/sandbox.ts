/**
 * The door of the sandbox: the service of the interface, complete, on one port of this machine.
 * The same port serves the three hosts of the interface and the control surface below
 * `/_sandbox`.
 *
 * It promises that the same seed, calls and clock give the same bytes, and, with a directory,
 * that no acknowledged effect is lost when the process is killed. It must never be taken for the
 * real service: its members need no password, and its control surface is open to whoever reaches
 * the port.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Clock } from '../kernel/clock.ts';
import { makeServer } from '../kernel/http-server.ts';
import type { Log } from '../kernel/log.ts';
import { enliven } from './chain/background-traffic.ts';
import { resume } from './chain/chain.ts';
import { type Control, makeControl } from './control/control.ts';
import { makeControlSurface } from './control/http.ts';
import { makeRequestLog } from './control/request-log.ts';
import { type Switches, switchesSchema } from './faults/switches.ts';
import { buildApp, unreadable } from './http.ts';
import { makeService } from './service.ts';
import { noJournal, openJournal, readJournal } from './state/change-log.ts';
import type { Settings } from './state/records.ts';
import { REDIRECT_URIS, sow } from './state/seeds.ts';
import { makeWorld, type World } from './world.ts';

export type { Control } from './control/control.ts';
export type { Switches } from './faults/switches.ts';
export type { World } from './world.ts';

/** One caller can neither hold connections for long without asking something, nor many of them. */
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
  /** Default 0: a free one. */
  port?: number;
  /** Where the world is kept; absent: in memory only. */
  directory?: string;
  clock: Clock;
  log?: Log;
  /** Whether wallets and tokens change by themselves now and then. Default false. */
  liveliness?: boolean;
  /** Median time in which the chain settles a write. */
  settleMs?: number;
  /** Addresses to which authorization codes may be sent. */
  redirectUris?: string[];
  switches?: Partial<Switches>;
}

export interface Sandbox {
  url: string;
  port: number;
  /** The state itself, for tests that look. */
  world: World;
  /** Everything that the control surface can do, without HTTP. */
  control: Control;
  /** Cuts what is open and ends; a second call changes nothing. */
  close(): Promise<void>;
}

/**
 * Starts a sandbox. A world found in the directory goes on where it stopped, with the switches that
 * the options name laid over its own; its seed stays.
 * @throws Failure `bad_setting` for a damaged journal; whatever `listen` throws
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const world = openWorld(options);
  const requests = makeRequestLog();
  const control = makeControl(world, requests);
  const service = makeService(world, requests, options.log);
  const app = buildApp(world, service, makeControlSurface(control), options.log);
  const listener = getRequestListener((request, env) => app.fetch(request, env), {
    overrideGlobalObjects: false,
    errorHandler: () => {
      const { headers, body } = unreadable(world, 400);
      return new Response(body, { status: 400, headers });
    },
  });
  const server = makeServer(
    (request, response, goOn) => {
      goOn?.();
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
    close() {
      closed ??= stop(server, world);
      return closed;
    },
  };
}

function openWorld(options: SandboxOptions): World {
  const { seed, clientId, clientSecret, clock, directory } = options;
  const given: Partial<Switches> = { ...options.switches };
  if (options.settleMs !== undefined) given.settle_median_ms = options.settleMs;
  if (options.liveliness !== undefined) given.liveliness = options.liveliness;
  const settings: Settings = {
    seed,
    offset_ms: 0,
    window: null,
    redirect_uris: options.redirectUris ?? REDIRECT_URIS,
    fail_next: 0,
    lively_at: null,
    switches: switchesSchema.parse(given),
  };
  const app = {
    app_no: 101n,
    name: 'Sandbox App',
    client_id: clientId,
    client_secret: clientSecret,
  };
  const lines = directory === undefined ? [] : readJournal(directory);
  const journal = directory === undefined ? noJournal : openJournal(directory);
  const world = makeWorld(app, clock, journal, settings, lines);
  if (lines.length === 0) {
    world.clear(settings);
    sow(world);
  } else {
    world.change({ switches: { ...world.switches(), ...given } });
    if (options.redirectUris) world.change({ redirect_uris: options.redirectUris });
  }
  resume(world);
  enliven(world);
  world.advance();
  return world;
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
  });
}

async function stop(server: Server, world: World): Promise<void> {
  const ended = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await ended;
  world.close();
}
