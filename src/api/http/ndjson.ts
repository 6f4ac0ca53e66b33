/** Splits a request body into lines while it arrives; holds at most one line and one chunk. */
import { Failure } from '../../kernel/errors.ts';

/** A line with its number from 1; a line above the bound is skipped to its end. */
export type TextLine = { line: number; text: string } | { line: number; tooLong: true };

/**
 * The lines of a stream without line ends and blank lines.
 * @param max bytes of one line
 * @throws Failure `malformed_json` when the body ends early
 */
export async function* linesOf(
  stream: ReadableStream<Uint8Array>,
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
  for await (const chunk of chunksOf(stream)) {
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

async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch {
    throw new Failure('malformed_json', 'the body ended early');
  }
}
