/** Reads requests and writes responses, byte for byte, on Node's own objects. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { withDeadline } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { GatewayResponse } from './responses.ts';

export interface Target {
  path: string;
  /** With its question mark, or empty. */
  query: string;
}

/**
 * The raw path and query of a request.
 * @throws Failure `not_found` for a path that another server could normalise to a different one
 * (`..`, encoded dots, letters or slashes, backslashes, a fragment)
 */
export function targetOf(url: string): Target {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const query = mark < 0 ? '' : url.slice(mark);
  if (!URL.canParse(url, 'http://host.invalid')) throw new Failure('not_found');
  const parsed = new URL(url, 'http://host.invalid');
  const isNormal =
    parsed.host === 'host.invalid' && parsed.pathname === path && isMinimallyEncoded(path);
  if (!isNormal || path.includes('//') || url.includes('#')) {
    throw new Failure('not_found', 'the path is not in its normal form');
  }
  return { path, query };
}

/** False when a character is encoded needlessly: a server reads `%67ive` as `give`. */
function isMinimallyEncoded(path: string): boolean {
  try {
    const decoded = decodeURIComponent(path);
    return encodeURI(decoded) === path && !/[\\\p{Cc}]/u.test(decoded);
  } catch {
    return false;
  }
}

/** The value of a header; several are joined with a comma. */
export function headerOf(incoming: IncomingMessage, name: string): string | undefined {
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
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
