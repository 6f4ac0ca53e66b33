/**
 * Requests and responses on Node's own objects: target, key, headers and body of a request are
 * read, and responses are written byte for byte.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DAY_MS, type Instant, parseInstant, withDeadline } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { HEADER_TEXT_MAX, isHeaderText, isNormalPath, NOT_NORMAL } from '../kernel/http/request.ts';
import type { TrustedProxies } from '../kernel/http/trusted-proxies.ts';
import { type Caller, isSecret, type Keys } from '../keys/keys.ts';
import type { GatewayResponse } from './responses.ts';
import { withUpperCodes } from './routes.ts';

export interface Target {
  path: string;
  /** With its question mark, or empty. */
  query: string;
}

/**
 * The raw path and query of a request.
 * @throws Failure `not_found` for a path that another server could read as a different one
 * (`..`, encoded dots, letters or slashes, backslashes)
 */
export function targetOf(url: string): Target {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const query = mark < 0 ? '' : url.slice(mark);
  if (!isNormalPath(path) || !isMinimallyEncoded(path)) throw new Failure('not_found', NOT_NORMAL);
  return { path, query };
}

/** False when a character is encoded needlessly: a server reads `%67ive` as `give`. */
function isMinimallyEncoded(path: string): boolean {
  return encodeURI(decodeURIComponent(path)) === withUpperCodes(path);
}

/** The value of a header; several are joined with a comma. */
export function headerOf(incoming: IncomingMessage, name: string): string | undefined {
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

export interface Identity {
  caller: Caller;
  /** The caller's own Authorization; undefined for the managed client token. */
  ownToken: string | undefined;
}

/** Reads the key from Authorization or `Tallyhook-Key`; undefined without a valid one. */
export async function authenticate(
  { keys, addressOf }: { keys: Keys; addressOf: TrustedProxies['addressOf'] },
  incoming: IncomingMessage,
): Promise<Identity | undefined> {
  const authorization = headerOf(incoming, 'authorization');
  const address = () => addressOf(incoming);
  const bearer = bearerOf(authorization);
  if (bearer && isSecret(bearer)) {
    const caller = await keys.authenticate(bearer, address);
    return caller && { caller, ownToken: undefined };
  }
  const key = headerOf(incoming, 'tallyhook-key');
  const caller = await keys.authenticate(key ?? '', address);
  return caller && { caller, ownToken: authorization };
}

/** The Authorization of an unauthenticated request, unless it holds one of our keys. */
export function serviceAuthorization(incoming: IncomingMessage): string | undefined {
  const authorization = headerOf(incoming, 'authorization');
  return isSecret(bearerOf(authorization) ?? '') ? undefined : authorization;
}

function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer\s+(\S+)$/i.exec(authorization ?? '')?.[1];
}

/** Headers of the app that the service gets. */
const FORWARDED = [
  'content-type',
  'content-encoding',
  'accept',
  'accept-language',
  'user-agent',
  'cookie',
];

/** Of W3C Trace Context; a malformed one and its `tracestate` are dropped, as it demands. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(-.*)?$/;

/** The `traceparent` of a request; undefined without a valid one. */
export function traceparentOf(incoming: IncomingMessage): string | undefined {
  const value = headerOf(incoming, 'traceparent');
  return value !== undefined && TRACEPARENT.test(value) ? value : undefined;
}

export function forwardedHeaders(incoming: IncomingMessage): [string, string][] {
  const trace = traceparentOf(incoming) === undefined ? [] : ['traceparent', 'tracestate'];
  return [...FORWARDED, ...trace].flatMap((name) => {
    const value = headerOf(incoming, name);
    return value === undefined ? [] : [[name, value] as [string, string]];
  });
}

/**
 * The key in `Idempotency-Key`. The draft of the header writes it as a quoted string (RFC 9651,
 * section 3.3.3), many clients as it is; both are one key.
 * @throws Failure `invalid_request`
 */
export function idempotencyKeyOf(incoming: IncomingMessage): string | undefined {
  const value = headerOf(incoming, 'idempotency-key');
  if (!value?.startsWith('"')) return bounded('idempotency-key', value);
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(value)?.[1];
  if (quoted === undefined) {
    const form = 'a quote that opens the key closes it; within it \\" and \\\\ are escapes';
    throw new Failure('invalid_request', `idempotency-key: ${form}`);
  }
  return bounded('idempotency-key', quoted.replace(/\\(.)/g, '$1'));
}

/** A header that is stored. @throws Failure `invalid_request` */
export function boundedHeader(incoming: IncomingMessage, name: string): string | undefined {
  return bounded(name, headerOf(incoming, name));
}

function bounded(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (isHeaderText(value)) return value;
  const form = `1 to ${HEADER_TEXT_MAX} printable characters`;
  throw new Failure('invalid_request', `${name} must be ${form}`);
}

const TTL_MAX_MS = 7 * DAY_MS;

/**
 * Until when a write with `Prefer: respond-async` (RFC 7240) may wait; undefined without it.
 * @param expires the header `Tallyhook-Expires`; `ttlMs` from now when it is absent
 * @throws Failure `invalid_request` for an instant that is invalid, past, or too far ahead
 */
export function waitsUntil(
  prefer: string | undefined,
  expires: string | undefined,
  now: Instant,
  ttlMs: number,
): Instant | undefined {
  if (!prefersAsync(prefer)) return undefined;
  if (expires === undefined) return now + ttlMs;
  const at = parseInstant(expires.trim());
  if (at === undefined)
    throw new Failure('invalid_request', 'tallyhook-expires must be an RFC 3339 instant');
  if (at <= now) throw new Failure('invalid_request', 'tallyhook-expires is past');
  if (at > now + TTL_MAX_MS)
    throw new Failure('invalid_request', 'tallyhook-expires is more than 7 days ahead');
  return at;
}

function prefersAsync(prefer = ''): boolean {
  return prefer
    .split(',')
    .some((preference) => /^respond-async$/i.test(preference.split(';')[0]?.trim() ?? ''));
}

/** Up to this multiple of the limit a body is read and dropped, so that the client gets the 413. */
const DROPPED_TIMES = 8;

export interface BodyLimits {
  bytesMax: number;
  /** From the end of the headers to that of the body. */
  deadlineMs: number;
  /** Ends the wait before its deadline. */
  displaced?: AbortSignal;
  /** Called once before the body is read. */
  sendContinue: (() => void) | undefined;
}

/**
 * Reads the whole body.
 * @throws Failure `body_too_large`, `request_timeout`, `invalid_request` (the body ended early)
 */
export async function readBody(
  incoming: IncomingMessage,
  { bytesMax, deadlineMs, displaced, sendContinue }: BodyLimits,
): Promise<Uint8Array> {
  const declared = Number(incoming.headers['content-length'] ?? 0);
  if (declared > (sendContinue ? bytesMax : bytesMax * DROPPED_TIMES)) throw tooLarge(bytesMax);
  sendContinue?.();
  const late = () => {
    throw new Failure('request_timeout', 'the body did not arrive in time');
  };
  return withDeadline(readChunks(incoming, bytesMax), deadlineMs, late, displaced);
}

async function readChunks(incoming: IncomingMessage, bytesMax: number): Promise<Uint8Array> {
  let chunks: Buffer[] = [];
  let size = 0;
  try {
    // Not destroyed on an early return: the refusal is sent on this connection.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > bytesMax * DROPPED_TIMES) throw tooLarge(bytesMax);
      if (size > bytesMax) chunks = [];
      else chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof Failure ? error : new Failure('invalid_request', 'the body ended early');
  }
  if (size > bytesMax) throw tooLarge(bytesMax);
  return Buffer.concat(chunks);
}

function tooLarge(bytesMax: number): Failure {
  return new Failure('body_too_large', `the limit is ${bytesMax} bytes`);
}

/** Sets status and headers; headers of one name stay separate. */
export function writeHead(outgoing: ServerResponse, head: Omit<GatewayResponse, 'body'>): void {
  const byName = new Map<string, string[]>();
  for (const [name, value] of head.headers) {
    byName.set(name.toLowerCase(), [...(byName.get(name.toLowerCase()) ?? []), value]);
  }
  outgoing.statusCode = head.status;
  for (const [name, values] of byName) {
    outgoing.setHeader(name, values.length === 1 ? (values[0] as string) : values);
  }
}

/** Writes a whole response; does nothing when the client is gone. */
export function writeResponse(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: GatewayResponse,
  bodyBytesMax: number,
): void {
  if (outgoing.destroyed || outgoing.headersSent) return;
  writeHead(outgoing, response);
  const hasBody = incoming.method !== 'HEAD' && response.status !== 204 && response.status !== 304;
  if (hasBody) outgoing.setHeader('content-length', response.body.length);
  // The unread rest of a refused body must not be read as the next request. Node reads and drops a
  // small one, so that the client gets the response.
  const isLate = response.status === 408;
  if (!incoming.complete && (isLate || !isDroppable(incoming, bodyBytesMax)))
    outgoing.setHeader('connection', 'close');
  outgoing.end(hasBody ? response.body : undefined);
}

/** True when the rest of the body is bounded and already being sent. */
function isDroppable({ headers }: IncomingMessage, bodyBytesMax: number): boolean {
  const length = Number(headers['content-length'] ?? Number.NaN);
  return length <= bodyBytesMax * DROPPED_TIMES && headers.expect === undefined;
}
