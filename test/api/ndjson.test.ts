/** Lines of a streamed body in any chunks, and the lines that answer it. */
import fc from 'fast-check';
import { Hono } from 'hono';
import { expect, it } from 'vitest';
import { answerLines, batchesOf, linesOf } from '../../src/api/http/line-stream.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';

const MAX = 12;

async function read(chunks: readonly Uint8Array[]) {
  const found: object[] = [];
  for await (const line of linesOf(ReadableStream.from(chunks), MAX)) found.push(line);
  return found;
}

it('Lines do not depend on chunks, and long lines are reported by number only', async () => {
  const text = fc.array(fc.constantFrom('a', 'é', '\n', '\r\n', ' ', '{"b":1}', '𝄞'), {
    maxLength: 40,
  });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(90), { maxLength: 8 }), async (parts, cuts) => {
      const bytes = Buffer.from(parts.join(''));
      const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length];
      const sorted = places.toSorted((a, b) => a - b);
      const chunks = sorted.slice(1).map((end, n) => bytes.subarray(sorted[n], end));
      const expected = parts
        .join('')
        .split('\n')
        .flatMap((line, n): object[] => {
          if (Buffer.byteLength(line) > MAX) return [{ line: n + 1, tooLong: true }];
          return line.trim() === '' ? [] : [{ line: n + 1, text: line.trim() }];
        });
      expect(await read(chunks)).toEqual(expected);
    }),
  );
});

it('A line without end is bounded in memory', async () => {
  let left = 2_000;
  const chunk = new Uint8Array(100_000).fill(0x61);
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left-- > 0) controller.enqueue(chunk);
      else controller.close();
    },
  });
  const found: object[] = [];
  for await (const line of linesOf(endless, MAX)) found.push(line);
  expect(found).toEqual([{ line: 1, tooLong: true }]);
});

const BOUNDS = { lineBytesMax: MAX, linesMax: 10, size: 10 };
const GOES_ON = new AbortController().signal;

it('A body that ends early is malformed', async () => {
  const broken = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(Buffer.from('{}\n{'));
      controller.error(new Error('reset'));
    },
  });
  await expect(Array.fromAsync(batchesOf(broken, BOUNDS, GOES_ON))).rejects.toMatchObject({
    code: 'malformed_json',
  });
});

it.each([
  ['the daemon stops', 'shutting_down', { stop: () => AbortSignal.timeout(300) }],
  ['its client stalls', 'request_timeout', { stop: () => GOES_ON, idleMs: 50 }],
])('A stream is waited for no longer when %s', async (_, code, { stop, ...bounds }) => {
  const stalled = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(Buffer.from('{}\n{')),
  });
  const batches = batchesOf(stalled, { ...BOUNDS, ...bounds }, stop());
  await expect(Array.fromAsync(batches)).rejects.toMatchObject({ code });
});

it('While the work of a stream writes nothing, empty lines show that it goes on, and none follows the last line', async () => {
  const work = Promise.withResolvers<void>();
  const app = new Hono();
  app.get('/', (c) =>
    answerLines(
      c,
      { log: makeLog('silent'), stopping: new AbortController().signal, idleMs: 5 },
      { work: () => work.promise, summary: () => ({ lines: 0 }), ended: () => {} },
    ),
  );
  const response = await app.request('/');
  expect(Object.fromEntries(response.headers)).toEqual({
    'content-type': 'application/x-ndjson',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  });
  const parts: string[] = [];
  for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    parts.push(part);
    if (parts.length === 3) work.resolve();
  }
  expect(parts.join('')).toMatch(/^\n{3,}\{"summary":\{"lines":0\}\}\n$/);
});
