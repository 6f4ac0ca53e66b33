/**
 * The price of recording every write: the throughput of gives through the whole daemon, a process
 * of its own on an embedded database, against a bare proxy, also a process of its own, in front of
 * the same sandbox process; then what the daemon adds to a single give. Rounds of the two take
 * turns, so that what else the machine does hits both.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Pool } from 'undici';
import { monotonicMs, pause } from '../../src/kernel/clock.ts';

const ROOT = join(import.meta.dirname, '../..');
const KEY = 'thk_bench-admin-key-0123456789abcdefghijklmnop';
const WALLETS = 2_000;
const CLIENT = { id: 'bench-client', secret: 'bench-secret' };

export interface GatewayFigures {
  /** Gives per second of each, by round. */
  daemon: number[];
  bare: number[];
  /** Milliseconds of one give at low load. */
  daemonMs: { p50: number; p99: number };
  bareMs: { p50: number; p99: number };
}

interface Running {
  url: string;
  child: ChildProcess;
  stop(): Promise<void>;
}

export async function benchGateway(given: {
  rounds: number;
  roundMs: number;
  connections: number;
  single: number;
  nodeFlags?: string[];
}): Promise<GatewayFigures> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-bench-'));
  // Postgres runs as another user than root, and must reach its data.
  await chmod(folder, 0o755);
  const running: Running[] = [];
  try {
    const sandbox = await run([
      'src/cli/tallyhook.ts',
      'sandbox',
      '--port',
      '0',
      '--seed',
      '1',
      '--client-id',
      CLIENT.id,
      '--client-secret',
      CLIENT.secret,
    ]);
    running.push(sandbox);
    const wallets = await makeWallets(sandbox.url);
    const token = await tokenOf(sandbox.url);
    const bare = await run(['test/bench/bare-proxy.ts', sandbox.url, token]);
    running.push(bare);
    const daemon = await startDaemon(sandbox.url, folder, given.nodeFlags ?? []);
    running.push(daemon);
    const figures: GatewayFigures = {
      daemon: [],
      bare: [],
      daemonMs: { p50: 0, p99: 0 },
      bareMs: { p50: 0, p99: 0 },
    };
    const targets = [
      { url: bare.url, into: figures.bare },
      { url: daemon.url, into: figures.daemon },
    ];
    for (const { url } of targets) await load(url, wallets, 1_000, given.connections);
    for (let round = 0; round < given.rounds; round++)
      for (const { url, into } of targets) {
        into.push(await load(url, wallets, given.roundMs, given.connections));
        await pause(1_500);
      }
    const singles = await latencies([bare.url, daemon.url], wallets, given.single);
    figures.bareMs = spread(singles[0] ?? []);
    figures.daemonMs = spread(singles[1] ?? []);
    return figures;
  } finally {
    for (const one of running.reverse()) await one.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts a process and waits for the line that names its address. */
function run(args: string[], env: Record<string, string> = {}): Promise<Running> {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${args[0]} ended with ${code}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const url = /ready at (\S+)/.exec(line)?.[1];
      if (!url) return;
      const stop = async () => {
        child.kill('SIGTERM');
        await exited;
      };
      resolve({ url, child, stop });
    });
  });
}

async function startDaemon(service: string, folder: string, flags: string[]): Promise<Running> {
  const settings = join(folder, 'settings.yaml');
  await writeFile(settings, 'http: { port: 0 }\nlog: { level: warn }\n');
  return run([...flags, 'src/main.ts'], {
    DATA_DIR: join(folder, 'data'),
    TALLYHOOK_CONFIG: settings,
    UPSTREAM_BASE_URL: service,
    UPSTREAM_AUTH_URL: service,
    UPSTREAM_TX_URL: service,
    UPSTREAM_CLIENT_ID: CLIENT.id,
    UPSTREAM_CLIENT_SECRET: CLIENT.secret,
    ADMIN_KEY: KEY,
  });
}

async function makeWallets(service: string): Promise<string[]> {
  const pool = new Pool(service, { connections: 16 });
  const addrs = Array.from(
    { length: WALLETS },
    (_, i) => `0x${(i + 1).toString(16).padStart(40, 'b')}`,
  );
  const left = [...addrs];
  const worker = async () => {
    for (let addr = left.pop(); addr; addr = left.pop()) {
      const answer = await pool.request({
        method: 'POST',
        path: `/_sandbox/wallets/${addr}`,
        headers: { 'content-type': 'application/json' },
        body: '{"amt_token":"1000"}',
      });
      await answer.body.dump();
      if (answer.statusCode >= 300) throw new Error(`no wallet: ${answer.statusCode}`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  await pool.close();
  return addrs;
}

async function tokenOf(service: string): Promise<string> {
  const answer = await new Pool(service).request({
    method: 'POST',
    path: '/v1/oauth/token',
    headers: {
      authorization: `Basic ${Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
  });
  const { access_token: token } = (await answer.body.json()) as { access_token: string };
  return token;
}

let next = 0;

/** One give. @throws when it was not accepted */
async function give(pool: Pool, wallets: string[]): Promise<void> {
  next += 1;
  const toAddr = wallets[next % wallets.length];
  const answer = await pool.request({
    method: 'POST',
    path: '/v1/app/token/operations/1/give',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ toAddr, amount: 1, reasonType: 'bench' }),
  });
  const text = await answer.body.text();
  if (!text.includes('tx_log_no')) throw new Error(`${answer.statusCode} ${text}`);
}

/** Gives per second of that many callers, each with the next when the last was answered. */
async function load(url: string, wallets: string[], ms: number, connections: number) {
  const pool = new Pool(url, { connections });
  const started = monotonicMs();
  let done = 0;
  const caller = async () => {
    while (monotonicMs() - started < ms) {
      await give(pool, wallets);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, caller));
  const perS = done / ((monotonicMs() - started) / 1000);
  await pool.close();
  return perS;
}

/** One give at a time, by turns, fifty a second. */
async function latencies(urls: string[], wallets: string[], count: number): Promise<number[][]> {
  const pools = urls.map((url) => new Pool(url, { connections: 1 }));
  const times: number[][] = urls.map(() => []);
  for (let i = 0; i < count; i++)
    for (const [at, pool] of pools.entries()) {
      const started = monotonicMs();
      await give(pool, wallets);
      times[at]?.push(monotonicMs() - started);
      await pause(10);
    }
  for (const pool of pools) await pool.close();
  return times;
}

function spread(times: number[]): { p50: number; p99: number } {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}
