/** A TCP relay in front of the service that can refuse connections. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listen } from '../../harness/listen.ts';

export interface Relay {
  url: string;
  /** Refuses connections, and breaks those that stand. */
  down(): Promise<void>;
  up(): Promise<void>;
  isDown(): boolean;
  close(): Promise<void>;
}

export async function openRelay(target: number): Promise<Relay> {
  const sockets = new Set<Socket>();
  const open = () =>
    createServer((near) => {
      const far = connect(target, '127.0.0.1');
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
      }
      // A reset on one side is a reset on the other.
      near.on('error', () => far.resetAndDestroy());
      far.on('error', () => near.resetAndDestroy());
      near.pipe(far).pipe(near);
    });
  let server: Server | undefined;
  const start = (at = 0) => {
    server = open();
    return listen(server, at);
  };
  const end = async () => {
    const closed = new Promise((resolve) => server?.close(resolve));
    for (const socket of sockets) socket.destroy();
    if (server) await closed;
    server = undefined;
  };
  const port = await start();
  return {
    url: `http://127.0.0.1:${port}`,
    isDown: () => server === undefined,
    down: end,
    async up() {
      if (!server) await start(port);
    },
    close: end,
  };
}
