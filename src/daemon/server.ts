/**
 * The one port of a daemon: the service's own paths go to the gateway on Node's raw request,
 * everything else is our API. What is no request of HTTP gets a problem document too.
 */
import type { Server } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Api } from '../api/api.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type ErrorCode, Failure, problemOf } from '../kernel/errors.ts';
import { makeServer, type Refusal } from '../kernel/http-server.ts';
import { jsonText } from '../kernel/json.ts';

/** A report of a hundred thousand lines may take minutes to come; its head may not. */
const LIMITS = {
  requestTimeout: 600_000,
  headersTimeout: 60_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
  connectionsMax: 10_000,
};

/** A server that does not listen yet. */
export function serverOf({ gateway, api }: { gateway: Gateway; api: Pick<Api, 'fetch'> }): Server {
  const listener = getRequestListener(api.fetch, {
    overrideGlobalObjects: false,
    errorHandler: () => {
      const { headers, body } = unreadable(400);
      return new Response(body, { status: 400, headers });
    },
  });
  return makeServer(
    (request, response, goOn) => {
      // The gateway knows its caller before it asks for the body.
      if (request.url?.startsWith('/v1/')) return gateway.handle(request, response, goOn);
      goOn?.();
      return listener(request, response);
    },
    unreadable,
    LIMITS,
  );
}

const CODES: Record<number, ErrorCode> = { 408: 'request_timeout', 431: 'headers_too_large' };

/** The problem document for bytes that are no request. */
function unreadable(status: number): Refusal {
  const body = jsonText(problemOf(new Failure(CODES[status] ?? 'malformed_http')));
  return { headers: { 'content-type': 'application/problem+json' }, body };
}
