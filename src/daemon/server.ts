/**
 * The HTTP server of a daemon: `/v1/…` goes to the gateway as Node's raw request, everything else
 * to the API. Bytes that are not valid HTTP are answered with a problem document.
 */
import type { ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Api } from '../api/api.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type ErrorCode, Failure, problemOf } from '../kernel/errors.ts';
import { withoutBasePath } from '../kernel/http/base-path.ts';
import { isNormalPath, NOT_NORMAL } from '../kernel/http/request.ts';
import { type DrainableServer, makeServer, type Refusal } from '../kernel/http/server.ts';
import { jsonText } from '../kernel/json.ts';
import type { Role } from '../resources/admin/status.ts';

/** An upload of 100,000 reported operations may take minutes; its headers may not. */
const LIMITS = {
  requestTimeout: 600_000,
  headersTimeout: 60_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
  connectionsMax: 10_000,
};

/** A server that does not listen yet. */
export function makeHttpServer({
  gateway,
  api,
  roles,
  basePath = '',
}: {
  gateway: Pick<Gateway, 'handle'>;
  api: Pick<Api, 'fetch'>;
  roles: readonly Role[];
  basePath?: string;
}): DrainableServer {
  const isGateway = roles.includes('gateway');
  const listener = getRequestListener(api.fetch, {
    overrideGlobalObjects: false,
    // Of HTTP/1.0 without a header Host, as some checks of load balancers are.
    hostname: 'localhost',
    errorHandler: () => {
      const { headers, body } = invalidRequest(400);
      return new Response(body, { status: 400, headers });
    },
  });
  return makeServer(
    (request, response, goOn) => {
      request.url = withoutBasePath(request.url ?? '/', basePath);
      // The gateway authenticates before it lets the client send the body.
      if (isGateway && request.url.startsWith('/v1/'))
        return gateway.handle(request, response, goOn);
      if (!isNormalPath(request.url.split('?', 1)[0] ?? '')) return answerNotFound(response);
      goOn?.();
      return listener(request, response);
    },
    invalidRequest,
    LIMITS,
  );
}

const CODES: Record<number, ErrorCode> = {
  408: 'request_timeout',
  431: 'headers_too_large',
  503: 'shutting_down',
};

function invalidRequest(status: number): Refusal {
  return refusalOf(new Failure(CODES[status] ?? 'malformed_http'));
}

function answerNotFound(response: ServerResponse): void {
  const { headers, body } = refusalOf(new Failure('not_found', NOT_NORMAL));
  response.writeHead(404, { ...headers, connection: 'close' }).end(body);
}

function refusalOf(failure: Failure): Refusal {
  const headers = { 'content-type': 'application/problem+json' };
  return { headers, body: jsonText(problemOf(failure)) };
}
