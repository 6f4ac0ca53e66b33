/** What may stand in a request: the forms of its target, and the encodings of its body. */
import { Failure } from '../errors.ts';

/**
 * The target of a request (RFC 9112, section 3.2) as a path with its query. That of an absolute
 * http URL is used with its host, which replaces the header. Undefined for all else: `*`, an
 * authority, another scheme, user information, and a fragment, which no client sends.
 */
export function originForm(target: string): { url: string; host?: string } | undefined {
  if (target.includes('#')) return undefined;
  if (target.startsWith('/')) return { url: target };
  const [, host, rest = ''] = /^https?:\/\/([^/?@\\]+)([/?].*)?$/i.exec(target) ?? [];
  if (host === undefined) return undefined;
  return { url: rest.startsWith('/') ? rest : `/${rest}`, host };
}

/** What the refusal of another path says. */
export const NOT_NORMAL = 'the path is not in its normal form';

/**
 * True for a path that every server reads as the same one. A server may resolve dot segments, also
 * encoded ones, merge slashes and turn a backslash into one.
 */
export function isNormalPath(path: string): boolean {
  const url = URL.parse(path, 'http://host.invalid');
  if (url?.host !== 'host.invalid' || url.pathname !== path || path.includes('//')) return false;
  try {
    return !/[\\\p{Cc}]/u.test(decodeURIComponent(path));
  } catch {
    return false;
  }
}

/** Of a header that is stored: an idempotency key or a reference. */
export const HEADER_TEXT_MAX = 255;

/** True for 1 to 255 printable ASCII characters. */
export function isHeaderText(text: string): boolean {
  return text.length <= HEADER_TEXT_MAX && /^[\x20-\x7e]+$/.test(text);
}

/**
 * Bodies are read as they are sent.
 * @param encoding the header `Content-Encoding`
 * @throws Failure `unsupported_media_type` for a body that is compressed
 */
export function checkEncoding(encoding: string | undefined): void {
  if (encoding === undefined || /^ *(identity)? *$/i.test(encoding)) return;
  throw new Failure('unsupported_media_type', 'content-encoding: send the body without it');
}
