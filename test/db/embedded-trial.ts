/**
 * What the tests of the embedded Postgres share: temporary folders, servers and daemon processes
 * that are gone when a test ends, whatever came of it.
 */
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

export const RUNS_AS_ROOT = process.geteuid?.() === 0;
export const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));

const servers: EmbeddedServer[] = [];
const daemons: ChildProcess[] = [];
const folders: string[] = [];

/** Ends the processes that a test started. For afterEach. */
export async function endProcesses(): Promise<void> {
  for (const daemon of daemons.splice(0)) daemon.kill('SIGKILL');
  for (const server of servers.splice(0)) await server.stop();
}

/** Removes the folders that the tests made. For afterAll. */
export async function removeFolders(): Promise<void> {
  await Promise.all(
    folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })),
  );
}

/** A temporary folder; as root another user runs the server, to whom it is open or closed. */
export async function temporaryFolder(access: 'open' | 'closed' = 'open'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-embedded-'));
  folders.push(folder);
  await chmod(folder, access === 'open' ? 0o755 : 0o700);
  return folder;
}

/** Opens a server that is stopped when the test ends. */
export async function open(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const server = await openEmbedded(options);
  servers.push(server);
  return server;
}

/** The one value that a query answers at that URL. */
export async function ask(url: string, query: string): Promise<unknown> {
  const sql = postgres(url, { max: 1, ssl: false, onnotice: () => {} });
  try {
    const [row] = await sql.unsafe(query);
    return row ? Object.values(row)[0] : undefined;
  } finally {
    await sql.end();
  }
}

/** The process of the server of a folder. */
export async function serverPid(directory: string): Promise<number> {
  const text = await readFile(join(directory, 'postgres', 'postmaster.pid'), 'utf8');
  return Number(text.split('\n')[0]);
}

export interface DaemonOptions {
  env?: NodeJS.ProcessEnv;
  user?: ServerUser;
  node?: string;
  checkout?: string;
}

/** A process in a group of its own that opens the server of a folder and then stays. */
export function startDaemon(directory: string, options: DaemonOptions = {}): ChildProcess {
  const { env = {}, user, node = process.execPath, checkout = CHECKOUT } = options;
  const door = JSON.stringify(join(checkout, 'src/db/embedded/embedded.ts'));
  const script = `
    const { openEmbedded } = await import(${door});
    const { url, how, notes } = await openEmbedded({ directory: ${JSON.stringify(directory)} });
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

/** What that process opened. The server is stopped when somebody opens it in the test. */
export function openedBy(daemon: ChildProcess): Promise<Pick<EmbeddedServer, 'url' | 'how'>> {
  return new Promise((resolve, reject) => {
    daemon.once('exit', (code, signal) => reject(new Error(`ended with ${signal ?? code}`)));
    daemon.stdout?.once('data', (line: Buffer) => resolve(JSON.parse(line.toString('utf8'))));
  });
}

/** Sends a signal to the whole group of that process, as a terminal does, and waits for its end. */
export async function signalGroup(daemon: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = new Promise((resolve) => daemon.once('exit', resolve));
  process.kill(-(daemon.pid ?? Number.NaN), signal);
  await ended;
}
