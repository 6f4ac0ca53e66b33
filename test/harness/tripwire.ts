/**
 * A TCP relay that can trip: it passes bytes between a daemon and what it talks to, and when it is armed
 * it counts the pieces that pass and calls out at the n-th, either before that piece is handed on (the
 * other side never sees it) or after (it was seen, but its consequence never comes back).
 *
 * With one before Postgres and one before the service, every await of the write path lies between two
 * pieces; so killing the process at each piece is killing it at each await.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Tripwire {
  port: number;
  /**
   * Arms it for the n-th piece from now (from 1), in that direction. `withhold`: the piece and all that
   * follows is not handed on.
   */
  arm(given: { n: number; direction: 'to' | 'from'; withhold: boolean; trip: () => void }): void;
  disarm(): void;
  /** Pieces passed in each direction since it was armed last. */
  passed(): { to: number; from: number };
  close(): Promise<void>;
}

export async function startTripwire(targetPort: number): Promise<Tripwire> {
  const sockets = new Set<Socket>();
  let armed: Parameters<Tripwire['arm']>[0] | undefined;
  let counts = { to: 0, from: 0 };
  let cut = false;

  /** True when the piece may pass. */
  function piece(direction: 'to' | 'from'): boolean {
    if (cut) return false;
    counts[direction]++;
    if (!armed || armed.direction !== direction || counts[direction] !== armed.n) return true;
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
      if (piece('to')) far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (piece('from')) near.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    arm(given) {
      counts = { to: 0, from: 0 };
      cut = false;
      armed = given;
    },
    disarm() {
      armed = undefined;
      cut = false;
    },
    passed: () => ({ ...counts }),
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
