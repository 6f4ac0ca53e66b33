/**
 * HTTP load that costs little itself: keep-alive connections of bare sockets, each sending its next
 * request when the answer to the last one is complete. Answers must declare their length.
 */
import { connect } from 'node:net';
import { after, monotonicMs } from '../../../src/kernel/clock.ts';
import { quantileOf, type Sample } from './frame.ts';

export interface LoadOptions {
  port: number;
  /** Sent in turns, each by one connection. */
  requests: readonly string[];
  connections: number;
  seconds: number;
  /**
   * Requests per second of all connections together, each at its time, from which its latency
   * counts; by default each connection sends its next request at once.
   */
  perSecond?: number;
}

const HEAD_END = '\r\n\r\n';

/**
 * Presses for some seconds. Answers requests per second and latencies in milliseconds.
 * @throws Error for an answer that is not 200 or 201, and for a connection that is cut
 */
export async function pressed(options: LoadOptions): Promise<Required<Sample> & { p95: number }> {
  const { connections, seconds } = options;
  const waits: number[] = [];
  const began = monotonicMs();
  const until = began + seconds * 1000;
  const each = Array.from({ length: connections }, (_, index) =>
    oneConnection(options, index, until, waits),
  );
  await Promise.all(each);
  const tookS = (monotonicMs() - began) / 1000;
  waits.sort((a, b) => a - b);
  return {
    value: waits.length / tookS,
    p50: quantileOf(waits, 0.5),
    p95: quantileOf(waits, 0.95),
    p99: quantileOf(waits, 0.99),
  };
}

/** A request of HTTP/1.1 as text. */
export function requestText(method: string, path: string, headers: Record<string, string> = {}) {
  const lines = Object.entries({ host: 'bench', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

function oneConnection(
  { port, requests, connections, perSecond }: LoadOptions,
  first: number,
  until: number,
  waits: number[],
): Promise<void> {
  const gapMs = perSecond === undefined ? 0 : (connections / perSecond) * 1000;
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let next = first;
    let sentAt = monotonicMs() + (first / connections) * gapMs;
    let missing = -1;
    let ended = false;
    let head = '';
    const send = () => {
      missing = -1;
      head = '';
      socket.write(requests[next % requests.length] ?? '');
      next += connections;
    };
    const fail = (why: string) => {
      socket.destroy();
      reject(new Error(why));
    };
    const sendInTime = () => {
      if (gapMs === 0) sentAt = monotonicMs();
      const waitMs = sentAt - monotonicMs();
      if (waitMs > 0) after(waitMs, send);
      else send();
    };
    socket.on('connect', sendInTime);
    socket.on('error', reject);
    socket.on('close', () => (ended ? resolve() : fail('the connection was cut')));
    socket.on('data', (chunk) => {
      if (missing >= 0) {
        missing -= chunk.length;
      } else {
        head += chunk.toString('latin1');
        const end = head.indexOf(HEAD_END);
        if (end < 0) return;
        if (!/^HTTP\/1\.1 20[01]/.test(head)) return fail(head);
        const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN);
        missing = end + HEAD_END.length + length - head.length;
      }
      if (missing > 0) return;
      if (missing !== 0) return fail('an answer without a length, or with a wrong one');
      waits.push(monotonicMs() - sentAt);
      sentAt += gapMs;
      if (Math.max(sentAt, monotonicMs()) < until) sendInTime();
      else {
        ended = true;
        socket.end();
      }
    });
  });
}
