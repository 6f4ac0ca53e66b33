/** The service as a server on loopback: scripted answers over HTTP, or raw bytes over TCP. */

import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { jsonText } from '../../src/kernel/json.ts';
import { closeServer, listen } from '../harness/listen.ts';

export interface ReceivedRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}
/** Status, body (an object is written as JSON) and headers; `hang` never answers. */
export type Reply = [status: number, body?: unknown, headers?: Record<string, string>] | 'hang';
export type Script = (request: ReceivedRequest) => Reply | Promise<Reply>;

export interface ScriptedService {
  origin: string;
  requests: ReceivedRequest[];
  /** How many requests had this path, with any query. */
  count(path: string): number;
  close(): Promise<void>;
}

export interface RawService {
  /** `http://127.0.0.1:<port>`, or with another scheme. */
  origin(scheme?: 'http' | 'https'): string;
  /** What each connection sent, in the order of connections. */
  received: string[];
  /** How each connection ended: `end`, `close`, or the code of its error. */
  endings: Promise<string>[];
  close(): Promise<void>;
}

const running: { close(): Promise<void> }[] = [];

/** Registers something that `closeAll` closes. */
export function closeLater<T extends { close(): Promise<void> }>(one: T): T {
  running.push(one);
  return one;
}

/** Closes what the tests opened, the last first. */
export async function closeAll(): Promise<void> {
  for (const one of running.splice(0).reverse()) await one.close();
}

export const TOKEN_PATH = '/v1/oauth/token';

/** Issues tokens `token-1`, `token-2` … unless another script is given for the token path. */
export async function startScripted(script: Script, tokens?: Script): Promise<ScriptedService> {
  const requests: ReceivedRequest[] = [];
  let issued = 0;
  const issue: Script = () => {
    issued += 1;
    return [200, { access_token: `token-${issued}`, token_type: 'bearer', expires_in: 86_400 }];
  };
  const server = createHttpServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk) => chunks.push(chunk));
    incoming.on('end', async () => {
      const { method = '', url = '', headers } = incoming;
      const request = { method, url, headers, body: Buffer.concat(chunks).toString() };
      requests.push(request);
      const reply = await (url === TOKEN_PATH ? (tokens ?? issue) : script)(request);
      if (reply === 'hang') return;
      const [status, body = '', more = {}] = reply;
      outgoing.writeHead(status, { 'content-type': 'application/json', ...more });
      outgoing.end(typeof body === 'string' ? body : jsonText(body));
    });
  });
  const port = await listen(server);
  return closeLater({
    origin: `http://127.0.0.1:${port}`,
    requests,
    count: (path: string) => requests.filter(({ url }) => url.split('?')[0] === path).length,
    close: () => closeServer(server),
  });
}

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
    let answered = 0;
    if (options.eager) answer(socket, nth);
    socket.on('data', (chunk) => {
      received[nth] += chunk.toString('latin1');
      const requests = requestsIn(received[nth] ?? '');
      for (; !options.eager && answered < requests; answered += 1) answer(socket, nth);
    });
  });
  const port = await listen(server);
  return closeLater({
    origin: (scheme = 'http') => `${scheme}://127.0.0.1:${port}`,
    received,
    endings,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** The bytes of an answer with a JSON body. */
export function http(status: number, body: string, headers: string[] = []): string {
  const lines = [`HTTP/1.1 ${status} X`, 'content-type: application/json', ...headers];
  return `${lines.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** How many whole requests a connection has sent; bodies have a content-length here. */
export function requestsIn(text = ''): number {
  let count = 0;
  for (let rest = text; ; count += 1) {
    const head = rest.indexOf('\r\n\r\n');
    if (head < 0) return count;
    const length = Number(/content-length: (\d+)/i.exec(rest.slice(0, head))?.[1] ?? 0);
    if (rest.length < head + 4 + length) return count;
    rest = rest.slice(head + 4 + length);
  }
}

function endingOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.on('error', (error) => resolve('code' in error ? String(error.code) : 'error'));
    socket.on('end', () => resolve('end'));
    socket.on('close', () => resolve('close'));
  });
}
