/**
 * The one POST. Bounded in every direction: one deadline over look-up, connect, TLS, head and body;
 * at most `readBytesMax` of the answer are read and then the connection is destroyed; redirects are
 * answers like any other. Never throws: whatever happens is an answer. Addresses are vetted at
 * connect time.
 */
import { Agent, type Dispatcher } from 'undici';
import { after, monotonicMs } from '../../kernel/clock.ts';
import { type AllowedRanges, isRefused, literalAddress } from './address.ts';
import { BLOCKED_ADDRESS, type Resolve, vettedLookup } from './resolve.ts';
import type { Answer } from './verdict.ts';

export interface SendLimits {
  /** For the whole request, in milliseconds. */
  deadlineMs: number;
  /** Bytes of the answer's body that are read at most, and kept at most. */
  readBytesMax: number;
  keepBytesMax: number;
  /** Connections to one origin, shared by all endpoints on it. */
  connectionsPerOrigin: number;
}

export interface Post {
  url: URL;
  headers: Record<string, string>;
  body: Uint8Array;
}

export interface Sent extends Answer {
  durationMs: number;
  body: string | null;
  headers: Record<string, string> | null;
}

export interface AttemptClient {
  post(post: Post): Promise<Sent>;
  /** Ends what is under way with the error `interrupted`. */
  interrupt(): void;
  close(): Promise<void>;
}

/** Headers of an answer that are kept; the others may hold what is not ours to keep. */
const KEPT_HEADERS = [
  'content-type',
  'content-length',
  'date',
  'location',
  'retry-after',
  'server',
];
const HEADER_LENGTH_MAX = 512;

export function makeAttemptClient(
  limits: SendLimits,
  allowed: AllowedRanges,
  resolve: Resolve,
): AttemptClient {
  const agent = new Agent({
    connections: limits.connectionsPerOrigin,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: 4_000,
    // Our own deadline is the shorter one; these only catch what it could have missed.
    headersTimeout: limits.deadlineMs * 2,
    bodyTimeout: limits.deadlineMs * 2,
    connect: { timeout: limits.deadlineMs, lookup: vettedLookup(resolve, allowed) },
  });
  const underWay = new Set<Exchange>();
  return {
    async post(post) {
      const literal = literalAddress(post.url.hostname);
      if (literal !== undefined && isRefused(literal, allowed)) return unsent('blocked_address');
      const exchange = new Exchange(limits);
      underWay.add(exchange);
      try {
        return await exchange.run(agent, post);
      } finally {
        underWay.delete(exchange);
      }
    },
    interrupt() {
      for (const exchange of underWay) exchange.end('interrupted');
    },
    close: () => agent.destroy(),
  };
}

/** What stands for an answer when nothing was sent, and why. */
export function unsent(error: string): Sent {
  const nothing = { status: null, retryAfter: undefined, body: null, headers: null };
  return { ...nothing, error, durationMs: 0 };
}

/** One request under way: collects the answer and ends exactly once. */
class Exchange implements Dispatcher.DispatchHandler {
  private readonly limits: SendLimits;
  private readonly startedMs = monotonicMs();
  private readonly chunks: Buffer[] = [];
  private status: number | null = null;
  private headers: Record<string, string> | null = null;
  private read = 0;
  private kept = 0;
  private controller: Dispatcher.DispatchController | undefined;
  private finish: ((sent: Sent) => void) | undefined;

  constructor(limits: SendLimits) {
    this.limits = limits;
  }

  run(agent: Agent, post: Post): Promise<Sent> {
    const done = new Promise<Sent>((resolve) => {
      const cancel = after(this.limits.deadlineMs, () => this.end('timeout'));
      this.finish = (sent) => {
        cancel();
        resolve(sent);
      };
    });
    const { url, headers, body } = post;
    const path = url.pathname + url.search;
    try {
      agent.dispatch({ origin: url.origin, path, method: 'POST', headers, body }, this);
    } catch (error) {
      this.end(wordFor(error));
    }
    return done;
  }

  /**
   * Ends with what there is; a request still waiting for its connection is dropped when it gets
   * one.
   */
  end(error: string | null): void {
    const finish = this.finish;
    if (!finish) return;
    this.finish = undefined;
    finish({
      status: this.status,
      error,
      retryAfter: this.headers?.['retry-after'],
      durationMs: Math.round(monotonicMs() - this.startedMs),
      body: this.status === null ? null : textOf(this.chunks),
      headers: this.headers,
    });
    if (error !== null || this.read > this.limits.readBytesMax)
      this.controller?.abort(new Error('the webhook request has ended'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (!this.finish) controller.abort(new Error('the webhook request has ended'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (statusCode < 200) return;
    this.status = statusCode;
    this.headers = keptHeaders(headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.read += chunk.length;
    const part = chunk.subarray(0, Math.max(0, this.limits.keepBytesMax - this.kept));
    if (part.length > 0) {
      this.kept += part.length;
      // The chunk lies in a buffer that the connection uses again.
      this.chunks.push(Buffer.from(part));
    }
    if (this.read > this.limits.readBytesMax) this.end(null);
  }

  onResponseEnd(): void {
    this.end(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end(wordFor(error));
  }
}

function keptHeaders(headers: Record<string, string | string[] | undefined>) {
  const kept: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = headers[name];
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) kept[name] = printable(first.slice(0, HEADER_LENGTH_MAX));
  }
  return kept;
}

/** Text as Postgres takes it: a NUL has no place in its text type. */
function printable(text: string): string {
  return text.replaceAll('\u0000', '\ufffd');
}

function textOf(chunks: readonly Buffer[]): string {
  return printable(Buffer.concat(chunks).toString('utf8'));
}

const WORDS: Record<string, string> = {
  [BLOCKED_ADDRESS]: 'blocked_address',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ETIMEDOUT: 'connect_timeout',
  UND_ERR_CONNECT_TIMEOUT: 'connect_timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  ENODATA: 'dns',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  UND_ERR_HEADERS_OVERFLOW: 'unreadable',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'unreadable',
};

/**
 * A stable word for why there was no whole answer; the driver's text may hold addresses and is
 * dropped.
 */
function wordFor(error: unknown): string {
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string') return 'failed';
  if (WORDS[code]) return WORDS[code];
  if (/^HPE_/.test(code)) return 'unreadable';
  return /CERT|TLS|SSL|SIGNATURE/.test(code) ? 'tls' : 'failed';
}
