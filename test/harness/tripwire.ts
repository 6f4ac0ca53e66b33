/**
 * A TCP relay that can trip: it passes bytes between a daemon and what it talks to, and when it is
 * armed it counts the pieces that pass and calls out at the n-th, either before that piece is
 * handed on (the other side never sees it) or after (it was seen, but its consequence never comes
 * back).
 *
 * With one before Postgres and one before the service, every await of the write path lies between
 * two pieces; so killing the process at each piece is killing it at each await.
 */
import { connect, createServer, type Socket } from 'node:net';
import { listen } from './listen.ts';

export interface Armed {
  direction: 'to' | 'from';
  /** The n-th piece that fits, from 1. */
  n: number;
  /**
   * Which pieces count; all when absent. `memory` lives as long as the connection and the arming.
   */
  fits?: (text: string, memory: Set<string>) => boolean;
  /** True: that piece, and all that follows, is not handed on. */
  withhold: boolean;
  trip: () => void;
}

export interface Tripwire {
  port: number;
  /** Arms it for one piece from now on. */
  arm(point: Armed): void;
  disarm(): void;
  close(): Promise<void>;
}

export async function startTripwire(targetPort: number): Promise<Tripwire> {
  const sockets = new Set<Socket>();
  let armed: Armed | undefined;
  let memories = new Map<Socket, Set<string>>();
  let fitted = 0;
  let cut = false;

  /** True when the piece may pass. */
  function passes(direction: 'to' | 'from', bytes: Buffer, near: Socket): boolean {
    if (cut) return false;
    if (armed?.direction !== direction) return true;
    const memory = memories.get(near) ?? new Set();
    memories.set(near, memory);
    if (armed.fits && !armed.fits(bytes.toString('latin1'), memory)) return true;
    if (++fitted !== armed.n) return true;
    const { withhold, trip } = armed;
    armed = undefined;
    cut = withhold;
    trip();
    return !withhold;
  }

  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (bytes) => {
      if (passes('to', bytes, near)) far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (passes('from', bytes, near)) near.write(bytes);
    });
  });
  const port = await listen(server);
  return {
    port,
    arm(point) {
      memories = new Map();
      fitted = 0;
      cut = false;
      armed = point;
    },
    disarm() {
      armed = undefined;
      cut = false;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
