/**
 * The lanes on which requests travel. Looks and reads of apps have pools of their own, with
 * connections that are kept; every write has a connection of its own that is never used again, so
 * that it waits for nobody and no stale connection can swallow it. Nothing is retried.
 */
import { Client, Pool } from 'undici';
import type { Clock } from '../kernel/clock.ts';
import { type Connected, makeConnectors } from './connections.ts';
import { type Exchanged, type ExchangeRequest, runExchange } from './exchange.ts';
import type { TrafficClass } from './words.ts';

export interface Transport {
  /** One exchange. Never rejects. */
  exchange(lane: TrafficClass, request: Omit<ExchangeRequest, 'bodyBytesMax'>): Promise<Exchanged>;
  /** Begins no more, waits for open exchanges, which end by their deadlines, and disconnects. */
  close(): Promise<void>;
}

export interface TransportSettings {
  connectTimeoutMs: number;
  bodyBytesMax: number;
  /** Connections that are kept, for each origin. */
  connections: { looks: number; 'app-read': number };
}

export function makeTransport(clock: Clock, settings: TransportSettings): Transport {
  const { bodyBytesMax } = settings;
  const connector = makeConnectors(settings.connectTimeoutMs);
  const pools = new Map<string, Pool>();
  const open = new Set<Promise<unknown>>();
  let closed = false;

  const poolOf = (lane: 'looks' | 'app-read', origin: string): Pool => {
    const name = `${lane} ${origin}`;
    const known = pools.get(name);
    if (known) return known;
    const { connect } = connector();
    const made = new Pool(origin, {
      connections: settings.connections[lane],
      allowH2: false,
      connect,
    });
    pools.set(name, made);
    return made;
  };
  const exchange: Transport['exchange'] = (lane, bare) => {
    const request = { ...bare, bodyBytesMax };
    return lane === 'app-write'
      ? exchangeAlone(connector(), request, clock)
      : runExchange(poolOf(lane, request.origin), request, clock, () => {});
  };
  return {
    async exchange(lane, request) {
      const now = clock.now();
      if (closed) return { end: 'not_sent', cause: 'aborted', startedAt: now, endedAt: now };
      const running = exchange(lane, request);
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
      await Promise.allSettled([...pools.values()].map((pool) => pool.destroy()));
      pools.clear();
    },
  };
}

/** An exchange on a connection that is made for it and ends with it. */
async function exchangeAlone(
  { connect, reset }: Connected,
  request: ExchangeRequest,
  clock: Clock,
): Promise<Exchanged> {
  const client = new Client(request.origin, { pipelining: 0, allowH2: false, connect });
  try {
    return await runExchange(client, request, clock, reset);
  } finally {
    // Without waiting: the answer is complete, and the socket may take its time to close.
    client.destroy().catch(() => {});
  }
}
