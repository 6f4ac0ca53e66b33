/**
 * Deliveries of a whole daemon when each event goes to 50 endpoints, against a bare loop of signed
 * POSTs to the same receiver; how long they wait at a rate below that; and the time from a write's
 * answer, which its commit precedes, to the receipt of its event by one endpoint. Load, daemon,
 * Postgres, service and receiver share all cores.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { monotonicMs, pause } from '../../../src/kernel/clock.ts';
import { type App, makeApp } from '../../harness/app.ts';
import { until } from '../../harness/until.ts';
import {
  CLIENT,
  DAEMON_FLAGS,
  daemonEnv,
  KEY,
  type Running,
  WALLETS,
  withProcesses,
} from './daemon.ts';
import { type Bench, figuresOf, type Result, type Sample, sideBySide } from './frame.ts';
import { ON_EVERY_CORE } from './process.ts';
import { forget, give, received, waitsOf } from './waits.ts';

const ENDPOINTS = 50;
/** Events of a burst, a multiple of the callers that make them. */
const EVENTS = 640;
const CALLERS = 16;
/** For the waits: 20 events are 1,000 deliveries per second. */
const EVENTS_PER_S = 20;
const SINGLE_PER_S = 50;
const LENGTHEN = 10;
const ENDS_WITHIN_MS = 300_000;
/** What else the daemon does after the gives of a burst is over by then. */
const REST_MS = 6_000;
const ACCEPTED = 'operation.accepted';
const NOTHING = 'endpoint.test';

export const fanOut: Bench = {
  name: 'fan-out',
  what: `each event to ${ENDPOINTS} endpoints; reference: a bare loop of signed POSTs`,
  target: 'at least 0.6 × of the loop; waits under 150 ms and 5 ms (p95)',
  async run({ rounds, seconds }) {
    return withProcesses(async ({ folder, start }) => {
      const service = await start(['test/tools/bench/paid-service.ts', ...CLIENT, String(WALLETS)]);
      const receiver = await start(['test/tools/bench/fan-out-receiver.ts']);
      const env = await daemonEnv(folder, service.url);
      const daemon = await start([...DAEMON_FLAGS, 'src/main.ts'], env);
      const app = makeApp(() => daemon.url, KEY);
      const endpoints = await subscriptions(app, receiver);
      const most = await sideBySide(
        { rounds },
        () => burst(daemon, receiver, endpoints),
        () => loop(receiver),
      );
      const waits = (count: number, perSecond: number) => async (): Promise<Sample> => {
        await endpoints.subscribe(count, ACCEPTED);
        return waitsOf(daemon, receiver, { perSecond, seconds: seconds * LENGTHEN, each: count });
      };
      const many = await repeated(rounds, waits(ENDPOINTS, EVENTS_PER_S));
      const single = await repeated(rounds, waits(1, SINGLE_PER_S));
      return [
        { what: 'deliveries', unit: '/s', ...most, target: { of: 'ratio', atLeast: 0.6 } },
        waitResult(`wait at ${EVENTS_PER_S * ENDPOINTS}/s, p95`, many, 150),
        waitResult(`answer to receipt at ${SINGLE_PER_S}/s, p95`, single, 5),
      ];
    });
  },
};

function waitResult(what: string, samples: readonly Sample[], atMost: number): Result {
  return { what, unit: 'ms', measured: figuresOf(samples), target: { of: 'measured', atMost } };
}

async function repeated(rounds: number, one: () => Promise<Sample>): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let round = 0; round <= rounds; round++) samples.push(await one());
  return samples.slice(1);
}

interface Endpoints {
  /** Waits until nothing is left to deliver, then subscribes so many to this type only. */
  subscribe(count: number, type: string): Promise<void>;
  set(state: 'enable' | 'disable'): Promise<void>;
}

/** Deliveries per second of events that were held, from when their endpoints are enabled. */
async function burst(daemon: Running, receiver: Running, endpoints: Endpoints): Promise<Sample> {
  await endpoints.subscribe(ENDPOINTS, ACCEPTED);
  await endpoints.set('disable');
  await forget(receiver);
  for (let n = 0; n < EVENTS; n += CALLERS)
    await Promise.all(Array.from({ length: CALLERS }, (_, caller) => give(daemon, n + caller)));
  await pause(REST_MS);
  const startedAt = monotonicMs();
  await endpoints.set('enable');
  await received(receiver, EVENTS * ENDPOINTS);
  return { value: (EVENTS * ENDPOINTS) / ((monotonicMs() - startedAt) / 1000) };
}

async function loop(receiver: Running): Promise<Sample> {
  const args = ['test/tools/bench/signed-posts.ts', receiver.port, ENDPOINTS, EVENTS * ENDPOINTS];
  const [program = '', ...rest] = [...ON_EVERY_CORE, process.execPath, ...args.map(String)];
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  await once(child, 'exit');
  return { value: Number(/ready at http:\/\/(\S+)/.exec(text)?.[1]) };
}

async function subscriptions(app: App, receiver: Running): Promise<Endpoints> {
  const done = async (...call: Parameters<App['call']>) => {
    const { status, text, json } = await app.call(...call);
    if (status >= 300) throw new Error(`answered ${status} ${text}`);
    return json;
  };
  const paths: string[] = [];
  for (let n = 1; n <= ENDPOINTS; n++) {
    const url = `http://127.0.0.${n}:${receiver.port}/hook`;
    const { id } = await done('POST', '/api/endpoints', { url, event_types: [NOTHING] });
    paths.push(`/api/endpoints/${id}`);
  }
  const isIdle = async () => {
    const { stages } = await done('GET', '/api/status');
    const { waiting } = stages.find(({ stage }: { stage: string }) => stage === 'webhooks');
    return waiting === 0 || undefined;
  };
  return {
    async subscribe(count, type) {
      if (!(await until(isIdle, { deadlineMs: ENDS_WITHIN_MS, everyMs: 200 })))
        throw new Error(`not everything ended within ${ENDS_WITHIN_MS} ms`);
      for (const [n, path] of paths.entries())
        await done('PATCH', path, { event_types: [n < count ? type : NOTHING] });
    },
    async set(state) {
      await Promise.all(paths.map((path) => done('POST', `${path}/${state}`)));
    },
  };
}
