/**
 * A million watched wallets: added by one stream to a daemon, then polled by another one. Measures
 * their memory, and on the filled table the statements that every poll needs and the counts of
 * all targets. Their schedule is spread over a day; a thousandth of them is due.
 */
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { WRITER } from '../../../src/db/access/roles.ts';
import { connect, type Db } from '../../../src/db/connect.ts';
import { pause, systemClock } from '../../../src/kernel/clock.ts';
import { makeIds } from '../../../src/kernel/ids.ts';
import { systemRandom } from '../../../src/kernel/random.ts';
import { plannedAt, recordObservation } from '../../../src/observer/observations.ts';
import { countRateClasses } from '../../../src/observer/schedule/pricing.ts';
import { claimDue, countLate, type DueTarget } from '../../../src/observer/targets.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { ADMIN_KEY, CLIENT, environmentOf, spawnDaemon } from '../../harness/daemon.ts';
import { execute, openTemporaryServer } from '../../harness/temporary-server.ts';
import { type Bench, figuresOf, quantileOf, type Result, type Target } from './frame.ts';
import { useEveryCore } from './process.ts';

const TARGETS = 1_000_000;
const CLAIMS = 300;
const CLAIM_MAX = 16;
const COUNTS = 3;
const POLLING_MS = 20_000;
const DAY_MS = 86_400_000;
const SETTINGS = {
  http: { port: 0 },
  log: { level: 'warn' },
  upstream: { budget_per_s: 100, initial_rate_per_s: 100 },
};

export const targets: Bench = {
  name: 'targets',
  what: `${TARGETS.toLocaleString('en')} watched wallets; statements are at p95`,
  target: 'claim under 5 ms, daemon under 250 MB',
  long: true,
  async run() {
    useEveryCore();
    const server = await openTemporaryServer('bench');
    try {
      const url = await server.createDatabase('targets');
      const memory = await withDaemons(url);
      const spread = `interval '1 ms' * random() * ${DAY_MS}`;
      await execute(
        url,
        `update tallyhook.targets set lease_until = null, pending = false,
          next_poll_at = now() - interval '86 s' + ${spread};
        delete from tallyhook.unprocessed_observations`,
      );
      await execute(url, 'vacuum (analyze) tallyhook.targets');
      const db = connect({ url, role: WRITER, max: 2 });
      try {
        return [...memory, ...(await statements(db))];
      } finally {
        await db.end();
      }
    } finally {
      await server.close();
    }
  },
};

/** Adds the targets through one daemon and lets another one poll them. */
async function withDaemons(url: string): Promise<Result[]> {
  const sandbox = await startSandbox({ ...CLIENT, seed: 1, clock: systemClock });
  const start = () => spawnDaemon(environmentOf(url, sandbox.url), SETTINGS);
  let daemon = await start();
  const memory = async (line: 'VmRSS' | 'VmHWM') => {
    const status = await readFile(`/proc/${daemon.child.pid}/status`, 'utf8');
    return Number(new RegExp(`${line}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1_024;
  };
  try {
    const idle = await memory('VmRSS');
    const started = performance.now();
    const answer = await request(`${daemon.url}/api/watches`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'text/csv' },
      body: Readable.from(csv()),
      headersTimeout: 600_000,
      bodyTimeout: 600_000,
    });
    const text = await answer.body.text();
    const addS = (performance.now() - started) / 1_000;
    const adding = await memory('VmHWM');
    await daemon.stop();
    daemon = await start();
    await pause(POLLING_MS);
    const polling = await memory('VmHWM');
    return [
      {
        ...one('add them by one stream', 's', addS),
        note: text.trimEnd().split('\n').at(-1) ?? '',
      },
      one('memory of a daemon with none', 'MB', idle),
      one('highest of the one that adds them', 'MB', adding),
      { ...one('highest of one that polls 100 per s', 'MB', polling), target: atMost(250) },
    ];
  } finally {
    await daemon.stop();
    await sandbox.close();
  }
}

function* csv(): Generator<string> {
  yield 'addr\n';
  for (let from = 0; from < TARGETS; from += 1_000) {
    const rows = Array.from({ length: 1_000 }, (_, n) => `0x${String(from + n).padStart(40, '0')}`);
    yield `${rows.join('\n')}\n`;
  }
}

async function statements(db: Db): Promise<Result[]> {
  const ids = makeIds(systemClock, systemRandom);
  const claims: number[] = [];
  const records: number[] = [];
  for (let n = 0; n < CLAIMS; n += 1) {
    const options = { leaseMs: 600_000, steadyFirst: true };
    let claimed: DueTarget[] = [];
    claims.push(
      await timeOf(async () => {
        claimed = (await claimDue(db, systemClock.now(), CLAIM_MAX, options)).targets;
      }),
    );
    // As in a daemon: what was claimed is recorded and due later, and in no later claim's way.
    for (const { name, kind, addr } of claimed) {
      const now = systemClock.now();
      const record = { addr, balance: 5n, status: 1 };
      const seen = {
        id: ids.next('obs'),
        target: name,
        kind,
        result: 'seen' as const,
        cause: null,
        startedAt: now - 5,
        endedAt: now,
        record,
      };
      const row = () => db.begin((tx) => recordObservation(tx, seen, plannedAt(now + DAY_MS)));
      records.push(await timeOf(row));
    }
  }
  const classes = await timesOf(COUNTS, () => countRateClasses(db));
  const late = await timesOf(COUNTS, () => countLate(db, systemClock.now() - DAY_MS));
  return [
    { ...at95('claim 16 due targets', claims), target: atMost(5) },
    at95('record a poll', records),
    at95('count all by rate, at most 1 % of the time', classes),
    at95('count late ones, at most 1 % of the time of one daemon', late),
  ];
}

/** Milliseconds of each. */
async function timesOf(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n += 1) times.push(await timeOf(work));
  return times;
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function at95(what: string, times: readonly number[]): Result {
  const sorted = times.toSorted((a, b) => a - b);
  const [value, p50, p99] = [0.95, 0.5, 0.99].map((share) => quantileOf(sorted, share));
  return { what, unit: 'ms', measured: figuresOf([{ value: value ?? 0, p50, p99 }]) };
}

function one(what: string, unit: string, value: number): Result {
  return { what, unit, measured: figuresOf([{ value }]) };
}

function atMost(bound: number): Target {
  return { of: 'measured', atMost: bound };
}
