/**
 * The price of recording every write: gives through the whole daemon, a process of its own on an
 * embedded database, against proxies that record nothing in front of the same service. Load,
 * daemon, Postgres, proxy and service share all cores, as they would on a small machine. One proxy
 * is the frame's own helper, which the target refers to; the other is tuned to the last header.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pause } from '../../src/kernel/clock.ts';
import { execute } from '../harness/temporary-server.ts';
import { type Bench, figuresOf, type Result, type Sample, sideBySide } from './frame.ts';
import { pressed, requestText } from './load.ts';
import { PINS } from './process.ts';

const ROOT = join(import.meta.dirname, '../..');
const KEY = 'thk_bench-admin-key-0123456789abcdefghijklmnop';
const CLIENT = ['bench-client', 'bench-secret'] as const;
const GIVE = '/v1/app/token/operations/1/give';
/** So many that gives which are open at once go to different ones. */
const WALLETS = 2_000;
const CALLERS = 64;
/** How long the stages behind the gateway need to catch up, so that they do not disturb a round. */
const REST_MS = 2_000;

export const gateway: Bench = {
  name: 'gateway',
  what: 'gives through the daemon; reference: bare Hono and undici proxies that record nothing',
  target: 'at least 0.35 × the writes per second, at most 4 ms more for one write (p50)',
  async run({ rounds, seconds, databaseUrl }) {
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
      const service = await start(['test/bench/paid-service.ts', ...CLIENT, String(WALLETS)]);
      const startOn = async (database: Record<string, string> = {}) =>
        start([...DAEMON_FLAGS, 'src/main.ts'], {
          ...(await daemonEnv(folder, service.url)),
          ...database,
        });
      const daemon = await startOn();
      const press = (at: Running, connections: number) => async () => {
        const sample = await pressed({ port: at.port, requests: GIVES, connections, seconds });
        await pause(REST_MS);
        return sample;
      };
      const what = `gives, ${CALLERS} callers`;
      if (databaseUrl) {
        const other = await startOn(await otherDatabase(databaseUrl, running));
        const compared = (callers: number) =>
          sideBySide({ rounds }, press(other, callers), press(daemon, callers));
        return [
          { what, unit: '/s', ...(await compared(CALLERS)), target: { of: 'ratio', atLeast: 0.8 } },
          { what: 'gives, one at a time', unit: '/s', ...(await compared(1)) },
        ];
      }
      const token = await tokenOf(service.url);
      const bare = await start(['test/bench/bare-proxy.ts', service.url, token]);
      const lean = await start(['test/bench/lean-proxy.ts', service.url, token]);
      const many = (other: Running) =>
        sideBySide({ rounds }, press(daemon, CALLERS), press(other, CALLERS));
      return [
        { what, unit: '/s', ...(await many(bare)), target: { of: 'ratio', atLeast: 0.35 } },
        { what: `${what}, lean proxy`, unit: '/s', ...(await many(lean)), note: 'for comparison' },
        await oneAtATime(rounds, press(daemon, 1), press(lean, 1)),
      ];
    } finally {
      for (const one of running.reverse()) await one.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** What one write takes longer than through the quicker proxy, with nothing else going on. */
async function oneAtATime(
  rounds: number,
  daemon: () => Promise<Sample>,
  proxy: () => Promise<Sample>,
): Promise<Result> {
  const added: Sample[] = [];
  const proxies: Sample[] = [];
  for (let round = 0; round < rounds; round++) {
    const [ours, theirs] = [await daemon(), await proxy()];
    added.push({ ...ours, value: (ours.p50 ?? 0) - (theirs.p50 ?? 0) });
    proxies.push(theirs);
  }
  const { p50 = 0, p99 = 0 } = figuresOf(proxies);
  return {
    what: 'one give at a time, added p50',
    unit: 'ms',
    measured: figuresOf(added),
    target: { of: 'measured', atMost: 4 },
    note: `the lean proxy's p50/p99: ${p50.toFixed(2)}/${p99.toFixed(2)} ms`,
  };
}

/** Such as `--cpu-prof`, to profile a run. */
const DAEMON_FLAGS = process.execArgv.filter((flag) => flag.startsWith('--cpu-prof'));

const GIVES = Array.from({ length: WALLETS }, (_, i) => {
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
interface Running extends Stoppable {
  url: string;
  port: number;
}

/** Starts a process that may use every core, and waits for the line with its address. */
async function run(args: string[], env: Record<string, string> = {}): Promise<Running> {
  const command = [process.execPath, ...args];
  if (PINS) command.unshift('taskset', '-c', `0-${availableParallelism() - 1}`);
  const [program = '', ...rest] = command;
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

async function daemonEnv(folder: string, service: string): Promise<Record<string, string>> {
  const settings = join(folder, 'settings.yaml');
  await writeFile(settings, 'http: { port: 0 }\nlog: { level: warn }\n');
  return {
    DATA_DIR: join(folder, 'data'),
    TALLYHOOK_CONFIG: settings,
    UPSTREAM_BASE_URL: service,
    UPSTREAM_AUTH_URL: service,
    UPSTREAM_TX_URL: service,
    UPSTREAM_CLIENT_ID: CLIENT[0],
    UPSTREAM_CLIENT_SECRET: CLIENT[1],
    ADMIN_KEY: KEY,
  };
}

/** A database of its own on that server, for as long as the processes run. */
async function otherDatabase(serverUrl: string, running: Stoppable[]) {
  const name = `tallyhook_bench_${process.pid}`;
  await execute(serverUrl, `create database ${name}`);
  running.push({ stop: () => execute(serverUrl, `drop database ${name} with (force)`) });
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { DATABASE_URL: url.href, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') };
}

async function tokenOf(service: string): Promise<string> {
  const answer = await fetch(`${service}/v1/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(CLIENT.join(':')).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  const { access_token: token } = JSON.parse(await answer.text());
  return String(token);
}
