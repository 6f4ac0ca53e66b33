/**
 * The connections of writes. A write never shares one and never waits for one: it takes one that
 * another write has just given back, or opens its own. Given back is a connection only after a
 * whole answer, and it is taken only while it is fresh: idle for less than a second and less than
 * half of what the service announced. That is far below the idle time after which servers close,
 * so that hardly ever a write is swallowed by a connection that is about to end. When it is, the
 * write is `unknown` like any other whose answer was lost: nothing here sends twice.
 *
 * A connection for each write was measured first: on loopback, without TLS, it costs the daemon 75
 * µs of CPU where one that is used again costs 15, and a handshake of latency. Opening ahead of
 * need and using once saves the latency only, and meets the same servers that close.
 */
import { Client } from 'undici';
import { after, type Clock, monotonicMs } from '../../kernel/clock.ts';
import type { Answer } from '../types.ts';
import type { Connected } from './connect.ts';
import { type Exchanged, type ExchangeRequest, runExchange } from './exchange.ts';

/** How long a connection may have been idle to be used again, in milliseconds. */
const FRESH_MS = 1_000;
/** Idle connections of one origin at most; more are closed. */
const IDLE_MAX = 64;

export interface WriteLane {
  /** One exchange on a connection that nobody else uses meanwhile. Never rejects. */
  exchange(request: ExchangeRequest): Promise<Exchanged>;
  close(): void;
}

interface Line {
  client: Client;
  reset: () => void;
  /** Until when it counts as fresh, on the steady clock. */
  freshUntil: number;
}

export function makeWriteLane(connector: () => Connected, clock: Clock): WriteLane {
  const idle = new Map<string, Line[]>();
  let sweeping = false;
  let closed = false;

  const take = (origin: string): Line => {
    const lines = idle.get(origin) ?? [];
    for (let line = lines.pop(); line; line = lines.pop()) {
      if (line.freshUntil > monotonicMs() && !line.client.destroyed) return line;
      end(line);
    }
    const { connect, reset } = connector();
    const client = new Client(origin, { pipelining: 1, allowH2: false, connect });
    return { client, reset, freshUntil: 0 };
  };
  const giveBack = (origin: string, line: Line, freshMs: number) => {
    const lines = idle.get(origin) ?? [];
    if (closed || freshMs <= 0 || lines.length >= IDLE_MAX) return end(line);
    line.freshUntil = monotonicMs() + freshMs;
    lines.push(line);
    idle.set(origin, lines);
    sweepLater();
  };
  const sweepLater = () => {
    if (sweeping) return;
    sweeping = true;
    after(FRESH_MS, () => {
      sweeping = false;
      const now = monotonicMs();
      for (const [origin, lines] of idle) {
        for (const line of lines) if (line.freshUntil <= now) end(line);
        const fresh = lines.filter((line) => line.freshUntil > now);
        if (fresh.length > 0) idle.set(origin, fresh);
        else idle.delete(origin);
      }
      if (idle.size > 0) sweepLater();
    });
  };
  return {
    async exchange(request) {
      const line = take(request.origin);
      const exchanged = await runExchange(line.client, request, clock, line.reset);
      giveBack(request.origin, line, freshness(exchanged));
      return exchanged;
    },
    close() {
      closed = true;
      for (const lines of idle.values()) for (const line of lines) end(line);
      idle.clear();
    },
  };
}

/** How long the connection of that exchange may be used again; 0: it may not. */
function freshness(exchanged: Exchanged): number {
  if (exchanged.end !== 'answered') return 0;
  const announced = announcedMs(exchanged.answer);
  return Math.min(FRESH_MS, announced / 2);
}

/** What the service says of its connections; without a word, the usual. */
function announcedMs({ headers }: Answer): number {
  for (const [name, value] of headers) {
    if (/^connection$/i.test(name) && /\bclose\b/i.test(value)) return 0;
    const seconds = /^keep-alive$/i.test(name)
      ? /\btimeout=(\d{1,6})\b/i.exec(value)?.[1]
      : undefined;
    if (seconds !== undefined) return Number(seconds) * 1000;
  }
  return Number.POSITIVE_INFINITY;
}

/** Without waiting: the answer is complete, and the socket may take its time to close. */
function end(line: Line): void {
  line.client.destroy().catch(() => {});
}
