/**
 * The way to the simulated service or to a receiver: a relay on one address, which can be cut while
 * the other side keeps what it has, and which can speak TLS with a certificate that is replaced.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { joinSockets } from '../../harness/join-sockets.ts';
import { listen } from '../../harness/listen.ts';

export interface Relay {
  port: number;
  /** Refuses connections from now on, and ends those that are open. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  /** Restarts with this certificate, and without the sessions of former ones. Only with TLS. */
  present(certificate: TlsOptions): Promise<void>;
  close(): Promise<void>;
}

/** @param tls the certificate; without one the relay passes bytes as they are */
export async function openRelay(target: number, tls?: TlsOptions): Promise<Relay> {
  const sockets = new Set<Socket>();
  const passOn = (near: Socket) => {
    const far = connect(target, '127.0.0.1');
    joinSockets(near, far, sockets);
  };
  let certificate = tls;
  let server: Server;
  const open = async (at: number) => {
    server = certificate ? createTlsServer(certificate, passOn) : createServer(passOn);
    return listen(server, at);
  };
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    drop();
    await closed;
  };
  const port = await open(0);
  return {
    port,
    cut,
    restore: async () => void (await open(port)),
    async present(next) {
      certificate = next;
      await cut();
      await open(port);
    },
    close: () => (server.listening ? cut() : Promise.resolve()),
  };
}
