/**
 * A real HTTP receiver on a free port of 127.0.0.1. Its behaviour is switched while a test runs,
 * for all paths or for one; it keeps every request with its raw body, and a test waits for the next
 * one without sleeping. Nothing here knows what a webhook is.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { after, monotonicMs } from '../../src/kernel/clock.ts';
import { closeServer, listen } from './listen.ts';

/** What the receiver does with a request once it has read it whole. */
export type Behaviour =
  /** Answers. Body: text, or bytes. */
  | {
      do: 'answer';
      status: number;
      headers?: Record<string, string | string[]>;
      body?: string | Uint8Array;
    }
  /** Answers with one status after the other, and then with the last. */
  | { do: 'in_turn'; statuses: number[] }
  /** Never answers; the connection stays open until `release` or `close`. */
  | { do: 'hang' }
  /** Answers after so many milliseconds. */
  | { do: 'delay'; ms: number; status: number }
  /** Sends the head at once and then a byte from time to time, without an end. */
  | { do: 'drip'; status: number; everyMs: number }
  /** Sends bytes as fast as they are taken, without an end. */
  | { do: 'flood'; status: number }
  /** Sends the head at once, and nothing more. */
  | { do: 'stall'; status: number }
  /** Sends a head, and then bytes that are no body of it. */
  | { do: 'garble'; status: number }
  /** Cuts the connection before the head, or in the middle of the body. */
  | { do: 'reset'; when: 'before_head' }
  | { do: 'reset'; when: 'in_body'; status: number };

export interface Received {
  /** Position among all requests of this receiver, from 0. */
  n: number;
  method: string;
  path: string;
  headers: Record<string, string | undefined>;
  body: string;
  rawBody: Buffer;
  /** When it was read whole, in milliseconds of `monotonicMs`. */
  atMs: number;
}

export interface Receiver {
  /** Such as http://127.0.0.1:40123, without a path. */
  url: string;
  port: number;
  requests: Received[];
  /** Requests that are open now, and the most there ever were, per path. */
  open(path?: string): number;
  openMax(path?: string): number;
  /** The behaviour from now on: for one path, or for all paths that have none of their own. */
  behave(behaviour: Behaviour, path?: string): void;
  /** Shorthand: answers with this status, and with these headers. */
  answer(status: number, headers?: Record<string, string>, path?: string): void;
  /** The next request that no `next` has answered yet. @throws Error after `deadlineMs`. */
  next(deadlineMs?: number): Promise<Received>;
  /** Resolves when there were that many requests in all. @throws Error after `deadlineMs`. */
  count(requests: number, deadlineMs?: number): Promise<Received[]>;
  /** Answers what hangs with that status. */
  release(status?: number): void;
  close(): Promise<void>;
}

const DEADLINE_MS = 30_000;

/** Starts one; it answers 200 until `behave` changes that. Call `close` at the end. */
export async function startReceiver(): Promise<Receiver> {
  const state = makeState();
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    state.enter(path);
    response.on('close', () => state.leave(path));
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    request.on('end', () => {
      state.take(request, Buffer.concat(chunks));
      act(state.behaviourOf(path), request, response, state.hanging);
    });
  });
  server.keepAliveTimeout = 30_000;
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests: state.requests,
    open: state.open,
    openMax: state.openMax,
    behave: state.behave,
    answer: (status, headers = {}, path) =>
      state.behave({ do: 'answer', status, headers: { ...headers } }, path),
    next: (deadlineMs = DEADLINE_MS) => state.wait(state.claim(), deadlineMs),
    async count(requests, deadlineMs = DEADLINE_MS) {
      if (requests > 0) await state.wait(requests - 1, deadlineMs);
      return state.requests;
    },
    release(status = 200) {
      for (const response of state.hanging.splice(0)) response.writeHead(status).end();
    },
    close: () => closeServer(server),
  };
}

function makeState() {
  const requests: Received[] = [];
  const waiting = new Map<number, ((request: Received) => void)[]>();
  const behaviours = new Map<string, Behaviour>();
  const counts = new Map<string, { now: number; max: number }>();
  let general: Behaviour = { do: 'answer', status: 200 };
  let claimed = 0;
  const countOf = (path: string) => {
    const count = counts.get(path) ?? { now: 0, max: 0 };
    counts.set(path, count);
    return count;
  };
  const step = (path: string, by: number) => {
    for (const key of [path, '']) {
      const count = countOf(key);
      count.now += by;
      count.max = Math.max(count.max, count.now);
    }
  };
  return {
    requests,
    hanging: [] as ServerResponse[],
    enter: (path: string) => step(path, 1),
    leave: (path: string) => step(path, -1),
    open: (path = '') => countOf(path).now,
    openMax: (path = '') => countOf(path).max,
    behaviourOf: (path: string) => behaviours.get(path) ?? general,
    behave(behaviour: Behaviour, path?: string) {
      if (path === undefined) general = behaviour;
      else behaviours.set(path, behaviour);
    },
    claim: () => claimed++,
    take(request: IncomingMessage, rawBody: Buffer) {
      const received: Received = {
        n: requests.length,
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers as Record<string, string | undefined>,
        body: rawBody.toString('utf8'),
        rawBody,
        atMs: monotonicMs(),
      };
      requests.push(received);
      for (const resolve of waiting.get(received.n) ?? []) resolve(received);
      waiting.delete(received.n);
    },
    /** The n-th request of all, from 0. */
    wait(n: number, deadlineMs: number): Promise<Received> {
      const there = requests[n];
      if (there) return Promise.resolve(there);
      return new Promise((resolve, reject) => {
        const late = new Error(`request ${n} did not come within ${deadlineMs} ms`);
        const cancel = after(deadlineMs, () => reject(late));
        const done = (request: Received) => {
          cancel();
          resolve(request);
        };
        waiting.set(n, [...(waiting.get(n) ?? []), done]);
      });
    },
  };
}

function act(
  behaviour: Behaviour,
  request: IncomingMessage,
  response: ServerResponse,
  hanging: ServerResponse[],
): void {
  response.on('error', () => {});
  switch (behaviour.do) {
    case 'answer':
      response.writeHead(behaviour.status, behaviour.headers).end(behaviour.body);
      return;
    case 'in_turn': {
      const [status = 200, ...rest] = behaviour.statuses;
      if (rest.length > 0) behaviour.statuses = rest;
      response.writeHead(status).end();
      return;
    }
    case 'hang':
      hanging.push(response);
      return;
    case 'delay':
      after(behaviour.ms, () => response.writeHead(behaviour.status).end());
      return;
    case 'drip':
      response.writeHead(behaviour.status);
      drip(response, behaviour.everyMs);
      return;
    case 'flood':
      response.writeHead(behaviour.status);
      flood(response);
      return;
    case 'stall':
      response.writeHead(behaviour.status, { 'content-length': '10' }).flushHeaders();
      return;
    case 'garble':
      request.socket.end(
        `HTTP/1.1 ${behaviour.status} OK\r\ntransfer-encoding: chunked\r\n\r\nno length\r\n`,
      );
      return;
    case 'reset':
      if (behaviour.when === 'in_body') {
        response.writeHead(behaviour.status, { 'content-length': '1000' });
        response.write('half', () => request.socket.resetAndDestroy());
      } else request.socket.resetAndDestroy();
      return;
  }
}

function drip(response: ServerResponse, everyMs: number): void {
  if (response.destroyed) return;
  response.write('.');
  after(everyMs, () => drip(response, everyMs));
}

function flood(response: ServerResponse): void {
  const block = Buffer.alloc(16 * 1024, 'x');
  const more = () => {
    while (!response.destroyed && response.write(block));
    if (!response.destroyed) response.once('drain', more);
  };
  more();
}
