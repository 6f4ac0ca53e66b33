/**
 * The price of recording every write: gives through the whole daemon, a process of its own on an
 * embedded database, against proxies that record nothing in front of the same service. Load,
 * daemon, Postgres, proxy and service share all cores, as they would on a small machine. One proxy
 * is the frame's own helper, which the target refers to; the other is tuned to the last header.
 */
import { pause } from '../../../src/kernel/clock.ts';
import { execute } from '../../harness/temporary-server.ts';
import {
  CLIENT,
  DAEMON_FLAGS,
  daemonEnv,
  GIVES,
  type Processes,
  type Running,
  WALLETS,
  withProcesses,
} from './daemon.ts';
import { type Bench, figuresOf, type Result, type Sample, sideBySide } from './frame.ts';
import { pressed } from './load.ts';

const CALLERS = 64;
/** How long the stages behind the gateway need to catch up, so that they do not disturb a round. */
const REST_MS = 2_000;

export const gateway: Bench = {
  name: 'gateway',
  what: 'gives through the daemon; reference: bare Hono and undici proxies that record nothing',
  target: 'at least 0.35 × the writes per second, at most 4 ms more for one write (p50)',
  async run({ rounds, seconds, databaseUrl }) {
    return withProcesses(async ({ folder, start, stopLater }) => {
      const service = await start(['test/tools/bench/paid-service.ts', ...CLIENT, String(WALLETS)]);
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
        const other = await startOn(await otherDatabase(databaseUrl, stopLater));
        const compared = (callers: number) =>
          sideBySide({ rounds }, press(other, callers), press(daemon, callers));
        return [
          { what, unit: '/s', ...(await compared(CALLERS)), target: { of: 'ratio', atLeast: 0.8 } },
          { what: 'gives, one at a time', unit: '/s', ...(await compared(1)) },
        ];
      }
      const token = await tokenOf(service.url);
      const bare = await start(['test/tools/bench/bare-proxy.ts', service.url, token]);
      const lean = await start(['test/tools/bench/lean-proxy.ts', service.url, token]);
      const many = (other: Running) =>
        sideBySide({ rounds }, press(daemon, CALLERS), press(other, CALLERS));
      return [
        { what, unit: '/s', ...(await many(bare)), target: { of: 'ratio', atLeast: 0.35 } },
        { what: `${what}, lean proxy`, unit: '/s', ...(await many(lean)), note: 'for comparison' },
        await oneAtATime(rounds, press(daemon, 1), press(lean, 1)),
      ];
    });
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

/** A database of its own on that server, for as long as the processes run. */
async function otherDatabase(serverUrl: string, stopLater: Processes['stopLater']) {
  const name = `tallyhook_bench_${process.pid}`;
  await execute(serverUrl, `create database ${name}`);
  stopLater({ stop: () => execute(serverUrl, `drop database ${name} with (force)`) });
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
