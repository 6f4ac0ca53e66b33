/**
 * JSON that loses no digit. Integers beyond 2^53 are read as `bigint` from their source text and
 * written back as they were; everything else is plain JSON. Also the one byte-exact form that is
 * hashed.
 *
 * The reviver costs seven times a plain parse, so it runs only for a text that holds sixteen digits
 * in a row: no shorter integer can exceed 2^53.
 */
import { createHash } from 'node:crypto';

/**
 * Node 24 has both, TypeScript's library does not name them yet (ECMAScript: JSON.parse source text
 * access).
 */
interface SourceTextJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
}
const exact = JSON as unknown as SourceTextJson;

/** Any value that JSON text can hold, with whole numbers of any size. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

/**
 * Reads JSON text. @throws SyntaxError for text that is not JSON or nested deeper than the stack.
 */
export function parseJson(text: string): Json {
  try {
    if (!/\d{16}/.test(text)) return JSON.parse(text);
    return exact.parse(text, (_key, value, { source }) =>
      typeof value === 'number' && !Number.isSafeInteger(value) && source && /^-?\d+$/.test(source)
        ? BigInt(source)
        : value,
    ) as Json;
  } catch (error) {
    if (error instanceof RangeError) throw new SyntaxError('JSON is nested too deeply');
    throw error;
  }
}

/** As `parseJson`, or undefined for what is not JSON. */
export function tryParseJson(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** JSON text; a bigint is written as its digits, a member that is undefined is left out. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, item) =>
    typeof item === 'bigint' ? exact.rawJSON(item.toString()) : item,
  );
}

/**
 * True when two texts say the same: they are equal, both are missing or empty, or they are equal as
 * JSON, whatever the spelling and the order of members.
 */
export function sameJsonText(a: string | null, b: string | null): boolean {
  if ((a ?? '') === (b ?? '')) return true;
  if (!a || !b) return false;
  const [x, y] = [tryParseJson(a), tryParseJson(b)];
  if (x === undefined || y === undefined || typeof x !== 'object' || typeof y !== 'object')
    return false;
  return canonicalJson(x) === canonicalJson(y);
}

/**
 * The canonical form: keys sorted by code unit, no spaces, whole numbers as digits. Two values that
 * are equal give the same bytes, whatever the order of their members. After RFC 8785, with exact
 * integers.
 * @throws RangeError for a value nested deeper than the stack
 */
export function canonicalJson(value: unknown): string {
  return canonical(value) ?? 'null';
}

/**
 * Written and not rebuilt, because an object would put keys such as "10" in an order of its own.
 */
function canonical(value: unknown): string | undefined {
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([key, item]) => {
      const text = canonical(item);
      return text === undefined ? [] : [`${JSON.stringify(key)}:${text}`];
    });
  return `{${members.join(',')}}`;
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
