/**
 * The HTTP server and its limits, and the answer to bytes that are no request. One caller can
 * neither hold connections for long without asking something, nor break the server with them.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { after } from './clock.ts';

/** How long and how much one caller may take, in milliseconds and bytes. */
export interface ServerLimits {
  /** From the first byte of a request to its last. */
  requestTimeout: number;
  headersTimeout: number;
  /** How long a connection may stay open with nothing asked. */
  keepAliveTimeout: number;
  maxHeaderSize: number;
  connectionsMax: number;
  connectionsCheckingInterval?: number;
}

/** What every server here has beside its own limits. */
const FIXED = { connectionsCheckingInterval: 2_000, requireHostHeader: false };
/** How long a refused connection may stay open for its end to be read. */
const LINGER_MS = 1_000;

/** What a connection is owed: its requests without an answer, and a refusal after the last. */
interface Owed {
  open: Set<IncomingMessage>;
  refusal: string | undefined;
}

/** What is said to bytes that are no request; length and connection are added. */
export interface Refused {
  headers: Record<string, string>;
  body: string;
}

/** @param goOn given when the caller waits for leave to send its body (Expect: 100-continue) */
export type Listener = (
  request: IncomingMessage,
  response: ServerResponse,
  goOn?: () => void,
) => unknown;

/**
 * A server that does not listen yet.
 * @param limits bounds for one caller
 * @param refusal the answer to what is no request: nothing of it is known but the status that fits
 */
export function makeServer(
  listener: Listener,
  refusal: (status: number) => Refused,
  { connectionsMax, ...limits }: ServerLimits,
): Server {
  const connections = new WeakMap<object, Owed>();
  const owedTo = (socket: object): Owed => {
    const owed = connections.get(socket) ?? { open: new Set(), refusal: undefined };
    connections.set(socket, owed);
    return owed;
  };
  const served: Listener = (request, response, goOn) => {
    const owed = owedTo(request.socket);
    owed.open.add(request);
    response.once('close', () => {
      owed.open.delete(request);
      if (owed.refusal !== undefined) refuse(request.socket, owed);
    });
    return listener(request, response, goOn);
  };
  const broken = (socket: Socket, status: number) => {
    const owed = owedTo(socket);
    owed.refusal ??= textOf(status, refusal(status));
    refuse(socket, owed);
  };

  const server = createServer({ ...FIXED, ...limits }, (request, response) =>
    served(request, response),
  );
  server.maxConnections = connectionsMax;
  server.on('checkExpectation', (request, response) => served(request, response));
  server.on('checkContinue', (request, response: ServerResponse) =>
    served(request, response, () => response.writeContinue()),
  );
  server.on('clientError', (error, socket) => broken(socket as Socket, statusOf(error)));
  server.on('connect', (_request, socket) => {
    // A tunnel is no longer watched by the server: nobody else hears of its end.
    socket.on('error', () => socket.destroy());
    broken(socket as Socket, 400);
  });
  return server;
}

/**
 * Refuses what cannot be read, once every request that was read whole has its answer: answers have
 * no names on a connection, only an order.
 */
function refuse(socket: Socket, { open, refusal }: Owed): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  for (const request of open) if (request.complete) return;
  socket.end(refusal ?? '');
  socket.once(
    'close',
    after(LINGER_MS, () => socket.destroy()),
  );
}

/** An answer as bytes of HTTP. */
function textOf(status: number, { headers, body }: Refused): string {
  const length = { 'content-length': String(Buffer.byteLength(body)) };
  const lines = Object.entries({ ...headers, ...length, connection: 'close' });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`;
}

function statusOf(error: NodeJS.ErrnoException): number {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
}
