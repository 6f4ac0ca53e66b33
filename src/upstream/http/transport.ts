/**
 * The lanes on which requests travel. Looks and reads of apps have pools of their own, with
 * connections that are kept; every write has a connection to itself, opened for it or given back a
 * moment ago (write-lane.ts), so that it waits for nobody. Nothing is retried.
 */
import { Pool } from 'undici';
import type { Clock } from '../../kernel/clock.ts';
import type { TrafficClass } from '../types.ts';
import { makeConnectors } from './connect.ts';
import { type Exchanged, type ExchangeRequest, runExchange } from './exchange.ts';
import { makeWriteLane } from './write-connections.ts';

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
  connections: { polls: number; 'app-read': number };
}

export function makeTransport(clock: Clock, settings: TransportSettings): Transport {
  const { bodyBytesMax } = settings;
  const connector = makeConnectors(settings.connectTimeoutMs);
  const writes = makeWriteLane(connector, clock);
  const pools = new Map<string, Pool>();
  const open = new Set<Promise<unknown>>();
  let closed = false;

  const poolOf = (lane: 'polls' | 'app-read', origin: string): Pool => {
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
      ? writes.exchange(request)
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
      writes.close();
      await Promise.allSettled([...pools.values()].map((pool) => pool.destroy()));
      pools.clear();
    },
  };
}
