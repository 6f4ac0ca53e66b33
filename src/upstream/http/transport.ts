/**
 * Sends requests over the right connection. Polls and reads of apps have separate pools of
 * keep-alive connections; writes have their own (write-connections.ts). Nothing is retried.
 */
import { Pool } from 'undici';
import { type Clock, monotonicMs } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { makeConnectors } from './connect.ts';
import { type ExchangeRequest, type ExchangeResult, runExchange } from './exchange.ts';
import { makeWriteConnections } from './write-connections.ts';

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
  const connector = makeConnectors(settings.connectTimeoutMs);
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
