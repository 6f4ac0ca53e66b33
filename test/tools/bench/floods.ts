/**
 * The latency of writes beside floods that need no key or cost nothing to send, against the same
 * writes without one, and how fast the request queue drains. Load, flood, daemon, Postgres and
 * service share all cores.
 */
import { monotonicMs } from '../../../src/kernel/clock.ts';
import { type App, makeApp } from '../../harness/app.ts';
import { until } from '../../harness/until.ts';
import {
  CLIENT,
  DAEMON_FLAGS,
  daemonEnv,
  GIVES,
  KEY,
  type Processes,
  type Running,
  WALLETS,
  withProcesses,
} from './daemon.ts';
import { type Bench, type Result, type Sample, sideBySide } from './frame.ts';
import { pressed } from './load.ts';

const FLOODS = ['unknown keys', '/healthz', '/metrics', 'idle long polls', 'half-sent requests'];
const GIVES_PER_S = 20;
const CALLERS = 16;
/** Rounds of a second would hold only a few gives. */
const LENGTHEN = 3;
const QUEUED = 1_000;
const ENDS = { deadlineMs: 120_000, everyMs: 50 };

export const floods: Bench = {
  name: 'floods',
  what: `${GIVES_PER_S} gives/s beside floods; reference: the same without`,
  target: 'at most 3 × the latency (p95)',
  long: true,
  async run({ rounds, seconds }) {
    return withProcesses(async (processes) => {
      const { folder, start } = processes;
      const service = await start(['test/tools/bench/paid-service.ts', ...CLIENT, String(WALLETS)]);
      const env = await daemonEnv(folder, service.url);
      const daemon = await start([...DAEMON_FLAGS, 'src/main.ts'], env);
      const contest = { processes, service, daemon, rounds, seconds };
      const results: Result[] = [];
      for (const kind of FLOODS) results.push(await floodedBy(contest, kind));
      return [...results, await drained(contest)];
    });
  },
};

interface Contest {
  processes: Processes;
  service: Running;
  daemon: Running;
  rounds: number;
  seconds: number;
}

async function floodedBy(contest: Contest, kind: string): Promise<Result> {
  const { processes, daemon, rounds, seconds } = contest;
  const gives = async (): Promise<Sample> => {
    const load = { port: daemon.port, requests: GIVES, connections: CALLERS };
    const { p50, p95, p99 } = await pressed({
      ...load,
      seconds: seconds * LENGTHEN,
      perSecond: GIVES_PER_S,
    });
    return { value: p95, p50, p99 };
  };
  const flooded = async () => {
    const flood = await processes.start(['test/tools/bench/flood.ts', kind, daemon.url, KEY]);
    const sample = await gives();
    await flood.stop();
    return sample;
  };
  const compared = await sideBySide({ rounds }, flooded, gives);
  const target = { of: 'ratio', atMost: 3 } as const;
  return { what: `p95 beside ${kind}`, unit: 'ms', ...compared, target };
}

/** How many queued writes per second are sent and answered after a maintenance. */
async function drained(contest: Contest): Promise<Result> {
  const { service, daemon, rounds, seconds } = contest;
  const app = makeApp(() => daemon.url, KEY);
  const maintain = (state: 'on' | 'off') =>
    makeApp(() => service.url).call('POST', '/_sandbox/maintenance', { state });
  const drain = async () => {
    await maintain('on');
    const before = await countAccepted(app);
    await queueGives(app);
    await maintain('off');
    const first = await until(isBeyond(app, before), ENDS);
    const began = monotonicMs();
    const rest = QUEUED - ((first ?? before) - before);
    await until(isBeyond(app, before + QUEUED - 1), ENDS);
    return { value: rest / ((monotonicMs() - began) / 1_000) };
  };
  const direct = () =>
    pressed({ port: daemon.port, requests: GIVES, connections: CALLERS, seconds });
  const compared = await sideBySide({ rounds }, drain, direct);
  return { what: `${QUEUED} queued gives are sent`, unit: '/s', ...compared };
}

async function queueGives(app: App): Promise<void> {
  const bodies = GIVES.slice(0, QUEUED).map((give) => give.slice(give.indexOf('{')));
  const caller = async () => {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
      const { status, text } = await app.call('POST', '/v1/app/token/operations/1/give', body, {
        prefer: 'respond-async',
        'content-type': 'application/json',
      });
      if (status !== 202) throw new Error(`a queued give was answered ${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

async function countAccepted(app: App): Promise<number> {
  const { text } = await app.call('GET', '/metrics');
  const line = /^tallyhook_operations_total\{kind="give",state="accepted"\} (\d+)$/m.exec(text);
  return Number(line?.[1] ?? 0);
}

/** The count, once it exceeds the bound. */
function isBeyond(app: App, bound: number): () => Promise<number | undefined> {
  return async () => {
    const count = await countAccepted(app);
    return count > bound ? count : undefined;
  };
}
