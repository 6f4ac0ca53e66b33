/**
 * The HTTP request of one attempt. One deadline covers lookup, connect, TLS and the head of the
 * response. The head decides: what follows is read for the attempt log only, for `bodyMs` and up to
 * `readBytesMax`, and may stall, be cut off or be unreadable; then the connection is destroyed.
 * Redirects are not followed. A failure is a response with an error code, never an exception.
 */
import { Agent, type Dispatcher } from 'undici';
import { after, monotonicMs } from '../../../kernel/clock.ts';
import { ProxyFailure } from '../../../kernel/http/proxy-failure.ts';
import { tlsFaultOf } from '../../../resources/faults.ts';
import { type AllowedRanges, isRefused, literalAddress } from '../../endpoints/address.ts';
import type { TlsSettings } from '../../endpoints/destination/auth.ts';
import type { ResponseSummary } from '../attempt-result.ts';
import { makeConnector, type ProxyUse } from './connector.ts';
import { RecentlyUsed } from './recently-used.ts';
import { remembered } from './remembered.ts';
import { BLOCKED_ADDRESS, checkedLookup, makeResolve, type Resolve } from './resolve.ts';

export interface SendLimits {
  /** From the start to the head of the response. */
  deadlineMs: number;
  /** From the head to the end of the body. */
  bodyMs: number;
  /** Bytes of the response body that are read, and that are kept in the attempt log. */
  readBytesMax: number;
  keepBytesMax: number;
}

export interface WebhookRequest {
  url: URL;
  headers: Record<string, string>;
  body: Uint8Array;
  /** Connections with the same object are shared, and with no other. */
  tls?: TlsSettings | undefined;
}

export interface AttemptResponse extends ResponseSummary {
  durationMs: number;
  body: string | null;
  headers: Record<string, string> | null;
}

export interface AttemptClient {
  /** @param deadlineMs if less than that of the limits is left */
  post(request: WebhookRequest, deadlineMs?: number): Promise<AttemptResponse>;
  /** Ends every request in flight with the error `interrupted`. */
  interrupt(): void;
  close(): Promise<void>;
}

/** Response headers that are kept; others may contain credentials of the receiver. */
const KEPT_HEADERS = [
  'content-type',
  'content-length',
  'date',
  'location',
  'retry-after',
  'server',
];
const HEADER_LENGTH_MAX = 512;
/** Of endpoints with TLS settings of their own, which have their own connections. */
const OWN_AGENTS_MAX = 256;

export function makeAttemptClient(
  limits: SendLimits,
  allowed: AllowedRanges,
  proxies: ProxyUse = {},
  resolve: Resolve = makeResolve(),
): AttemptClient {
  const lookup = checkedLookup(resolve, allowed);
  const makeAgent = (tls?: TlsSettings) =>
    new Agent({
      // The sender bounds them.
      connections: null,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: 4_000,
      // A safety net behind our own deadline.
      headersTimeout: limits.deadlineMs * 2,
      bodyTimeout: limits.deadlineMs * 2,
      connect: makeConnector(lookup, limits.deadlineMs, proxies, tls),
    });
  const agent = makeAgent();
  const own = new RecentlyUsed<TlsSettings, Agent>(OWN_AGENTS_MAX, (one) => void one.close());
  const agentFor = (tls: TlsSettings | undefined) => {
    if (!tls) return agent;
    const known = own.get(tls);
    if (known) return known;
    const made = makeAgent(tls);
    own.set(tls, made);
    return made;
  };
  const inFlight = new Set<Exchange>();
  const isBlocked = remembered((hostname: string) => {
    const literal = literalAddress(hostname);
    return literal !== undefined && isRefused(literal, allowed);
  });
  return {
    async post(request, deadlineMs = limits.deadlineMs) {
      if (isBlocked(request.url.hostname)) return notSent('blocked_address');
      const exchange = new Exchange({
        ...limits,
        deadlineMs: Math.min(deadlineMs, limits.deadlineMs),
      });
      inFlight.add(exchange);
      try {
        return await exchange.run(agentFor(request.tls), request);
      } finally {
        inFlight.delete(exchange);
      }
    },
    interrupt() {
      for (const exchange of inFlight) exchange.end('interrupted');
    },
    async close() {
      await Promise.all([agent, ...own.values()].map((one) => one.destroy()));
    },
  };
}

/** The error of a request that could not be built, by our own fault; it is no attempt. */
export const NOT_PREPARED = 'not_prepared';

export function notSent(error: string): AttemptResponse {
  const empty = { status: null, retryAfter: undefined, date: undefined, body: null, headers: null };
  return { ...empty, error, durationMs: 0 };
}

/** One request and its response; ends exactly once. */
class Exchange implements Dispatcher.DispatchHandler {
  private readonly limits: SendLimits;
  private readonly startedMs = monotonicMs();
  private readonly chunks: Buffer[] = [];
  private status: number | null = null;
  private headers: Record<string, string> | null = null;
  private read = 0;
  private kept = 0;
  private controller: Dispatcher.DispatchController | undefined;
  private cancelDeadline = () => {};
  private finish: ((response: AttemptResponse) => void) | undefined;

  constructor(limits: SendLimits) {
    this.limits = limits;
  }

  run(agent: Agent, request: WebhookRequest): Promise<AttemptResponse> {
    const done = new Promise<AttemptResponse>((resolve) => {
      this.finish = resolve;
      this.endAfter(this.limits.deadlineMs);
    });
    const { url, headers, body } = request;
    const path = url.pathname + url.search;
    try {
      agent.dispatch({ origin: url.origin, path, method: 'POST', headers, body }, this);
    } catch (error) {
      this.end(errorCodeOf(error));
    }
    return done;
  }

  private endAfter(ms: number): void {
    this.cancelDeadline();
    this.cancelDeadline = after(ms, () => this.end('timeout'));
  }

  /**
   * Resolves with what has arrived. A request that still waits for a connection is aborted when it
   * gets one.
   * @param error why no more arrives; null at the end of the response
   */
  end(error: string | null): void {
    const finish = this.finish;
    if (!finish) return;
    this.finish = undefined;
    this.cancelDeadline();
    finish({
      status: this.status,
      error: this.status === null ? (error ?? 'unreadable') : null,
      retryAfter: this.headers?.['retry-after'],
      date: this.headers?.date,
      durationMs: Math.round(monotonicMs() - this.startedMs),
      body: this.status === null ? null : printable(Buffer.concat(this.chunks).toString('utf8')),
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
    this.endAfter(this.limits.bodyMs);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.read += chunk.length;
    const part = chunk.subarray(0, Math.max(0, this.limits.keepBytesMax - this.kept));
    if (part.length > 0) {
      this.kept += part.length;
      // The connection reuses the buffer of the chunk.
      this.chunks.push(Buffer.from(part));
    }
    if (this.read > this.limits.readBytesMax) this.end(null);
  }

  onResponseEnd(): void {
    this.end(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end(errorCodeOf(error));
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

/** Postgres text cannot contain NUL. */
function printable(text: string): string {
  return text.replaceAll('\u0000', '\ufffd');
}

const ERROR_CODES: Record<string, string> = {
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

/** A stable error code; the driver's message may contain addresses and is dropped. */
export function errorCodeOf(error: unknown): string {
  if (error instanceof ProxyFailure) return error.fault;
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string') return 'failed';
  if (ERROR_CODES[code]) return ERROR_CODES[code];
  if (/^HPE_/.test(code)) return 'unreadable';
  return tlsFaultOf(error) ?? 'failed';
}
