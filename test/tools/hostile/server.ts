/** Servers on loopback that count what comes, and leave the answer to a behaviour. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { after, monotonicMs } from '../../../src/kernel/clock.ts';
import type { Seen, SeenRequest } from './seen.ts';

export interface Exchange {
  request: SeenRequest;
  incoming: IncomingMessage;
  response: ServerResponse;
}
export type Behaviour = (exchange: Exchange) => void;

interface Keys {
  cert: string;
  key: string;
}

/** An HTTP server, or with keys an HTTPS server, that does this with each request. */
export function httpServer(seen: Seen, behave: Behaviour, keys?: Keys): Server {
  const listener = (incoming: IncomingMessage, response: ServerResponse) => {
    let body = '';
    incoming.setEncoding('latin1').on('data', (text: string) => {
      body += text;
    });
    incoming.on('error', () => {});
    response.on('error', () => {});
    incoming.once('end', () => {
      const request = seen.request(incoming.url ?? '/', incoming.headers, body);
      const { socket } = incoming;
      const before = socket.bytesWritten;
      request.bytes = () => socket.bytesWritten - before;
      response.once('finish', () => {
        request.answeredMs = monotonicMs();
      });
      response.once('close', () => {
        request.endedMs = monotonicMs();
        request.status = response.headersSent ? response.statusCode : 0;
      });
      behave({ request, incoming, response });
    });
  };
  const server = keys ? createSecureServer(keys, listener) : createServer(listener);
  server.keepAliveTimeout = 30_000;
  server.on('connection', (socket: Socket) => seen.connect(socket));
  server.on('tlsClientError', () => {});
  return server;
}

/** Forwards to a port, and passes on what comes back a byte at a time. */
export function drippingRelay(seen: Seen, port: number, everyMs: number): Server {
  return createTcpServer((near) => {
    seen.connect(near);
    const far = connect(port, '127.0.0.1');
    far.on('error', () => near.destroy());
    near.on('close', () => far.destroy());
    near.pipe(far);
    let waiting = Buffer.alloc(0);
    far.on('data', (chunk: Buffer) => {
      waiting = Buffer.concat([waiting, chunk]);
    });
    repeat(everyMs, near, () => {
      if (waiting.length > 0) near.write(waiting.subarray(0, 1));
      waiting = waiting.subarray(1);
    });
  });
}

/** Acts again and again until the connection is gone. */
export function repeat(everyMs: number, to: { destroyed: boolean }, act: () => void): void {
  after(everyMs, () => {
    if (to.destroyed) return;
    act();
    repeat(everyMs, to, act);
  });
}
