/**
 * The rig of the gateway's tests: a gateway built as the daemon builds it, over real HTTP and a
 * database of its own, in front of a service that answers what the test says.
 */

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type Dispatcher, request } from 'undici';
import { afterAll, beforeEach } from 'vitest';
import { makeHttpServer } from '../../src/daemon/server.ts';
import { makeRefusals } from '../../src/db/checks/refusals.ts';
import type { Db } from '../../src/db/connect.ts';
import { type AnsweredRead, type GatewayDeps, makeGateway } from '../../src/gateway/gateway.ts';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import { makeTrustedProxies } from '../../src/kernel/http/trusted-proxies.ts';
import { tryParseJson } from '../../src/kernel/json.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { makeKeys } from '../../src/keys/keys.ts';
import {
  findByIdempotencyKey,
  type OperationsSettings,
  operationsDefaults,
} from '../../src/operations/operations.ts';
import { ROLES } from '../../src/resources/admin/status.ts';
import { createDatabase } from '../harness/database.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { openStages } from '../harness/stages.ts';
import { textLog, upstreamTo } from '../upstream/rig.ts';

export const CLIENT = { clientId: 'client', clientSecret: 'hush-client-secret' };
export const GIVE = '/v1/app/token/operations/1/give';
export const READ = '/v1/app/token/account?addr=x';
export const BODY = `{"toAddr":"${'0xA11CE'.padEnd(42, '0')}", "amount":10, "reasonType":"gift"}`;

/** The receiver of `BODY` stands behind an operator, so writes to it do not wait for each other. */
const WITHOUT_CONFLICTS: OperationsSettings = {
  ...operationsDefaults,
  effects: { feeMode: 'on_top', operators: new Map([['99', '0xA11CE'.padEnd(42, '0')]]) },
};

export interface ServiceRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}
export interface ServiceAnswer {
  status: number;
  headers?: [string, string][];
  body?: string | Buffer;
}
/** `reset` ends the connection without an answer; `hang` never answers. */
type Script = (request: ServiceRequest) => Answer | Promise<Answer>;
type Answer = ServiceAnswer | 'reset' | 'hang';

/** The answer to a successful payment. */
export const SUCCESS = {
  status: 200,
  headers: [['content-type', 'application/json']] as [string, string][],
  body: '{"status": 200, "data": {"tx_app_no": 1, "tx_log_no": 9007199254740993}}',
};

export interface RigResponse {
  status: number;
  headers: Dispatcher.ResponseData['headers'];
  bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: tests compare it with what they expect
  json: any;
}

export interface RigOptions
  extends Partial<
    Pick<
      GatewayDeps,
      'bodyBytesMax' | 'concurrencyMax' | 'openPathsPerS' | 'isAlive' | 'prove' | 'refusals'
    >
  > {
  writeTimeoutMs?: number;
  trustedProxies?: readonly string[];
  /** Default: that of the machine. */
  clock?: Clock;
  /** Where transactions go, such as a closed port. */
  txUrl?: string;
  /** A running service in place of the script. */
  origin?: string;
  db?: Db;
  keysDb?: Db;
  /** Measures the rate of unknown keys. */
  monotonic?: Clock;
  serviceDown?: () => boolean;
  /** Default: no write waits for another. */
  operations?: OperationsSettings;
}

export type Rig = Awaited<ReturnType<typeof openRig>>;

/**
 * Sets up a test file: a database, a gateway, and `open` for further gateways on the same database.
 * All are closed after the tests; before each the service answers SUCCESS again.
 */
export async function setUpGateway(options: RigOptions = {}) {
  const database = await createDatabase();
  const rigs: Rig[] = [];
  const open = async (more: RigOptions = {}) => {
    const rig = await openRig({ db: database.db, ...more });
    rigs.push(rig);
    return rig;
  };
  const rig = await open(options);
  beforeEach(() => {
    rig.answer(() => SUCCESS);
    rig.requests.length = 0;
    rig.reads.length = 0;
  });
  afterAll(async () => {
    for (const opened of rigs) await opened.close();
    await database.drop();
  });
  const { sql } = database.owner;
  return {
    database,
    sql,
    rig,
    open,
    /** The operation that a response names. */
    async operationOf({ headers }: RigResponse) {
      const rows = await sql<OperationRow[]>`
        select id, state, error_code, key_held, tx_log_no, reference,
          (select count(*)::int from tallyhook.transitions t
            where t.operation_id = o.id and t.deadline_at is not null) as sends
        from tallyhook.operations o where id = ${idOf({ headers })}`;
      return rows[0];
    },
  };
}

interface OperationRow {
  id: string;
  state: string;
  errorCode: string | null;
  keyHeld: boolean;
  txLogNo: bigint | null;
  reference: string | null;
  sends: number;
}

/** The operation id in a response. */
export const idOf = ({ headers }: Pick<RigResponse, 'headers'>) =>
  String(headers['tallyhook-operation']);

/** What the socket receives until the text is in it, or until its end. */
export async function received(socket: Socket, text?: string): Promise<string> {
  let all = '';
  socket.setEncoding('latin1');
  while (text === undefined || !all.includes(text)) {
    const [chunk] = await Promise.race([once(socket, 'data'), once(socket, 'end').then(() => [])]);
    if (chunk === undefined) return all;
    all += String(chunk);
  }
  return all;
}

async function openRig(options: RigOptions & { db: Db }) {
  const service = await startService();
  const { server, upstream, keys, ...parts } = await buildGateway(
    options,
    options.origin ?? service.origin,
  );
  const port = await listen(server);
  const url = `http://127.0.0.1:${port}`;
  const { secret } = options.keysDb
    ? { secret: '' }
    : await keys.create({ name: 'app', owner: `team-${port}`, scopes: ['gateway'] });
  const authorization = `Bearer ${secret}`;
  const call = async (
    method: string,
    path: string,
    {
      headers = { authorization },
      body = null,
    }: { headers?: Record<string, string>; body?: string | Buffer | null } = {},
  ): Promise<RigResponse> => {
    const response = await request(`${url}${path}`, { method: method as 'GET', headers, body });
    const bytes = Buffer.from(await response.body.arrayBuffer());
    const json = tryParseJson(bytes.toString());
    return { status: response.statusCode, headers: response.headers, bytes, json };
  };
  return {
    ...parts,
    keys,
    url,
    secret,
    /** All requests to the service but those for a client token. */
    requests: service.requests,
    answer: service.answer,
    call,
    /** A give with this rig's key, unless the headers name another. */
    give: (headers: Record<string, string> = {}, body: string | Buffer = BODY) =>
      call('POST', GIVE, { headers: { authorization, ...headers }, body }),
    /** A connection with the head of a request, by default of a give with this rig's key. */
    rawRequest(headers: string, { key = true, method = 'POST', path = GIVE } = {}): Socket {
      const socket = connect(port, '127.0.0.1');
      const own = key ? `authorization: ${authorization}\r\n` : '';
      socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\n${own}${headers}\r\n\r\n`);
      return socket;
    },
    async close() {
      await parts.gateway.drain();
      await closeServer(server);
      await upstream.close();
      await service.close();
    },
  };
}

async function startService() {
  const requests: ServiceRequest[] = [];
  let script: Script = () => SUCCESS;
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method = '', url = '', headers } = incoming;
    if (url === '/v1/oauth/token' && headers.authorization?.startsWith('Basic Y2xpZW50')) {
      outgoing.end('{"access_token":"managed","token_type":"bearer","expires_in":86400}');
      return;
    }
    const received = { method, url, headers, body: Buffer.concat(chunks) };
    requests.push(received);
    const answer = await script(received);
    if (answer === 'hang') return;
    if (answer === 'reset') {
      incoming.socket.resetAndDestroy();
      return;
    }
    outgoing.writeHead(answer.status, (answer.headers ?? []).flat());
    outgoing.end(answer.body);
  });
  return {
    origin: `http://127.0.0.1:${await listen(server)}`,
    requests,
    /** Sets what the service answers from now on. */
    answer(next: Script) {
      script = next;
    },
    close: () => closeServer(server),
  };
}

async function buildGateway(options: RigOptions & { db: Db }, origin: string) {
  const { db, writeTimeoutMs = 10_000, serviceDown = () => false } = options;
  const { clock = systemClock } = options;
  const { log, logged } = textLog();
  const settings = options.operations ?? WITHOUT_CONFLICTS;
  const { ids, metrics, operations } = await openStages(db, { clock, log, settings });
  const txUrl = options.txUrl ?? origin;
  const { upstream } = await upstreamTo(origin, clock, {
    ...CLIENT,
    txUrl,
    log,
    metrics,
    settings: { writeTimeoutMs },
  });
  const keys = makeKeys({
    db: options.keysDb ?? db,
    clock,
    random: systemRandom,
    ids,
    ...(options.monotonic ? { monotonic: options.monotonic } : {}),
  });
  const reads: AnsweredRead[] = [];
  const gateway = makeGateway({
    operations,
    upstream,
    keys,
    clock,
    log,
    metrics,
    writeTimeoutMs,
    preImage: async () => null,
    findByIdempotencyKey: (owner, key) => findByIdempotencyKey(db, owner, key),
    serviceDown: async () => serviceDown(),
    openPathsPerS: options.openPathsPerS ?? 10_000,
    queueTtlMs: 60_000,
    addressOf: makeTrustedProxies(options.trustedProxies ?? []).addressOf,
    isAlive: options.isAlive ?? (() => true),
    refusals: options.refusals ?? makeRefusals(),
    prove: options.prove,
    onConcluded: () => {},
    onRead: (read) => reads.push(read),
    bodyBytesMax: options.bodyBytesMax ?? 1_048_576,
    concurrencyMax: options.concurrencyMax ?? 100,
    readTimeoutMs: 5_000,
  });
  const notFound = { status: 404, headers: { 'content-type': 'application/problem+json' } };
  const api = { fetch: () => Response.json({ code: 'not_found', status: 404 }, notFound) };
  const server = makeHttpServer({ gateway, api, roles: ROLES });
  return { gateway, keys, operations, upstream, reads, server, logged };
}
