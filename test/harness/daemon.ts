/**
 * A whole daemon in a process of its own, as it runs in production: started, killed and started
 * again on the same database and folder. The sandbox runs in the test's process, so that the test
 * sees its log.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { stringify } from 'yaml';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { until } from './until.ts';

export const ADMIN_KEY = 'thk_test-admin-key-0123456789abcdefghijklmnop';
export const CLIENT = { clientId: 'test-client', clientSecret: 'test-secret' };
const ROOT = join(import.meta.dirname, '../..');
const READY_MS = 80_000;
const UNTIL = { deadlineMs: 60_000 };
/** Those of `npm start`; see src/main.ts. */
export const V8_FLAGS = ['--max-semi-space-size=4', '--max-old-space-size=1024'];
/** The daemon gets nothing else of the test's environment. */
const ENV = { PATH: process.env.PATH };

/** Everything faster than in production, so that a test waits for events and not for gaps. */
export const QUICK = {
  http: { port: 0 },
  daemon: {
    heartbeat_timeout_ms: 6_000,
    worker_interval_ms: 100,
    metrics_interval_ms: 300,
    unready_ms: 0,
    drain_ms: 10_000,
  },
  upstream: { budget_per_s: 200, initial_rate_per_s: 200, write_timeout_ms: 6_000 },
  observer: {
    steady_interval_ms: 400,
    min_gap_ms: 400,
    pending_interval_min_ms: 60,
    pending_interval_max_ms: 400,
    probe_interval_ms: 300,
    probe_interval_down_ms: 200,
  },
  reconciler: { read_lag_ms: 50, quiescence_ms: 400, undecided_after_ms: 1_500 },
};

export interface World {
  sandbox: Sandbox;
  database: TestDatabase;
  /** Two wallets of members in good standing, and the operator and contract of the seed. */
  ada: string;
  ben: string;
  close(): Promise<void>;
}

/** A sandbox and a database of their own. */
export async function createWorld(settings: { settleMs?: number } = {}): Promise<World> {
  const database = await createDatabase();
  const sandbox = await startSandbox({
    ...CLIENT,
    seed: 11,
    clock: { now: () => Date.now() },
    settleMs: settings.settleMs ?? 150,
  });
  const [ada, ben] = sandbox.control.state().members.map((member) => member.addr ?? '');
  return {
    sandbox,
    database,
    ada: ada as string,
    ben: ben as string,
    async close() {
      await sandbox.close();
      await database.drop();
    },
  };
}

export interface DaemonProcess {
  url: string;
  /** Milliseconds from the spawn to the line that says ready. */
  readyMs: number;
  child: ChildProcess;
  /** The log and what people see, so far. */
  output(): string;
  /** Of the process that sends its webhooks, the newest one; as soon as there are that many. */
  deliveryPid(starts?: number): Promise<number>;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, and the exit code. */
  stop(): Promise<number | null>;
}

/** Starts a daemon on the world and waits until it says that it is ready. */
export async function startDaemon(
  { database, sandbox }: World,
  settings: object = {},
  env: Record<string, string> = {},
): Promise<DaemonProcess> {
  const all = { ...environmentOf(database.url, sandbox.url), ...env };
  return spawnDaemon(all, { ...QUICK, ...settings });
}

/**
 * The environment of a daemon on a database, by the owner's URL, and a service. The daemon gets
 * there through the pooler that TEST_POOLER_URL names, with its login.
 */
export function environmentOf(database: string, service: string): Record<string, string> {
  const { TEST_POOLER_URL: pooler = database } = process.env;
  const { pathname } = new URL(database);
  return {
    DATABASE_URL: Object.assign(new URL(pooler), { pathname }).href,
    UPSTREAM_BASE_URL: service,
    UPSTREAM_AUTH_URL: service,
    UPSTREAM_TX_URL: service,
    UPSTREAM_CLIENT_ID: CLIENT.clientId,
    UPSTREAM_CLIENT_SECRET: CLIENT.clientSecret,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    ADMIN_KEY,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  };
}

/**
 * Starts a daemon with exactly this environment. @throws Error with its output when it does not
 * start
 * @param how.flags of Node; those of `npm start` by default
 * @param how.root of another version of the program
 */
export async function spawnDaemon(
  env: Record<string, string>,
  settings: object,
  { flags = V8_FLAGS, root = ROOT }: { flags?: readonly string[]; root?: string } = {},
): Promise<DaemonProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-daemon-'));
  const file = join(folder, 'settings.yaml');
  await writeFile(file, stringify(settings));
  const started = performance.now();
  const child = spawn(process.execPath, [...flags, 'src/main.ts'], {
    cwd: root,
    env: { ...ENV, DATA_DIR: join(folder, 'data'), TALLYHOOK_CONFIG: file, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const cleaned = exited.then(() => rm(folder, { recursive: true, force: true }));
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line));
  const url = await new Promise<string>((resolve, reject) => {
    const deadline = AbortSignal.timeout(READY_MS);
    const fail = () => reject(new Error(`the daemon did not start:\n${lines.join('\n')}`));
    deadline.addEventListener('abort', fail);
    child.once('exit', fail);
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      const ready = /ready at (\S+)/.exec(line);
      if (ready?.[1]) resolve(ready[1]);
    });
  });
  return {
    url,
    readyMs: performance.now() - started,
    child,
    output: () => lines.join('\n'),
    async deliveryPid(starts = 1) {
      const ready = /"pid":(\d+),"msg":"the delivery process is ready"/;
      const found = await until(async () => {
        const pids = lines.flatMap((line) => ready.exec(line)?.[1] ?? []);
        return pids.length >= starts ? Number(pids.at(-1)) : undefined;
      }, UNTIL);
      if (found === undefined) throw new Error(`no ${starts} delivery processes:\n${lines}`);
      return found;
    },
    async kill() {
      child.kill('SIGKILL');
      await cleaned;
    },
    async stop() {
      child.kill('SIGTERM');
      const code = await exited;
      await cleaned;
      return code;
    },
  };
}
