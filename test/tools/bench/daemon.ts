/**
 * Whole daemons and services for benches, as processes that may use every core, and the gives that
 * are sent to them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { requestText } from './load.ts';
import { ON_EVERY_CORE } from './process.ts';

const ROOT = join(import.meta.dirname, '../../..');
export const KEY = 'thk_bench-admin-key-0123456789abcdefghijklmnop';
export const CLIENT = ['bench-client', 'bench-secret'] as const;
export const GIVE = '/v1/app/token/operations/1/give';
/** So many that gives which are open at once go to different ones. */
export const WALLETS = 2_000;

/** Such as `--cpu-prof`, to profile a run. */
export const DAEMON_FLAGS = process.execArgv.filter((flag) => flag.startsWith('--cpu-prof'));

export const GIVES = Array.from({ length: WALLETS }, (_, i) => {
  const toAddr = `0x${(i + 1).toString(16).padStart(40, 'b')}`;
  const body = JSON.stringify({ toAddr, amount: 1, reasonType: 'bench' });
  const head = requestText('POST', GIVE, {
    authorization: `Bearer ${KEY}`,
    'content-type': 'application/json',
    'content-length': String(body.length),
  });
  return `${head}${body}`;
});

interface Stoppable {
  stop(): Promise<void>;
}
export interface Running extends Stoppable {
  url: string;
  port: number;
}

/** What a bench starts; all of it is stopped, the newest first, when its work ends. */
export interface Processes {
  folder: string;
  start(args: string[], env?: Record<string, string>): Promise<Running>;
  stopLater(one: Stoppable): void;
}

/** Does work with processes and a folder of its own. */
export async function withProcesses<T>(work: (processes: Processes) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-bench-'));
  // Postgres does not run as root, and has to reach its data.
  await chmod(folder, 0o755);
  const running: Stoppable[] = [];
  const start = async (args: string[], env?: Record<string, string>) => {
    const one = await run(args, env);
    running.push(one);
    return one;
  };
  try {
    return await work({ folder, start, stopLater: (one) => running.push(one) });
  } finally {
    for (const one of running.reverse()) await one.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts a process that may use every core, and waits for the line with its address. */
export async function run(args: string[], env: Record<string, string> = {}): Promise<Running> {
  const [program = '', ...rest] = [...ON_EVERY_CORE, process.execPath, ...args];
  const child = spawn(program, rest, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const ended = exited.then(([code]) => Promise.reject(new Error(`${args.at(-1)}: ${code}`)));
  ended.catch(() => {});
  const ready = new Promise<string>((resolve) => {
    lines.on('line', (line) => {
      const url = /ready at (\S+)/.exec(line)?.[1];
      if (url) resolve(url);
    });
  });
  const url = await Promise.race([ready, ended]);
  return { url, port: Number(new URL(url).port), stop: () => stopped(child, exited) };
}

async function stopped(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await exited;
}

export async function daemonEnv(folder: string, service: string): Promise<Record<string, string>> {
  const settings = join(folder, 'settings.yaml');
  // Gives to wallets that were never observed wait for a poll: that is not what is measured.
  const known = 'gateway: { first_poll_wait_ms: 0 }';
  await writeFile(settings, `http: { port: 0 }\nlog: { level: warn }\n${known}\n`);
  return {
    DATA_DIR: join(folder, 'data'),
    TALLYHOOK_CONFIG: settings,
    UPSTREAM_BASE_URL: service,
    UPSTREAM_AUTH_URL: service,
    UPSTREAM_TX_URL: service,
    UPSTREAM_CLIENT_ID: CLIENT[0],
    UPSTREAM_CLIENT_SECRET: CLIENT[1],
    ADMIN_KEY: KEY,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  };
}
