/** Answers a request body of many lines with lines of JSON, in batches, while it arrives. */
import type { Context } from 'hono';
import { after } from '../../kernel/clock.ts';
import { Failure, problemOf } from '../../kernel/errors.ts';
import { chunksOf } from '../../kernel/http/body.ts';
import { jsonText } from '../../kernel/json.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import { failureOf } from './problems.ts';

export const NDJSON = 'application/x-ndjson';

/** The media type of the body, `NDJSON` also by its other name. */
export function bodyType(c: Context): string {
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  return type === 'application/ndjson' ? NDJSON : type;
}

/**
 * The lines of a body in batches of `size`.
 * @throws Failure `body_too_large` after `linesMax` lines, `malformed_json` when the body ends
 * early, `request_timeout` when the client stalls, `shutting_down` when the signal aborts
 */
export async function* batchesOf(
  body: ReadableStream<Uint8Array>,
  bounds: { lineBytesMax: number; linesMax: number; size: number; idleMs?: number },
  stop: AbortSignal,
): AsyncGenerator<TextLine[]> {
  const { lineBytesMax, linesMax, size, idleMs } = bounds;
  const sent = 'the remaining lines';
  let batch: TextLine[] = [];
  let count = 0;
  const checkStop = () => {
    if (stop.aborted) throw new Failure('shutting_down', `send ${sent} again`);
  };
  for await (const line of linesOf(chunksOf(body, { stop, sent, idleMs }), lineBytesMax)) {
    count++;
    if (count > linesMax) {
      checkStop();
      yield batch;
      throw new Failure('body_too_large', `at most ${linesMax} lines; send the rest separately`);
    }
    batch.push(line);
    if (batch.length < size) continue;
    checkStop();
    yield batch;
    batch = [];
  }
  checkStop();
  if (batch.length > 0) yield batch;
}

interface LineWork {
  /** Writes lines of the response. */
  write: (rows: readonly object[]) => void;
  /** Aborts when the client disconnects or the daemon stops. */
  stop: AbortSignal;
}

/** The headers of a response that is read while it is written: no proxy may hold it back. */
export function streamHeaders(type: string): Record<string, string> {
  return {
    'content-type': type,
    // Nothing stores it, and nothing compresses it, which would hold lines back too.
    'cache-control': 'no-store, no-transform',
    // nginx and proxies like it read this header.
    'x-accel-buffering': 'no',
  };
}

/** Proxies give up a response without a byte for so long: nginx after 60 s. */
export const IDLE_MS = 15_000;

/**
 * A response of lines that `work` writes, with a last line `{summary, problem?}`; an empty line
 * says that the work goes on. The body is read even while the client does not read the response,
 * since many clients send everything first; so `work` must bound what it writes.
 */
export function answerLines(
  c: Context,
  deps: { log: Log; stopping: AbortSignal; idleMs?: number },
  answer: {
    work: (deps: LineWork) => Promise<void>;
    /** Read after the work. */
    summary: () => object | Promise<object>;
    ended: () => void;
  },
): Response {
  const disconnected = new AbortController();
  const stop = AbortSignal.any([disconnected.signal, deps.stopping]);
  const encoder = new TextEncoder();
  const results = new ReadableStream<Uint8Array>({
    async start(controller) {
      let stopIdling = () => {};
      const idle = () => {
        stopIdling();
        stopIdling = after(deps.idleMs ?? IDLE_MS, () => send('\n'));
      };
      const send = (text: string) => {
        if (disconnected.signal.aborted) return;
        controller.enqueue(encoder.encode(text));
        idle();
      };
      const write = (rows: readonly object[]) => {
        if (rows.length > 0) send(rows.map((row) => `${jsonText(row)}\n`).join(''));
      };
      idle();
      const last: { summary?: object; problem?: object } = {};
      const fail = (error: unknown) => {
        last.problem = problemOf(failureOf(error, deps.log));
      };
      await answer.work({ write, stop }).catch(fail).finally(answer.ended);
      await Promise.resolve(answer.summary()).then((summary) => {
        last.summary = summary;
      }, fail);
      write([last]);
      stopIdling();
      if (!disconnected.signal.aborted) controller.close();
    },
    cancel: () => disconnected.abort(),
  });
  return c.body(results, 200, streamHeaders(NDJSON));
}

/** A line with its number from 1; a line above the bound is skipped to its end. */
export type TextLine = { line: number; text: string } | { line: number; tooLong: true };

/**
 * The lines of a stream without line ends and blank lines; holds at most one line and one chunk.
 * @param max bytes of one line
 */
export async function* linesOf(
  stream: AsyncIterable<Uint8Array>,
  max: number,
): AsyncGenerator<TextLine> {
  const decoder = new TextDecoder();
  let parts: Uint8Array[] = [];
  let size = 0;
  let line = 0;
  const take = function* (): Generator<TextLine> {
    line++;
    if (size > max) yield { line, tooLong: true };
    else {
      const text = decoder.decode(Buffer.concat(parts)).trim();
      if (text !== '') yield { line, text };
    }
    parts = [];
    size = 0;
  };
  for await (const chunk of stream) {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(0x0a, start);
      const piece = chunk.subarray(start, end === -1 ? chunk.length : end);
      size += piece.length;
      if (size <= max) parts.push(piece);
      else parts = [];
      if (end === -1) break;
      yield* take();
      start = end + 1;
    }
  }
  if (size > 0) yield* take();
}
