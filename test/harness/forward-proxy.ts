/** A forward proxy on loopback that speaks CONNECT, and resolves names as a test says. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { listen } from './listen.ts';

export interface ForwardProxy {
  /** Its address, with the login if it demands one. */
  url: string;
  /** The targets of all CONNECT requests, in their order. */
  targets: string[];
  /** What each connection has sent, before and after its CONNECT. */
  received: string[];
  /** How connections broke: `ECONNRESET` after a reset. */
  errors: string[];
  close(): Promise<void>;
}

export interface ForwardProxyOptions {
  /** Of the proxy itself; by default a free one. */
  port?: number;
  /** Ports of loopback by `name:port`; any other target is connected to as it is named. */
  ports?: Record<string, number>;
  login?: { user: string; password: string } | undefined;
  /** Instead of a tunnel: writes an answer, closes, or does nothing. */
  instead?: ((socket: Socket, target: string) => void) | undefined;
  /** With a key and a certificate the proxy itself is spoken to by TLS. */
  secure?: { key: string; cert: string };
}

const CONNECT = /^CONNECT (\S+) HTTP\/1\.1\r\n.*\r\n\r\n$/s;

/** Writes a whole answer to a CONNECT. */
export const answering = (status: string) => (socket: Socket) =>
  void socket.end(`HTTP/1.1 ${status}\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n`);

export async function startForwardProxy(options: ForwardProxyOptions = {}): Promise<ForwardProxy> {
  const { login, secure } = options;
  const targets: string[] = [];
  const received: string[] = [];
  const errors: string[] = [];
  const sockets = new Set<Socket>();
  const serve = (socket: Socket) => {
    const nth = received.push('') - 1;
    track(sockets, socket);
    socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''));
    let isAsked = false;
    socket.on('data', (bytes) => {
      received[nth] += bytes.toString('latin1');
      const [head, target] = CONNECT.exec(received[nth] ?? '') ?? [];
      if (isAsked || head === undefined || target === undefined) return;
      isAsked = true;
      targets.push(target);
      serveTunnel(socket, target, head);
    });
  };
  const serveTunnel = (socket: Socket, target: string, head: string) => {
    if (options.instead) return options.instead(socket, target);
    if (login && !head.includes(`Basic ${btoa(`${login.user}:${login.password}`)}`))
      return answering('407 Proxy Authentication Required')(socket);
    const far = connect(options.ports?.[target] ?? portOf(target), hostOf(target, options));
    track(sockets, far);
    far.once('error', () => answering('502 Bad Gateway')(socket));
    far.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(far).pipe(socket);
    });
    socket.once('close', () => far.destroy());
    far.once('close', () => socket.destroySoon());
  };
  const server: Server = secure ? createSecureServer(secure, serve) : createServer(serve);
  const port = await listen(server, options.port);
  const at = login ? `${login.user}:${encodeURIComponent(login.password)}@` : '';
  return {
    url: `${secure ? 'https' : 'http'}://${at}127.0.0.1:${port}`,
    targets,
    received,
    errors,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function track(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.on('error', () => socket.destroy());
  socket.on('close', () => sockets.delete(socket));
}

function portOf(target: string): number {
  return Number(target.slice(target.lastIndexOf(':') + 1));
}

function hostOf(target: string, { ports }: ForwardProxyOptions): string {
  if (ports?.[target] !== undefined) return '127.0.0.1';
  return target.slice(0, target.lastIndexOf(':')).replace(/^\[|\]$/g, '');
}
