/**
 * Real servers of the brokers that deliveries are sent to. `TEST_BROKERS` is a folder with what
 * comes from no package of Debian: `kafka/*.jar`, and `moto/`, a virtual environment of Python.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { DestinationSettings } from '../../src/webhooks/endpoints/destination/destination.ts';
import { until } from '../harness/until.ts';

/** A message as a consumer gets it. */
export interface Stored {
  id: string | undefined;
  key: string | undefined;
  headers: Record<string, string | undefined>;
  body: Buffer;
}

export interface Broker {
  destination: DestinationSettings;
  /** With credentials that the broker refuses, and those. */
  wrong: { destination: DestinationSettings; secret: string; refusal: object };
  /** Over TLS at the name localhost, with the authority of the broker, unless it speaks HTTP. */
  secure?: Exclude<DestinationSettings, { kind: 'sqs' }>;
  /** A bootstrap server of a cluster that names a server at a private address. */
  elsewhere?: DestinationSettings;
  /** At a topic or queue that the broker does not have. */
  missing: { destination: DestinationSettings; refusal: object };
  /** Every message that the broker has stored, in its order as far as it has one. */
  stored(): Promise<Stored[]>;
  /** Makes the broker unable to answer, as a crash does. */
  fail(): Promise<void>;
  recover(): Promise<void>;
  close(): Promise<void>;
}

/** The folder of the programs, unless a caller has another one. */
export const BROKERS = process.env.TEST_BROKERS ?? '';

/** Opens a broker that has stored nothing, in a folder of its own. */
export type StartBroker = (folder: string, programs?: string) => Promise<Broker>;

/** The settings of a destination as the API takes them. */
export function snakeOf(settings: object): object {
  const named = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [named(name), value]));
}

export interface Program {
  /** Ends the process group and waits for its end. */
  end(signal?: NodeJS.Signals): Promise<void>;
  child: ChildProcess;
}

/** Starts a server and waits until it listens. @throws Error with the path of its log */
export async function startProgram(
  folder: string,
  command: readonly string[],
  port: number,
  env: Record<string, string> = {},
): Promise<Program> {
  const [program = '', ...args] = command;
  const log = join(folder, `${port}.log`);
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const file = createWriteStream(log, { flags: 'a' });
  child.stdout?.pipe(file);
  child.stderr?.pipe(file);
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const up = await until(() => listens(port), { deadlineMs: 90_000 });
  if (!up) throw new Error(`${program} does not listen; see ${log}`);
  return {
    child,
    async end(signal = 'SIGKILL') {
      if (child.exitCode === null && child.signalCode === null && child.pid !== undefined)
        process.kill(-child.pid, signal);
      await gone;
    },
  };
}

function listens(port: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (found: true | undefined) => {
      socket.destroy();
      resolve(found);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(undefined));
  });
}
