/**
 * Sends requests over the right connection. Polls and reads of apps have separate pools of
 * keep-alive connections; each write has a connection of its own. Nothing is retried.
 */

import type { Socket } from 'node:net';
import { buildConnector, Client, errors, Pool } from 'undici';
import { after, type Clock, monotonicMs } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { makeProxyOf, type ProxySettings } from '../../kernel/http/forward-proxy.ts';
import { serverNameOf } from '../../kernel/http/server-name.ts';
import { openTunnel } from '../../kernel/http/tunnel.ts';
import { endWithError, failedHandshake } from '../../resources/faults.ts';
import { type ExchangeRequest, type ExchangeResult, runExchange } from './exchange.ts';

/** Traffic that has connections of its own. */
type Connections = 'polls' | 'app-read' | 'app-write';

export interface Transport {
  /** Runs one exchange. Never rejects. */
  exchange(
    cls: Connections,
    request: Omit<ExchangeRequest, 'bodyBytesMax'>,
  ): Promise<ExchangeResult>;
  /** Refuses new exchanges, waits for open ones, which end by their deadlines, and disconnects. */
  close(): Promise<void>;
}

export interface TransportSettings {
  connectTimeoutMs: number;
  bodyBytesMax: number;
  proxies: ProxySettings;
  /** The size of each pool, for each origin. */
  connections: { polls: number; 'app-read': number };
}

/** One of the service's addresses: an origin, and an optional path before `/v1`. */
export interface Host {
  origin: string;
  prefix: string;
}

/** @throws Failure `bad_setting` when the text is not an http or https address */
export function parseHost(setting: string, text: string): Host {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash)
    throw new Failure('bad_setting', `${setting} must be an http or https address`);
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') };
}

/** Origin and path of a request. A path without a leading slash is left for undici to refuse. */
export function addressOf({ origin, prefix }: Host, path: string) {
  return { origin, path: path.startsWith('/') ? prefix + path : path };
}

/** @param monotonic measures how long connections of writes are idle */
export function makeTransport(
  clock: Clock,
  settings: TransportSettings,
  monotonic: Clock = { now: monotonicMs },
): Transport {
  const { bodyBytesMax } = settings;
  const connector = makeConnectors(settings.connectTimeoutMs, settings.proxies);
  const writes = makeWriteConnections(connector, clock, monotonic);
  const pools = new Map<string, Pool>();
  const open = new Set<Promise<unknown>>();
  let closed = false;

  const poolOf = (cls: 'polls' | 'app-read', origin: string): Pool => {
    const name = `${cls} ${origin}`;
    const known = pools.get(name);
    if (known) return known;
    const { connect } = connector();
    const connections = settings.connections[cls];
    const pool = new Pool(origin, { connections, allowH2: false, connect });
    pools.set(name, pool);
    return pool;
  };
  const run: Transport['exchange'] = (cls, bare) => {
    const request = { ...bare, bodyBytesMax };
    return cls === 'app-write'
      ? writes.exchange(request)
      : runExchange(poolOf(cls, request.origin), request, clock, () => {});
  };
  return {
    async exchange(cls, request) {
      const now = clock.now();
      if (closed) return { end: 'not_sent', cause: 'aborted', startedAt: now, endedAt: now };
      const running = run(cls, request);
      open.add(running);
      try {
        return await running;
      } finally {
        open.delete(running);
      }
    },
    async close() {
      closed = true;
      await Promise.allSettled(open);
      writes.close();
      await Promise.allSettled([...pools.values()].map((pool) => pool.destroy()));
      pools.clear();
    },
  };
}

/** How long a connection may be idle and still be reused, in milliseconds. */
const FRESH_MS = 1_000;
/** Idle connections of one origin at most. */
const IDLE_MAX = 64;

interface WriteConnections {
  /** Runs one exchange on a connection of its own. Never rejects. */
  exchange(request: ExchangeRequest): Promise<ExchangeResult>;
  close(): void;
}

interface Connection {
  client: Client;
  reset: () => void;
  /** Until when it may be reused, by the monotonic clock. */
  freshUntil: number;
}

/**
 * Connections of writes. A write never shares one and never waits for one: it takes an idle one or
 * opens its own. A connection becomes idle only after a complete answer and is reused only within
 * a second, so that a server rarely closes it under a write; undici closes one that the server
 * announces to keep for at most two seconds. A write whose reused connection is reset is `unknown`.
 *
 * Measured on loopback without TLS: a new connection per write costs 75 µs of CPU, a reused one 15.
 */
function makeWriteConnections(
  connector: () => Connector,
  clock: Clock,
  monotonic: Clock,
): WriteConnections {
  const idle = new Map<string, Connection[]>();
  let expiring = false;
  let closed = false;

  const take = (origin: string): Connection => {
    const connections = idle.get(origin) ?? [];
    for (let last = connections.pop(); last; last = connections.pop()) {
      if (last.freshUntil > monotonic.now() && !last.client.destroyed) return last;
      destroy(last);
    }
    const { connect, reset } = connector();
    const client = new Client(origin, { pipelining: 1, allowH2: false, connect });
    return { client, reset, freshUntil: 0 };
  };
  const giveBack = (origin: string, connection: Connection, isReusable: boolean) => {
    const connections = idle.get(origin) ?? [];
    if (closed || !isReusable || connections.length >= IDLE_MAX) return destroy(connection);
    connection.freshUntil = monotonic.now() + FRESH_MS;
    connections.push(connection);
    idle.set(origin, connections);
    expireLater();
  };
  const expireLater = () => {
    if (expiring) return;
    expiring = true;
    after(FRESH_MS, () => {
      expiring = false;
      const now = monotonic.now();
      for (const [origin, connections] of idle) {
        for (const one of connections) if (one.freshUntil <= now) destroy(one);
        const fresh = connections.filter((one) => one.freshUntil > now);
        if (fresh.length > 0) idle.set(origin, fresh);
        else idle.delete(origin);
      }
      if (idle.size > 0) expireLater();
    });
  };
  return {
    async exchange(request) {
      const connection = take(request.origin);
      const exchanged = await runExchange(connection.client, request, clock, connection.reset);
      giveBack(request.origin, connection, exchanged.end === 'answered');
      return exchanged;
    },
    close() {
      closed = true;
      for (const connections of idle.values()) connections.forEach(destroy);
      idle.clear();
    },
  };
}

/** Does not wait: the answer is complete, and the socket may take its time to close. */
function destroy({ client }: Connection): void {
  client.destroy().catch(() => {});
}

interface Connector {
  connect: buildConnector.connector;
  /** Resets the last TCP connection and drops what was not delivered. */
  reset(): void;
}

/**
 * A source of connectors that share TLS sessions. A failure of one is proof that no byte of a
 * request left. TLS runs over a TCP socket of ours, so that a write can be stopped with a reset:
 * after a plain close the kernel would still deliver what it has buffered, long after the deadline.
 * A forward proxy resolves the service's name.
 */
function makeConnectors(timeoutMs: number, proxies: ProxySettings): () => Connector {
  const tcp = buildConnector({ timeout: timeoutMs });
  const tls = buildConnector({ timeout: timeoutMs, allowH2: false });
  const proxyOf = makeProxyOf(proxies);
  return () => {
    let last: Socket | undefined;
    const connect: buildConnector.connector = (options, done) => {
      const secure = options.protocol === 'https:';
      const { hostname } = options;
      const port = options.port || (secure ? '443' : '80');
      const use = (socket: Socket, tcpSocket: Socket) => {
        last = tcpSocket;
        if (!secure) return done(null, socket);
        const servername = serverNameOf(options.hostname);
        tls({ ...options, port, servername, httpSocket: socket }, (failure, secured) => {
          if (!failure && secured) return done(null, endWithError(secured));
          tcpSocket.destroy();
          done(isLate(failure) ? failure : failedHandshake(failure), null);
        });
      };
      const proxy = proxyOf(options);
      if (proxy) {
        openTunnel(proxy, { hostname, port }, timeoutMs).then(
          (tunnel) => use(tunnel.socket, tunnel.tcp),
          (failure: Error) => done(failure, null),
        );
        return;
      }
      tcp({ hostname, protocol: 'http:', port }, (error, socket) => {
        if (error || !socket) return done(error ?? new Error('no socket'), null);
        use(socket, socket);
      });
    };
    return { connect, reset: () => reset(last) };
  };
}

function isLate(error: Error | null): error is Error {
  return error instanceof errors.ConnectTimeoutError;
}

function reset(socket: Socket | undefined): void {
  if (!socket || socket.destroyed) return;
  try {
    socket.resetAndDestroy();
  } catch {
    // The handle is closed or is no TCP handle; only a plain close is possible.
    socket.destroy();
  }
}
