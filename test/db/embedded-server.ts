/** Temporary folders, embedded servers and daemon processes that end with their test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import {
  type EmbeddedOptions,
  type EmbeddedServer,
  openEmbedded,
} from '../../src/db/embedded/embedded.ts';
import type { ServerUser } from '../../src/db/embedded/process.ts';
import { platform as installed } from '../../src/db/platform.ts';

export const RUNS_AS_ROOT = process.geteuid?.() === 0;
export const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));

const servers: EmbeddedServer[] = [];
const daemons: ChildProcess[] = [];
const folders: string[] = [];

/** For afterEach. */
export async function endProcesses(): Promise<void> {
  for (const daemon of daemons.splice(0)) daemon.kill('SIGKILL');
  for (const server of servers.splice(0)) await server.stop();
}

/** For afterAll. */
export async function removeFolders(): Promise<void> {
  await Promise.all(
    folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })),
  );
}

/** A temporary folder that other users may enter or not: as root, the server is another user's. */
export async function temporaryFolder(access: 'open' | 'closed' = 'open'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-embedded-'));
  folders.push(folder);
  await chmod(folder, access === 'open' ? 0o755 : 0o700);
  return folder;
}

/** Opens a server and stops it when the test ends. */
export async function open(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const server = await openEmbedded(options);
  servers.push(server);
  return server;
}

/** The single value that a query returns. */
export async function query(url: string, text: string): Promise<unknown> {
  const sql = postgres(url, { max: 1, ssl: false, onnotice: () => {} });
  try {
    const [row] = await sql.unsafe(text);
    return row ? Object.values(row)[0] : undefined;
  } finally {
    await sql.end();
  }
}

export async function serverPid(directory: string): Promise<number> {
  const text = await readFile(join(directory, 'postgres', 'postmaster.pid'), 'utf8');
  return Number(text.split('\n')[0]);
}

export interface DaemonOptions {
  env?: NodeJS.ProcessEnv;
  user?: ServerUser;
  node?: string;
  checkout?: string;
  /** The one that it takes this machine for. */
  platform?: NodeJS.Platform;
}

/**
 * A process in its own process group that opens the server of a folder, ignores every signal that
 * can be ignored, and keeps running.
 */
export function startDaemon(directory: string, options: DaemonOptions = {}): ChildProcess {
  const { env = {}, user, node = process.execPath, checkout = CHECKOUT } = options;
  const { platform = process.platform } = options;
  const module = JSON.stringify(join(checkout, 'src/db/embedded/embedded.ts'));
  const opened = {
    directory,
    binariesFrom: join(checkout, 'node_modules', installed.postgresPackage),
  };
  const script = `
    Object.defineProperty(process, 'platform', { value: '${platform}' });
    const { openEmbedded } = await import(${module});
    const { url, how, notes } = await openEmbedded(${JSON.stringify(opened)});
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
    console.log(JSON.stringify({ url, how, notes }));
    setInterval(() => {}, 1000);`;
  const daemon = spawn(node, ['--input-type=module', '-e', script], {
    cwd: '/',
    detached: true,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(user ? { uid: user.uid, gid: user.gid } : {}),
  });
  daemons.push(daemon);
  return daemon;
}

/** What the process opened. The test must open the server as well to have it stopped. */
export function openedBy(daemon: ChildProcess): Promise<Pick<EmbeddedServer, 'url' | 'how'>> {
  return new Promise((resolve, reject) => {
    daemon.once('exit', (code, signal) => reject(new Error(`ended with ${signal ?? code}`)));
    daemon.stdout?.once('data', (line: Buffer) => resolve(JSON.parse(line.toString('utf8'))));
  });
}

/** Sends a signal to the process group, as a terminal does. */
export function signalGroup(daemon: ChildProcess, signal: NodeJS.Signals): void {
  process.kill(-(daemon.pid ?? Number.NaN), signal);
}

export async function killGroup(daemon: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => daemon.once('exit', resolve));
  signalGroup(daemon, 'SIGKILL');
  await ended;
}

/** The Failure that an attempt to open a server ends with. */
export async function refusalOf(opening: Promise<unknown>): Promise<Error> {
  try {
    await opening;
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('the server was opened');
}
