/** A TCP relay in front of the service that passes everything on late, in order. */
import { connect, createServer, type Socket } from 'node:net';
import { monotonicMs } from '../../../src/kernel/clock.ts';
import type { Random } from '../../../src/kernel/random.ts';
import { listen } from '../../harness/listen.ts';

export interface SlowRelay {
  url: string;
  close(): Promise<void>;
}

/**
 * @param delayMs least and greatest delay of an exchange; a random part of it comes before the
 * service sees the request, so that nobody knows when within the exchange a write was applied
 */
export async function openSlowRelay(
  target: number,
  delayMs: readonly [least: number, most: number],
  random: Random,
): Promise<SlowRelay> {
  const [least, most] = delayMs;
  const half = () => (least + random.unit() * (most - least)) / 2;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
    const far = connect({ port: target, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
    passOn(near, far, half);
    passOn(far, near, half);
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** A reset stays a reset, and nothing overtakes anything. */
function passOn(from: Socket, to: Socket, delay: () => number): void {
  let latest = 0;
  const later = (act: () => void) => {
    const now = monotonicMs();
    latest = Math.max(latest, now + delay());
    setTimeout(act, latest - now);
  };
  from.on('data', (bytes) => later(() => to.writable && to.write(bytes)));
  from.on('end', () => later(() => to.end()));
  from.on('error', () => later(() => to.resetAndDestroy()));
}
