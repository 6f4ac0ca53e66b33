/**
 * A wrong service: it stands before a right one, passes requests on and lies in one chosen way, so
 * that the statements which the lie contradicts can be seen to fail.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';

/** A request on its way up. */
export interface Asked {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** An answer on its way down. */
export interface Told {
  status: number;
  headers: Record<string, string | string[]>;
  body: string;
}

export interface Lie {
  /** What is asked instead. */
  asked?: (asked: Asked) => Asked;
  /** What is told instead. */
  told?: (told: Told, asked: Asked) => Told;
}

export interface LyingService {
  url: string;
  close(): Promise<void>;
}

/** Starts a wrong service before the one at `url`. */
export async function startLying(url: string, lie: Lie): Promise<LyingService> {
  const server = createServer((incoming, outgoing) => {
    answer(url, lie, incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(
  url: string,
  lie: Lie,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const { method = 'GET', url: path = '/', headers } = incoming;
  let body = '';
  for await (const chunk of incoming.setEncoding('utf8')) body += chunk;
  const { authorization, 'content-type': type } = headers;
  const passed = {
    ...(authorization === undefined ? {} : { authorization }),
    ...(type === undefined ? {} : { 'content-type': type }),
  };
  const truth = { method, path, headers: passed, body };
  const asked = lie.asked?.(truth) ?? truth;
  const reply = await request(url + asked.path, {
    method: asked.method as 'GET',
    headers: asked.headers,
    body: asked.body || null,
  });
  const answered = {
    status: reply.statusCode,
    headers: keptHeaders(reply.headers),
    body: await reply.body.text(),
  };
  const told = lie.told?.(answered, truth) ?? answered;
  outgoing.writeHead(told.status, told.headers);
  outgoing.end(told.body);
}

/** Headers that do not depend on the length of the body or on the connection. */
function keptHeaders(headers: Record<string, string | string[] | undefined>): Told['headers'] {
  const kept: Told['headers'] = {};
  for (const name of ['content-type', 'location']) {
    const value = headers[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
