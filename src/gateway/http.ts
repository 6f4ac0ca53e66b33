/**
 * Reading a caller's request and writing the answer, byte for byte, on Node's own request and
 * response.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Failure } from '../kernel/errors.ts';
import type { Answer } from './replies.ts';

export interface Target {
  path: string;
  /** With its question mark, or empty. */
  query: string;
}

/**
 * The raw path and query of a request. @throws Failure `not_found` when a normalising server would
 * read another path in it (`..`, encoded dots, letters or slashes, backslashes, a fragment),
 * because then two readers would disagree.
 */
export function targetOf(url: string): Target {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const query = mark < 0 ? '' : url.slice(mark);
  if (!URL.canParse(url, 'http://host.invalid')) throw new Failure('not_found');
  const normal = new URL(url, 'http://host.invalid');
  const same = normal.host === 'host.invalid' && normal.pathname === path && encodedOnce(path);
  if (!same || path.includes('//') || url.includes('#')) {
    throw new Failure('not_found', 'the path is not in its normal form');
  }
  return { path, query };
}

/**
 * True when what is percent-encoded has to be: `%67ive` is `give` to a server, and must not pass as
 * another.
 */
function encodedOnce(path: string): boolean {
  try {
    const decoded = decodeURIComponent(path);
    return encodeURI(decoded) === path && !/[\\\p{Cc}]/u.test(decoded);
  } catch {
    return false;
  }
}

/** One header as text; several of a name are joined, as Node does. */
export function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** How much more than the bound is read and dropped, so that a caller hears why it is refused. */
const DROPPED_TIMES = 8;

/**
 * The whole body, at most `bytesMax`. @throws Failure `body_too_large`, `invalid_request` when cut
 * off
 * @param goOn called once when the body is wanted
 */
export async function readBody(
  request: IncomingMessage,
  bytesMax: number,
  goOn?: () => void,
): Promise<Uint8Array> {
  const droppedMax = bytesMax * DROPPED_TIMES;
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > (goOn ? bytesMax : droppedMax)) throw tooLarge(bytesMax);
  goOn?.();
  let chunks: Buffer[] = [];
  let size = 0;
  try {
    // Left early it is not destroyed: the refusal goes out on this connection.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > droppedMax) throw tooLarge(bytesMax);
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
  return new Failure('body_too_large', `at most ${bytesMax} bytes are taken`);
}

/** Sets status and headers; several of a name stay several. */
export function writeHead(response: ServerResponse, head: Omit<Answer, 'body'>): void {
  const named = new Map<string, string[]>();
  for (const [name, value] of head.headers) {
    named.set(name.toLowerCase(), [...(named.get(name.toLowerCase()) ?? []), value]);
  }
  response.statusCode = head.status;
  for (const [name, values] of named) {
    response.setHeader(name, values.length === 1 ? (values[0] as string) : values);
  }
}

/** Writes an answer whole; a caller that has gone is no error. */
export function writeAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  bodyBytesMax: number,
): void {
  if (response.destroyed || response.headersSent) return;
  writeHead(response, answer);
  // An answer that has no body by its nature is not given a length of its own.
  const bodiless = request.method === 'HEAD' || answer.status === 204 || answer.status === 304;
  if (!bodiless) response.setHeader('content-length', answer.body.length);
  // What was not read of a refused body must not be taken for the next request; a small one is
  // read and dropped, so that the caller hears why.
  if (!request.complete && !isDroppable(request, bodyBytesMax))
    response.setHeader('connection', 'close');
  response.end(bodiless ? undefined : answer.body);
}

/** True when the rest of the body is bounded and on its way. */
function isDroppable({ headers }: IncomingMessage, bodyBytesMax: number): boolean {
  const length = Number(headers['content-length'] ?? Number.NaN);
  return length <= bodyBytesMax * DROPPED_TIMES && headers.expect === undefined;
}
