/**
 * Reported operations: 100,000 lines in one request to a whole daemon on an embedded
 * database, first new and then known. The time of both, and how far the daemon's memory grows.
 * Then one new report a request, from several connections and from one.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { pause } from '../../../src/kernel/clock.ts';
import { CLIENT, DAEMON_FLAGS, daemonEnv, KEY, withProcesses } from './daemon.ts';
import { type Bench, type Figures, figuresOf, type Sample } from './frame.ts';
import { pressed, requestText } from './load.ts';
import { ON_EVERY_CORE, useEveryCore } from './process.ts';

const ROOT = join(import.meta.dirname, '../../..');
const LINES = 100_000;
const WALLETS = 5_000;
const FIRST_AT = Date.UTC(2025, 0, 1);
const MIB = 1024;

export const reports: Bench = {
  name: 'reports',
  what: `${LINES} reports as lines of one request, recorded and then known`,
  target: 'every line recorded once, the memory of the daemon bounded',
  async run() {
    const folder = await mkdtemp(join(tmpdir(), 'tallyhook-bench-'));
    await chmod(folder, 0o755);
    const [program = '', ...rest] = [...ON_EVERY_CORE, process.execPath, 'src/main.ts'];
    const daemon = spawn(program, rest, {
      cwd: ROOT,
      env: { PATH: process.env.PATH, DATA_DIR: join(folder, 'data'), PORT: '0', ADMIN_KEY: KEY },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const exited = once(daemon, 'exit');
    try {
      const url = await readyAt(createInterface({ input: daemon.stdout }));
      await pause(2_000);
      const before = await memoryOf(daemon.pid);
      let peak = before;
      const watching = setInterval(async () => {
        peak = Math.max(peak, await memoryOf(daemon.pid));
      }, 50);
      const fresh = await sendAll(url, 'recorded');
      const known = await sendAll(url, 'known');
      clearInterval(watching);
      const figure = (value: number): Figures => ({ median: value, min: value, max: value });
      return [
        { what: 'new lines', unit: '/s', measured: figure(fresh) },
        { what: 'known lines', unit: '/s', measured: figure(known) },
        {
          what: 'memory of the daemon beyond that at rest',
          unit: 'MiB',
          measured: figure(peak - before),
          note: `at rest, with the sandbox inside: ${Math.round(before)} MiB`,
        },
      ];
    } finally {
      daemon.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    }
  },
};

const CALLERS = 16;
/** More than any daemon takes, so that no report is sent twice. */
const PER_S_MAX = 5_000;
/** How long the ledger needs to catch up, so that it does not disturb a round. */
const REST_MS = 3_000;

export const singleReports: Bench = {
  name: 'single-reports',
  what: 'new reports, one a request; load, daemon and Postgres share all cores',
  target: 'they share commits: several times as many as one connection sends',
  async run({ rounds, seconds }) {
    useEveryCore();
    return withProcesses(async ({ folder, start }) => {
      const service = await start(['test/tools/bench/paid-service.ts', ...CLIENT]);
      const env = await daemonEnv(folder, service.url);
      const { port } = await start([...DAEMON_FLAGS, 'src/main.ts'], env);
      let first = 0;
      const press = async (connections: number) => {
        const requests = Array.from({ length: seconds * PER_S_MAX }, (_, n) =>
          requestOf(first + n),
        );
        first += requests.length;
        const sample = await pressed({ port, requests, connections, seconds });
        await pause(REST_MS);
        return sample;
      };
      const results = [];
      for (const connections of [CALLERS, 1]) {
        // The first round does not count.
        await press(connections);
        const samples: (Sample & { p95: number })[] = [];
        for (let round = 0; round < rounds; round++) samples.push(await press(connections));
        results.push({
          what: connections === 1 ? 'one connection' : `${connections} connections`,
          unit: '/s',
          measured: figuresOf(samples),
          note: `p95 ${samples.map(({ p95 }) => p95.toFixed(1)).join(', ')} ms`,
        });
      }
      return results;
    });
  },
};

function requestOf(n: number): string {
  const body = lineOf(n);
  const head = requestText('POST', '/api/operations', {
    authorization: `Bearer ${KEY}`,
    'content-type': 'application/json',
    'content-length': String(body.length),
  });
  return `${head}${body}`;
}

async function readyAt(lines: AsyncIterable<string>): Promise<string> {
  for await (const line of lines) {
    const url = /ready at (\S+)/.exec(line)?.[1];
    if (url) return url;
  }
  throw new Error('the daemon did not start');
}

/** Resident memory in MiB. */
async function memoryOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / MIB;
}

function lineOf(n: number): string {
  return `${JSON.stringify({
    kind: 'give',
    tx_app_no: '7',
    tx_log_no: String(n + 1),
    occurred_at: new Date(FIRST_AT + n * 300).toISOString(),
    to_addr: `0x${String(n % WALLETS).padStart(40, '0')}`,
    operation_no: '1',
    amount: String(1 + (n % 97)),
    reason_type: 'grant',
    reference: `import ${n}`,
  })}\n`;
}

/** Sends every line and reads every answer. Answers lines per second. */
async function sendAll(url: string, result: 'recorded' | 'known'): Promise<number> {
  const started = performance.now();
  const answer = await request(`${url}/api/operations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/x-ndjson' },
    body: Readable.from(
      Array.from({ length: LINES }, (_, n) => n)
        .values()
        .map(lineOf),
    ),
    bodyTimeout: 600_000,
    headersTimeout: 600_000,
  });
  let last = '';
  for await (const line of createInterface({ input: answer.body })) last = line;
  const { summary } = JSON.parse(last);
  if (summary[result] !== LINES) throw new Error(`not every line was ${result}: ${last}`);
  return LINES / ((performance.now() - started) / 1_000);
}
