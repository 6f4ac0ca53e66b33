/**
 * A whole installation for the tests of one file: a database, a sandbox and a daemon process, made
 * before the first test and closed after the last one. The receiver and further daemons start when
 * they are asked for, and are closed with it.
 */
import { afterAll, beforeAll, expect } from 'vitest';
import type { Effect } from '../../src/sandbox/state/records.ts';
import { type Answered, type App, type FeedEvent, makeApp } from './app.ts';
import { createWorld, type DaemonProcess, startDaemon, type World } from './daemon.ts';
import { type Receiver, startReceiver } from './receiver.ts';

export interface Rig {
  world: World;
  /** The first daemon; `restart` replaces it. */
  daemon: DaemonProcess;
  /** An app of the first daemon. */
  app: App;
  /** Starts a further daemon on the same database. */
  another(): Promise<DaemonProcess>;
  /** Kills the first daemon and starts it again. */
  restart(): Promise<void>;
  receiver(): Promise<Receiver>;
  /** Creates an endpoint at a path of the receiver; answers its signing secret. */
  subscribe(path: string, eventTypes?: string[]): Promise<string>;
  /** Puts wallets under observation. */
  watch(...addresses: string[]): Promise<void>;
  /** The same, and waits until each was observed. */
  observe(...addresses: string[]): Promise<void>;
  /** The event of that type about the operation of a gateway answer. */
  eventOf(answer: Answered, type: string): Promise<FeedEvent>;
  /** What the service did under that amount. */
  effects(amount: number | bigint): Effect[];
}

/** A sandbox and a database for the tests of one file, closed after them. */
export async function useWorld(): Promise<World> {
  const world = await createWorld();
  afterAll(() => world.close());
  return world;
}

/** Registers the hooks. Use the rig inside tests only. */
export function useRig(settings: object = {}): Rig {
  const opened = {} as Pick<Rig, 'world' | 'daemon'> & { receiver?: Promise<Receiver> };
  const further: DaemonProcess[] = [];
  const app = makeApp(() => opened.daemon.url);

  beforeAll(async () => {
    opened.world = await createWorld();
    opened.daemon = await startDaemon(opened.world, settings);
  });
  afterAll(async () => {
    await Promise.all([opened.daemon, ...further].map((daemon) => daemon?.kill()));
    await (await opened.receiver)?.close();
    await opened.world?.close();
  });

  const receiver = () => {
    opened.receiver ??= startReceiver();
    return opened.receiver;
  };
  const watch = async (...addresses: string[]) => {
    const wallets = addresses.map((addr) => ({ kind: 'wallet', addr }));
    expect((await app.call('POST', '/api/watches', wallets)).status).toBe(201);
  };
  return {
    get world() {
      return opened.world;
    },
    get daemon() {
      return opened.daemon;
    },
    app,
    async another() {
      const daemon = await startDaemon(opened.world, settings);
      further.push(daemon);
      return daemon;
    },
    async restart() {
      await opened.daemon.kill();
      opened.daemon = await startDaemon(opened.world, settings);
    },
    receiver,
    async subscribe(path, eventTypes = ['*']) {
      const url = `${(await receiver()).url}${path}`;
      const made = await app.call('POST', '/api/endpoints', { url, event_types: eventTypes });
      expect(made.status, made.text).toBe(201);
      return made.json.secret;
    },
    watch,
    async observe(...addresses) {
      await watch(...addresses);
      for (const addr of addresses)
        await app.until(({ type, data }) => type === 'wallet.observed' && data.addr === addr);
    },
    eventOf: (answer, type) =>
      app.until((e) => e.type === type && e.data.operation_id === operationIdOf(answer)),
    effects: (amount) =>
      opened.world.sandbox.control
        .effects(0n, 10_000)
        .filter((effect) => effect.amount === BigInt(amount)),
  };
}

/** The operation id that the gateway adds to its answer to a write. */
export function operationIdOf({ headers }: Answered): string {
  return String(headers['tallyhook-operation']);
}
