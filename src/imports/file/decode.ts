/** The bytes of a file as text: UTF-8 strictly, another encoding when it is named or marked. */
import { Failure } from '../../kernel/errors.ts';

const MARKS = [
  { bytes: [0xef, 0xbb, 0xbf], encoding: 'utf-8' },
  { bytes: [0xff, 0xfe], encoding: 'utf-16le' },
  { bytes: [0xfe, 0xff], encoding: 'utf-16be' },
];
/** How a ZIP begins, such as a workbook. */
const ZIP = [0x50, 0x4b, 0x03, 0x04];
/** The longest of them. */
const MARK_BYTES = 4;

/** @throws Failure `invalid_request` for an unknown encoding */
export function decoderOf(encoding: string) {
  try {
    return new TextDecoder(encoding);
  } catch {
    const detail = `encoding: ${encoding} is not known; name one such as windows-1252 or euc-kr`;
    throw new Failure('invalid_request', detail);
  }
}

/**
 * The text without its mark, with every line end as a line feed.
 * @throws Failure `invalid_request` with the line whose bytes are no text in that encoding, or for
 * a workbook
 */
export async function* decoded(
  chunks: AsyncIterable<Uint8Array>,
  encoding = 'utf-8',
): AsyncGenerator<string> {
  let decoder: ReturnType<typeof decoderOf> | undefined;
  let head = Buffer.alloc(0);
  let line = 1;
  let held = '';
  const next = (text: string, isLast: boolean): string => {
    const whole = held + text;
    // Its line feed may be in the next piece.
    held = !isLast && whole.endsWith('\r') ? '\r' : '';
    const lines = whole.slice(0, whole.length - held.length).replace(/\r\n?/g, '\n');
    const bad = lines.search(/[\ufffd\0]/);
    line += lines.slice(0, bad < 0 ? undefined : bad).split('\n').length - 1;
    if (bad >= 0) throw unreadable(line, lines[bad] === '\0', decoder?.encoding ?? encoding);
    return lines;
  };
  for await (const chunk of chunks) {
    head = decoder ? head : Buffer.concat([head, chunk]);
    if (!decoder && head.length < MARK_BYTES) continue;
    const bytes = decoder ? chunk : head;
    decoder ??= decoderOf(markOf(head) ?? encoding);
    yield next(decoder.decode(bytes, { stream: true }), false);
  }
  const isShort = decoder === undefined;
  decoder ??= decoderOf(markOf(head) ?? encoding);
  yield next(isShort ? decoder.decode(head) : decoder.decode(), true);
}

/** @throws Failure `invalid_request` for bytes that are no text */
function markOf(bytes: Uint8Array): string | undefined {
  const begins = (mark: readonly number[]) => mark.every((byte, n) => bytes[n] === byte);
  if (begins(ZIP))
    throw new Failure('invalid_request', 'the file is a workbook or a ZIP; save it as CSV (UTF-8)');
  return MARKS.find(({ bytes: mark }) => begins(mark))?.encoding;
}

function unreadable(line: number, isNul: boolean, encoding: string): Failure {
  const what = isNul ? 'has a NUL character' : `is not ${encoding.toUpperCase()}`;
  const how = 'name the encoding of the file, such as windows-1252, euc-kr or utf-16le';
  return new Failure('invalid_request', `line ${line} ${what}; ${how} (--encoding)`);
}
