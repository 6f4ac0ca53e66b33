/**
 * One HTTP request and its answer, with proof whether bytes left. The proof relies on undici: it
 * calls `onRequestStart` on the established connection, in the same tick in which it writes, and
 * writes nothing before. An exchange sends at most once and ends by its deadline.
 */
import { type Dispatcher, errors } from 'undici';
import { after, type Clock, type Instant } from '../../kernel/clock.ts';
import { ProxyFailure, type ProxyFault } from '../../kernel/http/proxy-failure.ts';
import { type TlsFault, tlsFaultOf } from '../../resources/faults.ts';

export interface ExchangeRequest {
  method: string;
  origin: string;
  /** Raw path and query. */
  path: string;
  /** Names and values alternate. */
  headers: string[];
  body?: Uint8Array | undefined;
  deadlineAt: Instant;
  /** More of the body is not buffered: it goes to `overflow`, or breaks the exchange. */
  bodyBytesMax: number;
  mayStillSend?: (() => boolean) | undefined;
  signal?: AbortSignal | undefined;
  overflow?: Overflow | undefined;
}

/** Why it is certain that no byte of a request left. */
export type NotSentCause =
  | TlsFault
  | 'name_lookup'
  | 'connection_refused'
  | 'connect_timeout'
  /** The forward proxy opened no tunnel to the service. */
  | ProxyFault
  /** Any other failure before the connection was established. */
  | 'not_connected'
  /** The deadline passed before the first byte. */
  | 'deadline'
  /** `mayStillSend` returned false. */
  | 'withdrawn'
  | 'aborted'
  /** The request cannot be written as HTTP. */
  | 'invalid_request'
  /** No managed client token could be fetched. */
  | 'no_client_token'
  /** Too many requests of apps are open. */
  | 'busy';

/** Why the outcome of a request that left is not known. */
export type UnknownCause =
  /** Such as a client certificate that TLS 1.3 demands after the request. */
  | TlsFault
  | 'reset'
  | 'timeout'
  | 'aborted'
  | 'truncated'
  | 'too_large'
  | 'unreadable'
  /** 500/999, 500/499, another 5xx, or body status 500. */
  | 'server_error'
  /** A success envelope without its number or hash. */
  | 'no_number'
  /** Anything that the interface does not name, such as a redirect. */
  | 'unexpected';

/**
 * Opens the stream for an answer that is larger than the client buffers.
 * @param beginning the buffered beginning of the body
 * @param stop ends the exchange when the reader is gone
 */
export type Overflow = (head: Head, beginning: Uint8Array, stop: () => void) => Sink;

export interface Head {
  status: number;
  /** In their order, duplicates kept. */
  headers: [string, string][];
}

/** Receives the rest of a body. */
export interface Sink {
  /** False when the next piece has to wait for `drained`. */
  write(piece: Uint8Array): boolean;
  /** Calls `resume` once when the sink accepts more. */
  drained(resume: () => void): void;
  end(): void;
  /** Ends the stream so that its reader sees that it is incomplete. */
  cut(): void;
}

/** The part of an answer that was read. */
export interface Answer extends Head {
  body: Uint8Array;
  /** False when the body was truncated or too large; `body` then holds its beginning. */
  complete: boolean;
}

type Ending =
  | { end: 'answered' }
  | { end: 'not_sent'; cause: NotSentCause }
  /** Bytes left, and the answer was not read to its end. */
  | { end: 'broken'; cause: UnknownCause }
  /** The body went to `overflow`; the answer holds its beginning. */
  | { end: 'streamed' };

type Result =
  | { end: 'answered' | 'streamed'; answer: Answer }
  | { end: 'not_sent'; cause: NotSentCause }
  | { end: 'broken'; cause: UnknownCause; answer?: Answer };

/** `startedAt` is just before the first byte; if nothing left, the start of the attempt. */
export type ExchangeResult = { startedAt: Instant; endedAt: Instant } & Result;

/**
 * Runs one exchange over a dispatcher. Never rejects.
 * @param reset called when an exchange whose bytes left is given up; closes its connection
 */
export function runExchange(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  clock: Clock,
  reset: () => void,
): Promise<ExchangeResult> {
  const { promise, resolve } = Promise.withResolvers<ExchangeResult>();
  const exchange = new Exchange(request, clock, reset, resolve);
  if (!exchange.open()) return promise;
  dispatcher.dispatch(
    {
      method: request.method,
      path: request.path,
      headers: request.headers,
      body: request.body ?? null,
      // The deadline of the exchange covers all; undici's own timers are coarser.
      headersTimeout: 0,
      bodyTimeout: 0,
    },
    exchange,
  );
  return promise;
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: ExchangeRequest;
  readonly #clock: Clock;
  readonly #reset: () => void;
  readonly #resolve: (ended: ExchangeResult) => void;
  #startedAt: Instant;
  #controller: Dispatcher.DispatchController | undefined;
  #left = false;
  #ended = false;
  #status = 0;
  #headers: [string, string][] = [];
  #chunks: Uint8Array[] = [];
  #size = 0;
  #disarm: () => void = () => {};
  #stream: BodyStream | undefined;

  constructor(
    request: ExchangeRequest,
    clock: Clock,
    reset: () => void,
    resolve: (ended: ExchangeResult) => void,
  ) {
    this.#request = request;
    this.#clock = clock;
    this.#reset = reset;
    this.#resolve = resolve;
    this.#startedAt = clock.now();
  }

  /** Sets deadline and signal. False when the exchange has already ended. */
  open(): boolean {
    const { signal, deadlineAt, path } = this.#request;
    const refusal = path.startsWith('/') ? this.#expiry() : 'invalid_request';
    if (refusal) {
      this.#end({ end: 'not_sent', cause: refusal });
      return false;
    }
    const abort = () => this.#giveUp('aborted');
    const cancel = after(deadlineAt - this.#clock.now(), () => this.#giveUp('deadline'));
    signal?.addEventListener('abort', abort, { once: true });
    this.#disarm = () => {
      cancel();
      signal?.removeEventListener('abort', abort);
    };
    return true;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Undici may retry on a lost connection; one exchange never sends twice.
    const over = this.#ended || this.#left;
    const refusal = over ? 'withdrawn' : (this.#expiry() ?? this.#withdrawal());
    if (refusal) {
      if (!over) this.#end({ end: 'not_sent', cause: refusal });
      controller.abort(new Error('not sent'));
      return;
    }
    this.#controller = controller;
    this.#startedAt = this.#clock.now();
    this.#left = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headerPairs(controller.rawHeaders);
  }

  onResponseData(controller: Dispatcher.DispatchController, data: Uint8Array): void {
    let chunk = data;
    if (!this.#stream) {
      const room = this.#request.bodyBytesMax - this.#size;
      this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      this.#size += Math.min(chunk.length, room);
      if (chunk.length <= room) return;
      if (this.#request.overflow) this.#stream = this.#openStream(this.#request.overflow);
      else this.#break('too_large');
      chunk = chunk.subarray(room);
    }
    this.#stream?.write(controller, chunk);
  }

  onResponseEnd(): void {
    this.#stream?.end();
    this.#end({ end: this.#stream ? 'streamed' : 'answered' });
  }

  onResponseError(_controller: unknown, error: unknown): void {
    if (this.#stream) this.#cutStream();
    else if (!this.#left) this.#end({ end: 'not_sent', cause: notSentCause(error) });
    else if (this.#status) this.#end({ end: 'broken', cause: 'truncated' });
    else if (isNotHttp(error)) this.#end({ end: 'broken', cause: 'unreadable' });
    else this.#end({ end: 'broken', cause: tlsFaultOf(error) ?? 'reset' });
  }

  /** From here on the stream has its own deadline. */
  #openStream(overflow: Overflow): BodyStream {
    const beginning = Buffer.concat(this.#chunks);
    this.#chunks = [beginning];
    this.#disarm();
    const stop = () => this.#cutStream();
    const sink = overflow({ status: this.#status, headers: this.#headers }, beginning, stop);
    return makeBodyStream(sink, this.#clock, stop);
  }

  #cutStream(): void {
    if (this.#ended) return;
    this.#stream?.cut();
    this.#abort({ end: 'streamed' });
  }

  #expiry(): NotSentCause | undefined {
    if (this.#request.signal?.aborted) return 'aborted';
    return this.#clock.now() >= this.#request.deadlineAt ? 'deadline' : undefined;
  }

  #withdrawal(): NotSentCause | undefined {
    try {
      return (this.#request.mayStillSend?.() ?? true) ? undefined : 'withdrawn';
    } catch {
      return 'withdrawn';
    }
  }

  #giveUp(why: 'deadline' | 'aborted'): void {
    if (!this.#left) this.#end({ end: 'not_sent', cause: why });
    else this.#break(why === 'deadline' ? 'timeout' : why);
  }

  #break(cause: UnknownCause): void {
    if (!this.#ended) this.#abort({ end: 'broken', cause });
  }

  #abort(ending: Ending): void {
    this.#end(ending);
    this.#reset();
    this.#controller?.abort(new Error('given up'));
  }

  #end(ending: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#disarm();
    const times = { startedAt: this.#startedAt, endedAt: this.#clock.now() };
    this.#resolve({ ...times, ...this.#withAnswer(ending) });
  }

  #withAnswer(ending: Ending): Result {
    if (ending.end === 'not_sent' || (ending.end === 'broken' && !this.#status)) return ending;
    const answer = {
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks),
      complete: ending.end === 'answered',
    };
    return { ...ending, answer };
  }
}

/** Raw headers as pairs, duplicates kept, in their order. */
function headerPairs(raw: Dispatcher.DispatchController['rawHeaders']): [string, string][] {
  const flat = Array.isArray(raw) ? raw.map(latin1) : [];
  return Array.from({ length: flat.length >> 1 }, (_, i) => [
    flat[2 * i] ?? '',
    flat[2 * i + 1] ?? '',
  ]);
}

function latin1(value: Buffer | string): string {
  return typeof value === 'string' ? value : value.toString('latin1');
}

/** What an error before the first byte means. */
function notSentCause(error: unknown): NotSentCause {
  if (error instanceof ProxyFailure) return error.fault;
  const code = codeOf(error);
  switch (code) {
    case 'ENOTFOUND':
      return 'name_lookup';
    case 'ECONNREFUSED':
      return 'connection_refused';
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return 'connect_timeout';
    case 'UND_ERR_INVALID_ARG':
      return 'invalid_request';
    default:
      if (code.startsWith('EAI_')) return 'name_lookup';
      return tlsFaultOf(error) ?? 'not_connected';
  }
}

/** True for an answer that is not HTTP, as opposed to no answer. */
function isNotHttp(error: unknown): boolean {
  return error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError;
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/** How long a stream may stall, and how long it may take in all. */
const STALL_MS = 30_000;
const WHOLE_MS = 600_000;

/** The source of the pieces, which can be held back. */
interface Source {
  pause(): void;
  resume(): void;
}

interface BodyStream {
  write(source: Source, piece: Uint8Array): void;
  end(): void;
  cut(): void;
}

/**
 * Streams a body that is larger than the client buffers, piece by piece, as fast as its reader
 * takes it and never more than one piece ahead. A stream that stalls or takes too long is cut, so
 * that its reader sees that it is incomplete.
 * @param giveUp called once when the stream exceeds a limit; must close the source
 */
function makeBodyStream(sink: Sink, clock: Clock, giveUp: () => void): BodyStream {
  const until = clock.now() + WHOLE_MS;
  let ended = false;
  let cancel = () => {};
  const finish = (how: () => void) => {
    if (ended) return;
    ended = true;
    cancel();
    how();
  };
  const restartTimer = () => {
    cancel();
    cancel = after(Math.max(0, Math.min(STALL_MS, until - clock.now())), giveUp);
  };
  restartTimer();
  return {
    write(source, piece) {
      if (ended) return;
      restartTimer();
      if (sink.write(piece)) return;
      source.pause();
      sink.drained(() => {
        if (ended) return;
        restartTimer();
        source.resume();
      });
    },
    end: () => finish(() => sink.end()),
    cut: () => finish(() => sink.cut()),
  };
}
