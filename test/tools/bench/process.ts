/**
 * A server in a process of its own, on a core of its own where `taskset` and a second core exist,
 * so that the load does not run on the time of what is measured.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Before this process leaves one: a process is told only of those that it may use. */
const CORES = availableParallelism();
/** Whether processes can be kept on one core each. */
export const PINS = CORES > 1 && spawnSync('taskset', ['--version']).status === 0;
/** Begins the command of a process that may use every core. */
export const ON_EVERY_CORE = PINS ? ['taskset', '-c', `0-${CORES - 1}`] : [];

export interface ServerProcess {
  /** Its first line, which is JSON. */
  ready: Record<string, string>;
  stop(): Promise<void>;
}

/** Starts a script of this folder on the first core and waits for its first line. */
export async function startServer(script: string, args: string[] = []): Promise<ServerProcess> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const node = [...process.execArgv, path, ...args];
  const child = PINS
    ? spawn('taskset', ['-c', '0', process.execPath, ...node], { stdio: IO })
    : spawn(process.execPath, node, { stdio: IO });
  const line = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    once(child, 'exit').then(() => Promise.reject(new Error(`${script} ended at once`))),
  ]);
  return { ready: JSON.parse(String(line[0])), stop: () => stopped(child) };
}

/** Keeps this process, which makes the load, off the first core. */
export function leaveFirstCore(): void {
  if (PINS) spawnSync('taskset', ['-acp', `1-${CORES - 1}`, String(process.pid)]);
}

/** Undoes it, for a bench whose servers and load share all cores. */
export function useEveryCore(): void {
  if (PINS) spawnSync('taskset', ['-acp', `0-${CORES - 1}`, String(process.pid)]);
}

const IO: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}
