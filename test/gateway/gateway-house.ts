/**
 * A gateway as the daemon builds it, over real HTTP: a clone of the database in front, a service of
 * the test behind, which answers the bytes that it is told to.
 */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type Dispatcher, request } from 'undici';
import { makeHttpServer } from '../../src/daemon/server.ts';
import type { Db } from '../../src/db/connect.ts';
import { registerDaemon } from '../../src/db/leases.ts';
import {
  type AnsweredRead,
  type Gateway,
  type GatewayDeps,
  makeGateway,
} from '../../src/gateway/gateway.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { parseJson } from '../../src/kernel/json.ts';
import { makeLog } from '../../src/kernel/log.ts';
import { makeMetrics } from '../../src/kernel/metrics.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { type Keys, makeKeys } from '../../src/keys/keys.ts';
import {
  findByIdempotencyKey,
  makeOperations,
  type Operations,
  type OperationsSettings,
  operationsDefaults,
} from '../../src/operations/operations.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import { openUpstream } from '../../src/upstream/upstream.ts';
import { memoryQuotaStore, SETTINGS } from '../upstream/rig.ts';

export interface Asked {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}
/** Status, raw header pairs and bytes; `reset` ends the connection without an answer. */
export type Reply =
  | { status: number; headers?: [string, string][]; body?: string | Buffer }
  | 'reset'
  | 'hang';

export interface Answered {
  status: number;
  headers: Dispatcher.ResponseData['headers'];
  bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: answers are what the test says they are
  json: any;
}

export interface Rig {
  url: string;
  /** Everything that the service was asked, tokens left out. */
  asked: Asked[];
  /** What the service answers from now on. */
  answer(script: (asked: Asked) => Reply | Promise<Reply>): void;
  call(
    method: string,
    path: string,
    given?: { headers?: Record<string, string>; body?: string | Buffer | null },
  ): Promise<Answered>;
  /** The secret of a key with the scope `gateway`. */
  secret: string;
  keys: Keys;
  operations: Operations;
  gateway: Gateway;
  observed: AnsweredRead[];
  logged(): string;
  close(): Promise<void>;
}

/** The answer of a give that went well. */
export const DONE: Reply = {
  status: 200,
  headers: [['content-type', 'application/json']],
  body: '{"status": 200, "data": {"tx_app_no": 1, "tx_log_no": 9007199254740993}}',
};
export const GIVE = '/v1/app/token/operations/1/give';
export const BODY = `{"toAddr":"${'0xA11CE'.padEnd(42, '0')}", "amount":10, "reasonType":"gift"}`;

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

async function startService(): Promise<{
  origin: string;
  asked: Asked[];
  answer: Rig['answer'];
  close(): Promise<void>;
}> {
  const asked: Asked[] = [];
  let script: (asked: Asked) => Reply | Promise<Reply> = () => DONE;
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method = '', url = '', headers } = incoming;
    if (url === '/v1/oauth/token' && headers.authorization?.startsWith('Basic Y2xpZW50')) {
      outgoing.end('{"access_token":"managed","token_type":"bearer","expires_in":86400}');
      return;
    }
    const one = { method, url, headers, body: Buffer.concat(chunks) };
    asked.push(one);
    const reply = await script(one);
    if (reply === 'hang') return;
    if (reply === 'reset') {
      incoming.socket.resetAndDestroy();
      return;
    }
    outgoing.writeHead(reply.status, (reply.headers ?? []).flat());
    outgoing.end(reply.body);
  });
  const port = await listen(server);
  return {
    origin: `http://127.0.0.1:${port}`,
    asked,
    answer(next) {
      script = next;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What our own API says in this house. */
const NOTHING = { status: 404, headers: { 'content-type': 'application/problem+json' } };

/** What a case may want otherwise. */
export interface PostingRequest
  extends Partial<Pick<GatewayDeps, 'bodyBytesMax' | 'concurrencyMax'>> {
  writeTimeoutMs?: number;
  /** Where transactions go instead, such as a port where nobody listens. */
  txUrl?: string;
  /** A service that runs already, instead of the script. */
  origin?: string;
  keysDb?: Db;
  isAlive?: () => boolean;
  serviceDown?: () => boolean;
  openPathsPerS?: number;
  /** What the journal knows of wallets; left out: nothing, so that no write waits for another. */
  operations?: OperationsSettings;
}

export async function openRig(db: Db, wanted: PostingRequest = {}): Promise<Rig> {
  const service = await startService();
  const parts = await buildGateway(db, wanted, wanted.origin ?? service.origin);
  const { gateway, keys, upstream, url, server } = parts;
  const owner = `team-${service.origin}`;
  const made = wanted.keysDb
    ? undefined
    : await keys.create({ name: 'app', owner, scopes: ['gateway'] });
  const secret = made?.secret ?? '';
  return {
    url,
    asked: service.asked,
    answer: service.answer,
    secret,
    keys,
    operations: parts.operations,
    gateway,
    observed: parts.observed,
    logged: parts.logged,
    async call(method, path, { headers, body } = {}) {
      const answer = await request(`${url}${path}`, {
        method: method as 'GET',
        headers: headers ?? { authorization: `Bearer ${secret}` },
        body: body ?? null,
      });
      const bytes = Buffer.from(await answer.body.arrayBuffer());
      let json: unknown;
      try {
        json = parseJson(bytes.toString());
      } catch {
        json = undefined;
      }
      return { status: answer.statusCode, headers: answer.headers, bytes, json };
    },
    async close() {
      await gateway.drain();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await upstream.close();
      await service.close();
    },
  };
}

/** Every part behind the gateway, made as `daemon/` makes them. */
async function buildGateway(db: Db, wanted: PostingRequest, origin: string) {
  const clock = systemClock;
  const ids = makeIds(clock, systemRandom);
  const metrics = makeMetrics();
  let text = '';
  const log = makeLog('trace', {
    write: (line: string) => {
      text += line;
    },
  });
  const writeTimeoutMs = wanted.writeTimeoutMs ?? 10_000;
  const upstream = await openUpstream({
    baseUrl: origin,
    authUrl: origin,
    txUrl: wanted.txUrl ?? origin,
    clientId: 'client',
    clientSecret: 'hush-client-secret',
    clock,
    random: systemRandom,
    log,
    metrics,
    quota: memoryQuotaStore(),
    settings: { ...SETTINGS, writeTimeoutMs },
  });
  const daemon = await registerDaemon(db, ids.next('dmn'), clock.now(), 3_600_000);
  const outbox = makeOutbox({ clock, ids, fanOut: async () => {} });
  const settings = wanted.operations ?? operationsDefaults;
  const operations = makeOperations({ db, clock, ids, daemon, outbox, settings });
  const keys = makeKeys({ db: wanted.keysDb ?? db, clock, random: systemRandom, ids });
  const observed: AnsweredRead[] = [];
  const gateway = makeGateway({
    operations,
    upstream,
    keys,
    clock,
    log,
    metrics,
    preImage: async () => null,
    findByIdempotencyKey: (owner, key) => findByIdempotencyKey(db, owner, key),
    serviceDown: async () => wanted.serviceDown?.() ?? false,
    openPathsPerS: wanted.openPathsPerS ?? 10_000,
    queueTtlMs: 60_000,
    isAlive: wanted.isAlive ?? (() => true),
    onConcluded: () => {},
    onRead: (read) => observed.push(read),
    bodyBytesMax: wanted.bodyBytesMax ?? 1_048_576,
    concurrencyMax: wanted.concurrencyMax ?? 100,
    readTimeoutMs: 5_000,
    writeTimeoutMs,
  });
  const api = { fetch: () => Response.json({ code: 'not_found', status: 404 }, NOTHING) };
  const server = makeHttpServer({ gateway, api });
  const url = `http://127.0.0.1:${await listen(server)}`;
  return { gateway, keys, operations, upstream, observed, server, url, logged: () => text };
}
