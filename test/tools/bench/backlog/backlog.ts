/**
 * Whether a backlog delays others: how long events take to ten healthy endpoints, beside an
 * endpoint with a million waiting deliveries that answers after 100 ms and 9,988 dead endpoints,
 * half of which refuse and half of which never answer; against a daemon without them. The two are
 * measured in turns, each started for its turn, on one Postgres, whose log says how long claims
 * take. Everything shares all cores.
 */
import { join } from 'node:path';
import { openEmbedded } from '../../../../src/db/embedded/embedded.ts';
import { migrate } from '../../../../src/db/migrate.ts';
import { type App, makeApp } from '../../../harness/app.ts';
import { execute } from '../../../harness/temporary-server.ts';
import {
  CLIENT,
  DAEMON_FLAGS,
  daemonEnv,
  KEY,
  type Processes,
  type Running,
  WALLETS,
  withProcesses,
} from '../daemon.ts';
import { type Bench, figuresOf, type Sample, sideBySide } from '../frame.ts';
import { give, waitsOf } from '../waits.ts';
import { claimTimes, sizeOf } from './claims.ts';
import { fillQueue, MASTER_KEY, makeDue } from './queue.ts';

const HEALTHY = 10;
const PER_SECOND = 20;
const LENGTHEN = 20;
const WARM_S = 5;
const ACCEPTED = 'operation.accepted';

export const backlog: Bench = {
  name: 'backlog',
  what: 'events to 10 endpoints beside 1,000,000 waiting deliveries and 9,988 dead endpoints',
  target: 'at most 1.25 × the wait (p95) without them; claims within 5 ms (p95)',
  long: true,
  async run({ rounds, seconds }) {
    return withProcesses(async (processes) => {
      const { folder, start, stopLater } = processes;
      const server = await openEmbedded({ directory: join(folder, 'postgres') });
      stopLater(server);
      const log = join(folder, 'postgres', 'postgres.log');
      const service = await start(['test/tools/bench/paid-service.ts', ...CLIENT, String(WALLETS)]);
      const receiver = await start(['test/tools/bench/fan-out-receiver.ts']);
      const contest: Contest = { processes, service, receiver, log, seconds: seconds * LENGTHEN };
      const without = await prepared(contest, server.url, 'without');
      const beside = await prepared(contest, server.url, 'beside');
      await fillQueue(beside, receiver);
      const claims: [beside: Sample[], without: Sample[]] = [[], []];
      const waits = await sideBySide(
        { rounds },
        async () => {
          await makeDue(beside);
          return measured(contest, beside, claims[0]);
        },
        () => measured(contest, without, claims[1]),
      );
      const [ours, theirs] = claims.map((all) => figuresOf(all.slice(1)));
      if (!ours || !theirs) throw new Error('nothing was measured');
      return [
        {
          what: `answer to receipt at ${PER_SECOND * HEALTHY}/s, p95`,
          unit: 'ms',
          ...waits,
          target: { of: 'ratio', atMost: 1.25 },
        },
        {
          what: 'claims, p95',
          unit: 'ms',
          measured: ours,
          reference: theirs,
          ratio: ours.median / theirs.median,
          target: { of: 'measured', atMost: 5 },
        },
      ];
    });
  },
};

interface Contest {
  processes: Processes;
  service: Running;
  receiver: Running;
  /** The log of Postgres. */
  log: string;
  /** Of each turn. */
  seconds: number;
}

/** A database with the healthy endpoints, and the slow one, which is disabled and gets an event. */
async function prepared(contest: Contest, server: string, name: string): Promise<string> {
  await execute(server, `create database ${name}`);
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href;
  await migrate(url);
  await execute(url, `alter database ${name} set log_min_duration_statement = 0`);
  const { receiver } = contest;
  await withDaemon(contest, url, async (daemon) => {
    const app = makeApp(() => daemon.url, KEY);
    for (let n = 1; n <= HEALTHY; n++) await subscribe(app, `127.0.0.${n}:${receiver.port}/hook`);
    const slow = await subscribe(app, `127.0.1.1:${receiver.port}/late`);
    await done(app, 'POST', `/api/endpoints/${slow}/disable`);
    await give(daemon, 0);
  });
  return url;
}

async function subscribe(app: App, address: string): Promise<string> {
  const body = { url: `http://${address}`, event_types: [ACCEPTED] };
  return (await done(app, 'POST', '/api/endpoints', body)).id;
}

async function done(app: App, ...call: Parameters<App['call']>) {
  const { status, text, json } = await app.call(...call);
  if (status >= 300) throw new Error(`answered ${status} ${text}`);
  return json;
}

async function withDaemon<T>(
  { processes, service }: Contest,
  url: string,
  work: (daemon: Running) => Promise<T>,
): Promise<T> {
  const env = await daemonEnv(processes.folder, service.url);
  const daemon = await processes.start([...DAEMON_FLAGS, 'src/main.ts'], {
    ...env,
    DATABASE_URL: url,
    MASTER_KEY,
  });
  try {
    return await work(daemon);
  } finally {
    await daemon.stop();
  }
}

/** One turn: a daemon on this database, with some gives first that do not count. */
async function measured(contest: Contest, url: string, claims: Sample[]): Promise<Sample> {
  const { receiver, log, seconds } = contest;
  return withDaemon(contest, url, async (daemon) => {
    const pace = { perSecond: PER_SECOND, each: HEALTHY };
    await waitsOf(daemon, receiver, { ...pace, seconds: WARM_S });
    const from = await sizeOf(log);
    const sample = await waitsOf(daemon, receiver, { ...pace, seconds });
    claims.push(await claimTimes(log, from));
    return sample;
  });
}
