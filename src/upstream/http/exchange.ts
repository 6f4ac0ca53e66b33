/**
 * One request and its answer, as undici's handler sees them. It knows the instant at which the
 * first byte is about to leave: undici calls `onRequestStart` on the standing connection, in the
 * same turn in which it writes, and never writes before it.
 *
 * It promises: `not_sent` only when that instant was never passed; one send at most; an end by the
 * deadline at the latest; no more of the body in memory than the bound. A larger one is given up,
 * or goes on to `overflow`, piece by piece, as fast as it is taken there.
 */
import { type Dispatcher, errors } from 'undici';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { after } from '../../kernel/clock.ts';
import type { Answer, NotSentCause, Overflow, UnknownCause } from '../types.ts';
import { makeRelay, type Relay } from './stream-body.ts';

export interface ExchangeRequest {
  method: string;
  origin: string;
  /** Raw path and query. */
  path: string;
  /** Names and values by turns. */
  headers: string[];
  body?: Uint8Array;
  deadlineAt: Instant;
  bodyBytesMax: number;
  mayStillSend?: () => boolean;
  signal?: AbortSignal;
  overflow?: Overflow;
}

type Outcome =
  | { end: 'answered'; answer: Answer }
  | { end: 'not_sent'; cause: NotSentCause }
  | { end: 'broken'; cause: UnknownCause; answer?: Answer }
  /** The body went on to `overflow`; the answer holds its beginning. */
  | { end: 'streamed'; answer: Answer };
type Ending =
  | { end: 'answered' }
  | { end: 'streamed' }
  | { end: 'not_sent'; cause: NotSentCause }
  | { end: 'broken'; cause: UnknownCause };

/** `startedAt` is just before the first byte; when nothing left, when the exchange was tried. */
export type Exchanged = { startedAt: Instant; endedAt: Instant } & Outcome;

/** Longer timers than this overflow and would fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * Runs one exchange over a dispatcher. Never rejects.
 * @param cut called when an exchange whose bytes left is given up: the connection must not go on
 */
export function runExchange(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  clock: Clock,
  cut: () => void,
): Promise<Exchanged> {
  return new Promise((resolve) => {
    const exchange = new Exchange(request, clock, cut, resolve);
    if (!exchange.open()) return;
    dispatcher.dispatch(
      {
        method: request.method,
        path: request.path,
        headers: request.headers,
        body: request.body ?? null,
        // One deadline covers all; undici's own timers are coarser.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      exchange,
    );
  });
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: ExchangeRequest;
  readonly #clock: Clock;
  readonly #cut: () => void;
  readonly #resolve: (ended: Exchanged) => void;
  #startedAt: Instant;
  #controller: Dispatcher.DispatchController | undefined;
  #left = false;
  #ended = false;
  #status = 0;
  #headers: [string, string][] = [];
  #chunks: Uint8Array[] = [];
  #size = 0;
  #disarm: () => void = () => {};
  #relay: Relay | undefined;

  constructor(
    request: ExchangeRequest,
    clock: Clock,
    cut: () => void,
    resolve: (ended: Exchanged) => void,
  ) {
    this.#request = request;
    this.#clock = clock;
    this.#cut = cut;
    this.#resolve = resolve;
    this.#startedAt = clock.now();
  }

  /** Sets deadline and signal. False when the exchange ended before it began. */
  open(): boolean {
    const { signal, deadlineAt, path } = this.#request;
    const refusal = path.startsWith('/') ? this.#refusal() : 'invalid_request';
    if (refusal) {
      this.#end({ end: 'not_sent', cause: refusal });
      return false;
    }
    const aborted = () => this.#giveUp('aborted');
    const left = Math.min(deadlineAt - this.#clock.now(), TIMER_MAX_MS);
    const stop = after(left, () => this.#giveUp('deadline'));
    signal?.addEventListener('abort', aborted, { once: true });
    this.#disarm = () => {
      stop();
      signal?.removeEventListener('abort', aborted);
    };
    return true;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Whatever undici may do on a lost connection: there is no second send in one exchange.
    const ended = this.#ended || this.#left;
    const refusal = ended ? 'withdrawn' : (this.#refusal() ?? this.#withdrawal());
    if (refusal) {
      if (!ended) this.#end({ end: 'not_sent', cause: refusal });
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
    if (!this.#relay) {
      const room = this.#request.bodyBytesMax - this.#size;
      this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      this.#size += Math.min(chunk.length, room);
      if (chunk.length <= room) return;
      if (this.#request.overflow) this.#relay = this.#goOn(this.#request.overflow);
      else this.#break('too_large');
      chunk = chunk.subarray(room);
    }
    this.#relay?.pass(controller, chunk);
  }

  onResponseEnd(): void {
    this.#relay?.end();
    this.#end({ end: this.#relay ? 'streamed' : 'answered' });
  }

  onResponseError(_controller: unknown, error: unknown): void {
    if (this.#relay) this.#cutStream();
    else if (!this.#left) this.#end({ end: 'not_sent', cause: notSentCause(error) });
    else if (this.#status) this.#end({ end: 'broken', cause: 'truncated' });
    else this.#end({ end: 'broken', cause: isNotHttp(error) ? 'unreadable' : 'reset' });
  }

  /** From here on the deadline is the relay's, and this exchange keeps only the beginning. */
  #goOn(open: Overflow): Relay {
    const begun = Buffer.concat(this.#chunks);
    this.#chunks = [begun];
    this.#disarm();
    const head = { status: this.#status, headers: this.#headers };
    const stop = () => this.#cutStream();
    return makeRelay(open(head, begun, stop), this.#clock, stop);
  }

  #cutStream(): void {
    if (this.#ended) return;
    this.#relay?.cut();
    this.#end({ end: 'streamed' });
    this.#cut();
    this.#controller?.abort(new Error('given up'));
  }

  #refusal(): NotSentCause | undefined {
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
    if (this.#ended) return;
    this.#end({ end: 'broken', cause });
    this.#cut();
    this.#controller?.abort(new Error('given up'));
  }

  #end(ending: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#disarm();
    const times = { startedAt: this.#startedAt, endedAt: this.#clock.now() };
    this.#resolve({ ...times, ...this.#outcome(ending) });
  }

  #outcome(ending: Ending): Outcome {
    if (ending.end === 'not_sent') return ending;
    const answer = {
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks),
      complete: ending.end === 'answered',
    };
    if (ending.end !== 'broken') return { ...ending, answer };
    return this.#status ? { ...ending, answer } : ending;
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
    case 'TALLYHOOK_TLS':
      return codeOf((error as Error).cause) === 'UND_ERR_CONNECT_TIMEOUT'
        ? 'connect_timeout'
        : 'tls';
    default:
      return code.startsWith('EAI_') ? 'name_lookup' : 'not_connected';
  }
}

/** An answer that is not HTTP, as opposed to none. */
function isNotHttp(error: unknown): boolean {
  return error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError;
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}
