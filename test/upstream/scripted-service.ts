/** The service as a script over real HTTP, and an upstream that speaks to it. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { Clock } from '../../src/kernel/clock.ts';
import { jsonText } from '../../src/kernel/json.ts';
import { makeLog } from '../../src/kernel/log.ts';
import { makeMetrics } from '../../src/kernel/metrics.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import {
  openUpstream,
  type QuotaKeeper,
  type QuotaState,
  type Upstream,
  type UpstreamOptions,
  type UpstreamSettings,
} from '../../src/upstream/upstream.ts';

export interface Asked {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}
/** Status, body (an object is written as JSON) and headers; `hang` never answers. */
export type Reply = [status: number, body?: unknown, headers?: Record<string, string>] | 'hang';
export type Script = (asked: Asked) => Reply | Promise<Reply>;

export interface Scripted {
  origin: string;
  asked: Asked[];
  /** Requests by path, without query. */
  count(path: string): number;
  close(): Promise<void>;
}

const running: { close(): Promise<void> }[] = [];

/** Ends what the tests started, upstreams first. */
export async function closeAll(): Promise<void> {
  for (const one of running.splice(0).reverse()) await one.close();
}

export const TOKEN_PATH = '/v1/oauth/token';

/** Tokens are answered `token-1`, `token-2` … unless the script answers the token path itself. */
export async function startScripted(script: Script, tokens?: Script): Promise<Scripted> {
  const asked: Asked[] = [];
  let issued = 0;
  const issue: Script = () => {
    issued += 1;
    return [200, { access_token: `token-${issued}`, token_type: 'bearer', expires_in: 86_400 }];
  };
  const server: Server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk) => chunks.push(chunk));
    incoming.on('end', async () => {
      const { method = '', url = '', headers } = incoming;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString() };
      asked.push(one);
      const reply = await (url === TOKEN_PATH ? (tokens ?? issue) : script)(one);
      if (reply === 'hang') return;
      const [status, body = '', more = {}] = reply;
      outgoing.writeHead(status, { 'content-type': 'application/json', ...more });
      outgoing.end(typeof body === 'string' ? body : jsonText(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const scripted = {
    origin: `http://127.0.0.1:${port}`,
    asked,
    count: (path: string) => asked.filter(({ url }) => url.split('?')[0] === path).length,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  running.push(scripted);
  return scripted;
}

/** A keeper in memory; it outlives the upstreams that use it. */
export function memoryKeeper(rows: QuotaState[] = []): QuotaKeeper & { rows: QuotaState[] } {
  return {
    rows,
    load: async () => rows.map((row) => ({ ...row })),
    async save(state) {
      const at = rows.findIndex(({ name }) => name === state.name);
      if (at < 0) rows.push(state);
      else rows[at] = state;
    },
  };
}

export const SETTINGS: UpstreamSettings = {
  readTimeoutMs: 5000,
  writeTimeoutMs: 5000,
  connectTimeoutMs: 5000,
  bodyBytesMax: 1 << 20,
  budgetPerS: 1000,
  startRatePerS: 1000,
  concurrencyMax: 8,
  steadyShare: 0.2,
  waitingMax: 100,
  waitMs: 5000,
  forwardsMax: 32,
};

/** Everything that the upstream writes to its log, as text. */
export interface Logged {
  text: string;
}

export async function upstreamTo(
  origin: string,
  clock: Clock,
  more: Partial<Omit<UpstreamOptions, 'settings'>> & { settings?: Partial<UpstreamSettings> } = {},
): Promise<{ upstream: Upstream; logged: Logged }> {
  const logged = { text: '' };
  const log = makeLog('trace', {
    write: (line: string) => {
      logged.text += line;
    },
  });
  const upstream = await openUpstream({
    baseUrl: origin,
    authUrl: origin,
    txUrl: origin,
    clientId: 'client',
    clientSecret: 'hush-hush',
    clock,
    random: seededRandom(1),
    log,
    metrics: makeMetrics(),
    quota: memoryKeeper(),
    ...more,
    settings: { ...SETTINGS, ...more.settings },
  });
  running.push(upstream);
  return { upstream, logged };
}

/** A promise and the way to fulfil it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
