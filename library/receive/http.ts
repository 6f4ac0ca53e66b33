/**
 * Adapters: a receiver for Node's `http`, Express, Hono, and servers of the Fetch API.
 * They read the raw body up to a bound and within a deadline, and answer status and reason.
 */
import type { Readable } from 'node:stream';
import { withDeadline } from './deadline.ts';
import { WebhookError, type WebhookErrorCode } from './errors.ts';
import type { Answer, Handler } from './receiver.ts';
import type { HeadersInput, Message } from './verify.ts';

/** Of Node's `http`; Express has it with `rawBody` or `body`, if something read the body before. */
export interface NodeRequest extends AsyncIterable<unknown> {
  method?: string | undefined;
  headers: { readonly [name: string]: string | string[] | undefined };
  readableEnded?: boolean;
  body?: unknown;
  rawBody?: unknown;
}

export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text?: string): unknown;
}

export interface Adapters {
  /** For `http.createServer(…)`. */
  node(handler: Handler): (request: NodeRequest, response: NodeResponse) => Promise<void>;
  /** For `app.post('/webhooks', …)`, before or without `express.json()`, or with `express.raw`. */
  express(handler: Handler): (request: NodeRequest, response: NodeResponse) => Promise<void>;
  /** For `app.post('/webhooks', …)` of Hono. */
  hono(handler: Handler): (context: { req: { raw: Request } }) => Promise<Response>;
  /** For servers that answer a `Request` with a `Response`. */
  fetch(handler: Handler): (request: Request) => Promise<Response>;
}

interface Core {
  receive(message: Message, handler: Handler): Promise<Answer>;
  refuse(error: unknown): Promise<Answer>;
}

interface Limits {
  bodyBytesMax?: number | undefined;
  bodyTimeoutMs?: number | undefined;
}

const BODY_BYTES_MAX = 1_048_576;
const BODY_TIMEOUT_MS = 10_000;

export function makeAdapters({ receive, refuse }: Core, limits: Limits): Adapters {
  const { bodyBytesMax = BODY_BYTES_MAX, bodyTimeoutMs = BODY_TIMEOUT_MS } = limits;
  const read = (parts: AsyncIterable<unknown>) => readBody(parts, bodyBytesMax, bodyTimeoutMs);

  async function answer(
    method: string | undefined,
    headers: HeadersInput,
    body: () => Promise<Uint8Array>,
    handler: Handler,
  ): Promise<Answer> {
    try {
      if (method !== 'POST') throw new WebhookError('method_not_allowed', 'webhooks are POSTed');
      return await receive({ headers, body: await body() }, handler);
    } catch (error) {
      return refuse(error);
    }
  }

  const node: Adapters['node'] = (handler) => async (request, response) => {
    const { method, headers } = request;
    const body = async () => bodyBefore(request, bodyBytesMax) ?? read(request);
    const { status, result, reason } = await answer(method, headers, body, handler);
    response.statusCode = status;
    if (isCut(result)) response.setHeader('connection', 'close');
    if (reason === undefined) {
      response.end();
      return;
    }
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ code: result, reason }));
  };

  const fetch: Adapters['fetch'] = (handler) => async (request) => {
    const { method, headers, body: stream, bodyUsed } = request;
    const body = async () => {
      if (bodyUsed) throw consumed();
      return stream ? read(stream) : new Uint8Array();
    };
    const { status, result, reason } = await answer(method, headers, body, handler);
    if (reason === undefined) return new Response(null, { status });
    return new Response(JSON.stringify({ code: result, reason }), {
      status,
      headers: { 'content-type': 'application/json' },
    });
  };

  return {
    node,
    express: node,
    fetch,
    hono:
      (handler) =>
      ({ req }) =>
        fetch(handler)(req.raw),
  };
}

/** The unread rest of a body must not be taken for the next request. */
function isCut(result: Answer['result']): boolean {
  const cut: readonly WebhookErrorCode[] = ['body_too_large', 'body_late', 'method_not_allowed'];
  return (cut as readonly string[]).includes(result);
}

/** The raw body that a middleware kept. @throws WebhookError when it kept a parsed one only */
function bodyBefore(request: NodeRequest, bytesMax: number): Uint8Array | undefined {
  const { rawBody, body, readableEnded = false } = request;
  const raw = [rawBody, body].find((one) => one instanceof Uint8Array);
  if (raw instanceof Uint8Array) {
    if (raw.length > bytesMax) throw tooLarge(bytesMax);
    return raw;
  }
  if (readableEnded) throw consumed();
  return undefined;
}

function consumed(): WebhookError {
  const reason = 'something read the body before, such as express.json(); use this route before it';
  return new WebhookError('body_consumed', reason);
}

function tooLarge(bytesMax: number): WebhookError {
  return new WebhookError('body_too_large', `a body has ${bytesMax} bytes at most`);
}

async function readBody(
  parts: AsyncIterable<unknown>,
  bytesMax: number,
  timeoutMs: number,
): Promise<Uint8Array> {
  const late = () => {
    return new WebhookError('body_late', `the body did not arrive within ${timeoutMs} ms`);
  };
  try {
    return await withDeadline(readParts(parts, bytesMax), timeoutMs, late);
  } catch (cause) {
    if (cause instanceof WebhookError) throw cause;
    throw new WebhookError('body_incomplete', 'the body ended early', { cause });
  }
}

/** Up to this multiple of the bound a body is read and dropped, so that its sender gets the 413. */
const DROPPED_TIMES = 8;

async function readParts(parts: AsyncIterable<unknown>, bytesMax: number): Promise<Uint8Array> {
  let chunks: Uint8Array[] = [];
  let size = 0;
  // Not destroyed on an early return: the refusal is sent on this connection.
  for await (const part of notDestroyed(parts)) {
    const chunk = part instanceof Uint8Array ? part : Buffer.from(String(part));
    size += chunk.length;
    if (size > bytesMax * DROPPED_TIMES) throw tooLarge(bytesMax);
    if (size > bytesMax) chunks = [];
    else chunks.push(chunk);
  }
  if (size > bytesMax) throw tooLarge(bytesMax);
  return Buffer.concat(chunks);
}

function notDestroyed(parts: AsyncIterable<unknown>): AsyncIterable<unknown> {
  const { iterator } = parts as { iterator?: Readable['iterator'] };
  return typeof iterator === 'function'
    ? { [Symbol.asyncIterator]: () => iterator.call(parts, { destroyOnReturn: false }) }
    : parts;
}
