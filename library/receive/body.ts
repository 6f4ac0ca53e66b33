/** Reads bodies that arrive in chunks, up to a bound and within a deadline. */
import type { Readable } from 'node:stream';
import { withDeadline } from './deadline.ts';
import { WebhookError } from './errors.ts';

/** A body that arrives. */
export interface Incoming {
  parts: AsyncIterable<unknown>;
  /** Ends a body of which nothing more is read, also while a part is awaited. */
  cancel(): Promise<unknown>;
}

/** @throws WebhookError `body_late`, `body_too_large`, `body_incomplete` */
export async function readBody(
  { parts, cancel }: Incoming,
  bytesMax: number,
  timeoutMs: number,
): Promise<Uint8Array> {
  const late = () => {
    return new WebhookError('body_late', `the body did not arrive within ${timeoutMs} ms`);
  };
  try {
    return await withDeadline(readParts(parts, bytesMax), timeoutMs, late);
  } catch (cause) {
    // The answer does not wait for it.
    cancel().catch(() => {});
    if (cause instanceof WebhookError) throw cause;
    throw new WebhookError('body_incomplete', 'the body ended early', { cause });
  }
}

/** Up to this multiple of the bound a body is read and dropped, so that its sender gets the 413. */
const DROPPED_TIMES = 8;
/** The room for a body doubles from here, so that many small chunks cost what one costs. */
const ROOM_BYTES = 16_384;

/** @throws WebhookError `body_too_large`, and what the parts throw */
export async function readParts(
  parts: AsyncIterable<unknown>,
  bytesMax: number,
): Promise<Uint8Array> {
  let bytes = new Uint8Array(Math.min(ROOM_BYTES, bytesMax));
  let size = 0;
  for await (const part of parts) {
    const chunk = part instanceof Uint8Array ? part : Buffer.from(String(part));
    const start = size;
    size += chunk.length;
    if (size > bytesMax * DROPPED_TIMES) throw tooLarge(bytesMax);
    if (size > bytesMax) continue;
    if (size > bytes.length) {
      const larger = new Uint8Array(Math.min(Math.max(size, bytes.length * 2), bytesMax));
      larger.set(bytes);
      bytes = larger;
    }
    bytes.set(chunk, start);
  }
  if (size > bytesMax) throw tooLarge(bytesMax);
  return bytes.subarray(0, size);
}

/** Not destroyed on an early return: the refusal is sent on this connection, which ends then. */
export function incomingOf(request: AsyncIterable<unknown>): Incoming {
  const { iterator } = request as { iterator?: Readable['iterator'] };
  const parts =
    typeof iterator === 'function'
      ? { [Symbol.asyncIterator]: () => iterator.call(request, { destroyOnReturn: false }) }
      : request;
  return { parts, cancel: async () => {} };
}

/** Read by a reader, because the iterator of a stream ends only after the part it awaits. */
export function incomingStream(stream: ReadableStream<Uint8Array>): Incoming {
  const reader = stream.getReader();
  return {
    parts: { [Symbol.asyncIterator]: () => ({ next: () => reader.read() }) },
    cancel: () => reader.cancel(),
  };
}

export function tooLarge(bytesMax: number): WebhookError {
  return new WebhookError('body_too_large', `a body has ${bytesMax} bytes at most`);
}
