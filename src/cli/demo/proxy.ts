/**
 * A loopback proxy between the daemon and the service that can lose one answer: it forwards the
 * request and closes the connection instead of returning the response.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';

export interface DemoProxy {
  url: string;
  /** Loses the response to the next write. */
  loseNextAnswer(): void;
  close(): Promise<void>;
}

/** @param target the service's origin, with a path before /v1 if it has one */
export async function startProxy(target: string): Promise<DemoProxy> {
  let lose = false;
  const server = createServer((incoming, outgoing) => {
    relay(target, incoming, outgoing, () => {
      const now = lose && incoming.method !== 'GET';
      if (now) lose = false;
      return now;
    }).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    loseNextAnswer() {
      lose = true;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function relay(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  loseThis: () => boolean,
): Promise<void> {
  const {
    host: _host,
    connection: _connection,
    'transfer-encoding': _te,
    ...headers
  } = incoming.headers;
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  const answer = await request(`${target}${incoming.url}`, {
    method: (incoming.method ?? 'GET') as 'GET',
    headers,
    body: chunks.length > 0 ? Buffer.concat(chunks) : null,
    headersTimeout: 30_000,
    bodyTimeout: 30_000,
  });
  const body = Buffer.from(await answer.body.arrayBuffer());
  if (loseThis()) {
    outgoing.destroy();
    return;
  }
  const { connection: _c, 'transfer-encoding': _t, 'keep-alive': _k, ...passed } = answer.headers;
  outgoing.writeHead(answer.statusCode, { ...passed, 'content-length': body.length });
  outgoing.end(body);
}
