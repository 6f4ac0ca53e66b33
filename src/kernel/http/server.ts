/**
 * The HTTP server, with its time and size limits, and the response to bytes that are not an HTTP
 * request. Its listener gets the target of every request as a path with its query.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { after } from '../clock.ts';
import { originForm } from './request.ts';

/** Times in milliseconds, sizes in bytes. */
interface ServerLimits {
  /** From the first byte of a request to its last. */
  requestTimeout: number;
  headersTimeout: number;
  /** How long a connection may stay idle. */
  keepAliveTimeout: number;
  maxHeaderSize: number;
  connectionsMax: number;
  connectionsCheckingInterval?: number;
}

const FIXED = { connectionsCheckingInterval: 2_000, requireHostHeader: false };
/** How long a refused connection stays open so that the client can read the response. */
const LINGER_MS = 1_000;

interface ConnectionState {
  /** Requests without a response. */
  open: Set<IncomingMessage>;
  /** The last response of the connection, sent after those of the open requests. */
  refusal: string | undefined;
}

/** The response to a malformed request; `content-length` and `connection` are added. */
export interface Refusal {
  headers: Record<string, string>;
  body: string;
}

/** @param sendContinue present when the client waits for `100 Continue` before its body */
type Listener = (
  request: IncomingMessage,
  response: ServerResponse,
  sendContinue?: () => void,
) => unknown;

export interface DrainableServer extends Server {
  /**
   * Stops accepting, and resolves when every request that had arrived is answered. Connections end
   * after their answers; a later request on one of them gets the refusal of status 503.
   */
  drain(): Promise<void>;
}

/**
 * Creates a server that does not listen yet.
 * @param refusal the response to what is not an HTTP request with a path, by its status
 */
export function makeServer(
  listener: Listener,
  refusal: (status: number) => Refusal,
  { connectionsMax, ...limits }: ServerLimits,
): DrainableServer {
  const connections = new WeakMap<object, ConnectionState>();
  const stateOf = (socket: object): ConnectionState => {
    const state = connections.get(socket) ?? { open: new Set(), refusal: undefined };
    connections.set(socket, state);
    return state;
  };
  /** Not answered yet. */
  const responses = new Set<ServerResponse>();
  let drained: PromiseWithResolvers<void> | undefined;
  const serve: Listener = (request, response, sendContinue) => {
    const state = stateOf(request.socket);
    state.open.add(request);
    responses.add(response);
    response.once('close', () => {
      state.open.delete(request);
      responses.delete(response);
      if (state.refusal !== undefined) refuse(request.socket, state);
      else if (drained && state.open.size === 0) request.socket.destroySoon();
      if (responses.size === 0) drained?.resolve();
    });
    if (drained) return answerRefusal(response, 503, refusal);
    const target = originForm(request.url ?? '');
    if (!target) return answerRefusal(response, 400, refusal);
    request.url = target.url;
    if (target.host !== undefined) request.headers.host = target.host;
    return listener(request, response, sendContinue);
  };
  const reject = (socket: Socket, status: number) => {
    const state = stateOf(socket);
    state.refusal ??= textOf(status, refusal(status));
    refuse(socket, state);
  };

  const server = createServer({ ...FIXED, ...limits }, (request, response) =>
    serve(request, response),
  );
  server.maxConnections = connectionsMax;
  server.on('checkExpectation', (request, response) => serve(request, response));
  server.on('checkContinue', (request, response: ServerResponse) =>
    serve(request, response, () => response.writeContinue()),
  );
  const drain = () => {
    if (drained) return drained.promise;
    drained = Promise.withResolvers();
    server.close();
    for (const response of responses)
      if (!response.headersSent) response.setHeader('connection', 'close');
    if (responses.size === 0) drained.resolve();
    return drained.promise;
  };
  server.on('clientError', (error, socket) => reject(socket as Socket, statusOf(error)));
  server.on('connect', (_request, socket) => {
    // The server does not handle the errors of a tunnel.
    socket.on('error', () => socket.destroy());
    reject(socket as Socket, 400);
  });
  return Object.assign(server, { drain });
}

function answerRefusal(
  response: ServerResponse,
  status: number,
  refusal: (status: number) => Refusal,
): void {
  const { headers, body } = refusal(status);
  const length = { 'content-length': String(Buffer.byteLength(body)) };
  response.writeHead(status, { ...headers, ...length, connection: 'close' }).end(body);
}

/**
 * Sends the refusal once every complete request has its response, because responses are matched to
 * requests by their order.
 */
function refuse(socket: Socket, { open, refusal }: ConnectionState): void {
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

function textOf(status: number, { headers, body }: Refusal): string {
  const length = { 'content-length': String(Buffer.byteLength(body)) };
  const lines = Object.entries({ ...headers, ...length, connection: 'close' });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`;
}

function statusOf(error: NodeJS.ErrnoException): number {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
}
