/**
 * What deliveries cost the writes of apps: gives whose events go to 50 endpoints, against the same
 * gives with nothing to deliver, through one daemon. Load, daemon, Postgres, service and receiver
 * share all cores, as they would on a small machine.
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
  type Running,
  WALLETS,
  withProcesses,
} from './daemon.ts';
import { type Bench, figuresOf, type Result, type Sample, sideBySide } from './frame.ts';
import { pressed } from './load.ts';

const ENDPOINTS = 50;
/** Each is an event of its own for every endpoint: 2,000 deliveries per second. */
const GIVES_PER_S = 40;
const CALLERS = 16;
/** Rounds of a second would hold only a few gives. */
const LENGTHEN = 5;
const ENDS_WITHIN_MS = 300_000;

export const delivery: Bench = {
  name: 'delivery',
  what: `gives beside ${ENDPOINTS * GIVES_PER_S} deliveries/s; reference: the same without any`,
  target: 'at most 2 × the latency (p50)',
  async run({ rounds, seconds }) {
    return withProcesses(async ({ folder, start }) => {
      const service = await start(['test/tools/bench/paid-service.ts', ...CLIENT, String(WALLETS)]);
      const receiver = await start(['test/tools/bench/receiver.ts']);
      const env = await daemonEnv(folder, service.url);
      const daemon = await start([...DAEMON_FLAGS, 'src/main.ts'], env);
      const subscribed = await subscriptions(
        makeApp(() => daemon.url, KEY),
        receiver,
      );
      return await compared({ daemon, receiver, subscribed, rounds, seconds: seconds * LENGTHEN });
    });
  },
};

interface Contest {
  daemon: Running;
  receiver: Running;
  /** Waits until nothing is left to deliver, then subscribes all endpoints to these types. */
  subscribed(...types: string[]): Promise<void>;
  rounds: number;
  seconds: number;
}

async function compared(contest: Contest): Promise<Result[]> {
  const { daemon, receiver, subscribed, rounds, seconds } = contest;
  const delivered: Sample[] = [];
  const press =
    (perSecond: number | undefined, ...types: string[]) =>
    async (): Promise<Sample> => {
      await subscribed(...types);
      const [before, startedAt] = [await countOf(receiver), monotonicMs()];
      const paced = perSecond === undefined ? {} : { perSecond };
      const load = { port: daemon.port, requests: GIVES, connections: CALLERS, seconds, ...paced };
      const sample = await pressed(load);
      const perS = ((await countOf(receiver)) - before) / ((monotonicMs() - startedAt) / 1000);
      if (types[0] === EVENTS && perSecond) delivered.push({ value: perS });
      return perSecond ? { ...sample, value: sample.p50 ?? 0 } : sample;
    };
  const latency = await sideBySide(
    { rounds },
    press(GIVES_PER_S, EVENTS),
    press(GIVES_PER_S, NOTHING),
  );
  const most = await sideBySide({ rounds }, press(undefined, EVENTS), press(undefined, NOTHING));
  return [
    {
      what: `${GIVES_PER_S} gives/s, p50`,
      unit: 'ms',
      ...latency,
      target: { of: 'ratio', atMost: 2 },
    },
    { what: '  deliveries meanwhile', unit: '/s', measured: figuresOf(delivered.slice(1)) },
    { what: `gives of ${CALLERS} callers`, unit: '/s', ...most, note: 'for comparison' },
  ];
}

const EVENTS = 'operation.accepted';
/** There is none of these. */
const NOTHING = 'endpoint.test';

async function countOf({ url }: Running): Promise<number> {
  return Number(await (await fetch(url)).text());
}

async function subscriptions(app: App, receiver: Running): Promise<Contest['subscribed']> {
  const done = async (...request: Parameters<App['call']>) => {
    const { status, text, json } = await app.call(...request);
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
  return async (...types) => {
    if (!(await until(isIdle, { deadlineMs: ENDS_WITHIN_MS, everyMs: 200 })))
      throw new Error(`not everything ended within ${ENDS_WITHIN_MS} ms`);
    for (const path of paths) await done('PATCH', path, { event_types: types });
  };
}
