/** Reads request bodies with a bound, before they are parsed. */
import type { HonoRequest } from 'hono';
import { withDeadline } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { checkEncoding } from '../../kernel/http/request.ts';

/**
 * The JSON document in the body.
 * @param max bytes
 * @throws Failure `unsupported_media_type`, `body_too_large`, `malformed_json`
 */
export async function readJson(request: HonoRequest, max: number): Promise<unknown> {
  if (!/^application\/([a-z-.]+\+)?json\b/i.test(request.header('content-type') ?? ''))
    throw new Failure('unsupported_media_type', 'send application/json');
  const text = await readText(request, max);
  try {
    return JSON.parse(text);
  } catch {
    throw new Failure('malformed_json');
  }
}

const DEADLINE_MS = 30_000;

/**
 * The body as text. A content-length above `max` bytes is refused before anything is read.
 * @throws Failure `unsupported_media_type`, `body_too_large`, `request_timeout`, or
 * `malformed_json` when the body ends early
 */
export function readText(request: HonoRequest, max: number): Promise<string> {
  return withDeadline(readAll(request, max), DEADLINE_MS, () => {
    throw new Failure('request_timeout', 'the body did not arrive in time');
  });
}

/**
 * The bytes of the body as they arrive; null without one. The only way to them.
 * @throws Failure `unsupported_media_type` for a body that is compressed
 */
export function bodyOf({ raw }: HonoRequest): ReadableStream<Uint8Array> | null {
  checkEncoding(raw.headers.get('content-encoding') ?? undefined);
  return raw.body;
}

async function readAll(request: HonoRequest, max: number): Promise<string> {
  const body = bodyOf(request);
  const tooLarge = () => new Failure('body_too_large', `at most ${max} bytes`);
  if (Number(request.header('content-length') ?? 0) > max) throw tooLarge();
  if (!body) return '';
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new Failure('malformed_json', 'the body ended early');
    });
    if (done) return new TextDecoder().decode(Buffer.concat(chunks));
    size += value.length;
    if (size > max) {
      reader.cancel().catch(() => {});
      throw tooLarge();
    }
    chunks.push(value);
  }
}
