/** A server on loopback that speaks whatever bytes a test wants, and remembers what it was sent. */
import { createServer, type Socket } from 'node:net';

export interface RawService {
  port: number;
  /** `http://127.0.0.1:<port>`, or with another scheme. */
  origin(scheme?: 'http' | 'https'): string;
  /** What each connection sent, in the order of connections. */
  received: string[];
  /** How each connection ended: `end`, or the code of its error. */
  endings: Promise<string>[];
  close(): Promise<void>;
}

const running = new Set<RawService>();

/** @param answer called when a connection has sent a whole HTTP request, or at once with `eager` */
export async function startRaw(
  answer: (socket: Socket, nth: number) => void,
  options: { eager?: boolean } = {},
): Promise<RawService> {
  const received: string[] = [];
  const endings: Promise<string>[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const nth = received.push('') - 1;
    sockets.add(socket);
    endings.push(endingOf(socket));
    let begun = 0;
    if (options.eager) answer(socket, nth);
    socket.on('data', (chunk) => {
      received[nth] += chunk.toString('latin1');
      const requests = requestsIn(received[nth] ?? '');
      for (; !options.eager && begun < requests; begun += 1) answer(socket, nth);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const service: RawService = {
    port,
    origin: (scheme = 'http') => `${scheme}://127.0.0.1:${port}`,
    received,
    endings,
    async close() {
      running.delete(service);
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  running.add(service);
  return service;
}

/** Ends what the tests started. */
export async function closeRaw(): Promise<void> {
  await Promise.all([...running].map((service) => service.close()));
}

/** The bytes of an answer with a JSON body. */
export function http(status: number, body: string, headers: string[] = []): string {
  const lines = [`HTTP/1.1 ${status} X`, 'content-type: application/json', ...headers];
  return `${lines.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function endingOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.on('error', (error) => resolve('code' in error ? String(error.code) : 'error'));
    socket.on('end', () => resolve('end'));
    socket.on('close', () => resolve('close'));
  });
}

/** How many whole requests a connection has sent; bodies have a content-length here. */
function requestsIn(text: string): number {
  let count = 0;
  for (let rest = text; ; count += 1) {
    const head = rest.indexOf('\r\n\r\n');
    if (head < 0) return count;
    const length = Number(/content-length: (\d+)/i.exec(rest.slice(0, head))?.[1] ?? 0);
    if (rest.length < head + 4 + length) return count;
    rest = rest.slice(head + 4 + length);
  }
}
