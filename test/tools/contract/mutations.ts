/**
 * Mutations of the service: a proxy in front of a correct service changes requests or responses in
 * one way, so that the statements which check it must fail.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import * as undici from 'undici';
import { closeServer, listen } from '../../harness/listen.ts';

interface ProxyRequest {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  body: string;
}

interface ProxyResponse {
  status: number;
  headers: Record<string, string | string[]>;
  body: string;
}

export interface Mutation {
  request?: (request: ProxyRequest) => ProxyRequest;
  response?: (response: ProxyResponse, request: ProxyRequest) => ProxyResponse;
}

interface MutatingProxy {
  url: string;
  close(): Promise<void>;
}

/** Starts a proxy in front of the service at `url` that applies the mutation to every exchange. */
export async function startMutatingProxy(url: string, mutation: Mutation): Promise<MutatingProxy> {
  const server = createServer((incoming, outgoing) => {
    forward(url, mutation, incoming, outgoing).catch(() => outgoing.destroy());
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => closeServer(server),
  };
}

async function forward(
  url: string,
  mutation: Mutation,
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
  const original = { method, path, headers: passed, body };
  const sent = mutation.request?.(original) ?? original;
  const reply = await undici.request(url + sent.path, {
    method: sent.method as 'GET',
    headers: sent.headers,
    body: sent.body || null,
  });
  const received = {
    status: reply.statusCode,
    headers: keptHeaders(reply.headers),
    body: await reply.body.text(),
  };
  const response = mutation.response?.(received, original) ?? received;
  outgoing.writeHead(response.status, response.headers);
  outgoing.end(response.body);
}

/** Headers that do not depend on the length of the body or on the connection. */
function keptHeaders(
  headers: Record<string, string | string[] | undefined>,
): ProxyResponse['headers'] {
  const kept: ProxyResponse['headers'] = {};
  for (const name of ['content-type', 'location']) {
    const value = headers[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

const isAuthorization = (path: string) => path.startsWith('/v1/oauth');
const isTokenRequest = ({ path }: ProxyRequest) => path.startsWith('/v1/oauth/token');

/** A mutation of the body of every response. */
const body =
  (rewrite: (text: string, request: ProxyRequest) => string): NonNullable<Mutation['response']> =>
  (response, request) => ({ ...response, body: rewrite(response.body, request) });

const refusedNft = '{"status":418,"error":[{"message":"no","field":"","validation":""}]}';

/** Replaces every access token by the one that the endpoint accepted before. */
function anyTokenAccepted(): Mutation {
  const accepted = new Map<string, string>();
  const endpoint = ({ method, path }: ProxyRequest) =>
    `${method} ${path.replace(/\/\d+/g, '').replace(/=.*/, '')}`;
  return {
    request(request) {
      const authorization = accepted.get(endpoint(request));
      if (authorization === undefined || isAuthorization(request.path)) return request;
      return { ...request, headers: { ...request.headers, authorization } };
    },
    response(response, request) {
      const { authorization } = request.headers;
      const fine = response.status === 200 && response.body.includes('"data"');
      if (fine && authorization !== undefined && !accepted.has(endpoint(request))) {
        accepted.set(endpoint(request), authorization);
      }
      return response;
    },
  };
}

/** Repeats the first response to every read. */
function staleReads(): Mutation {
  const first = new Map<string, ProxyResponse>();
  return {
    response(response, { method, path }) {
      if (method !== 'GET' || !path.includes('/v1/')) return response;
      const kept = first.get(path) ?? response;
      first.set(path, kept);
      return kept;
    },
  };
}

/**
 * By what the service does wrong. Mutations that most statements contradict at once come first, so
 * that few statements remain for the later ones.
 */
export const MUTATIONS: Record<string, () => Mutation> = {
  'every request of base and transactions is refused': () => ({
    response: (response, { path }) =>
      isAuthorization(path) ? response : { ...response, status: 200, body: refusedNft },
  }),
  'every request of authorization is refused but client credentials': () => ({
    response: (response, request) =>
      isAuthorization(request.path) && !request.body.includes('client_credentials')
        ? { ...response, status: 418, headers: {}, body: '{"no":true}' }
        : response,
  }),
  'integers are written with a fraction': () => ({
    response: body((text) => text.replace(/:(-?\d+)(?=[,}\]])/g, ':$1.0')),
  }),
  'every refusal is a success': () => ({
    response: (response) => ({
      status: response.status >= 400 ? 200 : response.status,
      headers: response.headers,
      body: response.body.includes('"error"') ? '{"status":200,"data":{}}' : response.body,
    }),
  }),
  'texts are null': () => ({
    response: body((text, request) =>
      isTokenRequest(request) ? text : text.replace(/:"[^"]*"/g, ':null'),
    ),
  }),
  'statuses have other values': () => ({
    response: body((text) =>
      text
        .replace(/"status":"(\d+)"/g, '"status":"$10"')
        .replace(/"status":(\d)(?=[,}])/g, (_, digit) => `"status":${Number(digit) + 1}`)
        .replace(/"token_is_locked":(\d)/g, (_, digit) => `"token_is_locked":${1 - digit}`)
        .replace(/"(READY|INACTIVE)"/g, '"ACTIVE"'),
    ),
  }),
  'errors have no status': () => ({
    response: body((text) => text.replace(/"status":"?\d+"?,"error"/, '"error"')),
  }),
  'every other HTTP code is 200': () => ({
    response: (response) => (response.status > 400 ? { ...response, status: 200 } : response),
  }),
  'refusals of NFT endpoints have their own HTTP code': () => ({
    response: (response) => {
      const status = Number(/^\{"status":([45]\d\d),/.exec(response.body)?.[1] ?? response.status);
      return { ...response, status };
    },
  }),
  'error codes and details have other values': () => ({
    response: body((text) =>
      text.replace(/"(code|detail)":"(\w+)"/g, (_, name, value) => `"${name}":"${value}0"`),
    ),
  }),
  'the maintenance status needs credentials': () => ({
    response: (response, { path }) =>
      path.startsWith('/v1/system') ? { ...response, status: 401 } : response,
  }),
  'limits of length are one higher': () => ({
    request: (request) => ({
      ...request,
      body: request.body.replace(/x(%22%7D)/g, '$1'),
    }),
  }),
  'token records have no texts but the token': () => ({
    response: body((text, request) =>
      isAuthorization(request.path)
        ? text.replace(/"(?!access_token)(\w+)":"[^"]*"/g, '"$1":null')
        : text,
    ),
  }),
  'responses allow other origins': () => ({
    response: (response) => ({
      ...response,
      headers: { ...response.headers, 'access-control-allow-origin': '*' },
    }),
  }),
  'the redirect goes to another URI without parameters': () => ({
    response: (response) =>
      response.headers.location
        ? { ...response, headers: { location: 'https://elsewhere.example/?state=x' } }
        : response,
  }),
  'messages have no figures': () => ({
    response: body((text) =>
      text.replace(/"message":"[^"]*"/g, '"message":"it did not work: :method"'),
    ),
  }),
  'a client token record has user fields': () => ({
    response: body((text, request) =>
      request.body.includes('client_credentials')
        ? text.replace('{', '{"refresh_token":"r","scope":"s","member_no":1,"nickname":"n",')
        : text,
    ),
  }),
  'client_credentials answers 201': () => ({
    response: (response, request) =>
      request.body.includes('client_credentials') ? { ...response, status: 201 } : response,
  }),
  'authorize redirects without a login': () => ({
    response: (response, { method, path }) =>
      method === 'GET' && path.startsWith('/v1/oauth/authorize')
        ? { ...response, status: 302, headers: { location: 'https://app.example/?code=1' } }
        : response,
  }),
  'tokens stay active forever': () => ({
    response: body((text) => text.replace('"active":false', '"active":true')),
  }),
  'addresses and hashes lack a character': () => ({
    response: body((text) => text.replace(/"0x([0-9a-f]{39,})[0-9a-f]"/g, '"0x$1"')),
  }),
  'integers are written as text': () => ({
    response: body((text) => text.replace(/:(-?\d+)(?=[,}\]])/g, ':"$1"')),
  }),
  'integers beyond 2^53 lose digits': () => ({
    response: body((text) =>
      text.replace(/:(\d{16,})(?=[,}\]])/g, (_, digits) => `:${Number(digits)}`),
    ),
  }),
  'filters and pages are ignored': () => ({
    request: (request) => ({
      ...request,
      path: request.path.replace(/(\/tokens)\?.*/, '$1'),
    }),
  }),
  'data of mints is dropped': () => ({
    request: (request) => ({
      ...request,
      body: request.body
        .replace(/(metaData|extraData)=[^&]*/g, '$1=')
        .replace(/tokenURI=[^&]+/, 'tokenURI=x'),
    }),
  }),
  'access tokens are not checked': anyTokenAccepted,
  'one token too many is moved': () => ({
    request: (request) => ({
      ...request,
      body: request.body.replace(/"amount":(\d+)/, (_, n) => `"amount":${BigInt(n) + 1n}`),
    }),
  }),
  'reads never change': staleReads,
  'the client token is null': () => ({
    response: body((text, request) =>
      request.body.includes('client_credentials')
        ? text.replace(/"access_token":"[^"]*"/, '"access_token":null')
        : text,
    ),
  }),
};
