/**
 * Lossless JSON: whole numbers beyond 2^53 are read as `bigint` and written as digits. Also defines
 * the canonical form, which is hashed.
 */
import { createHash } from 'node:crypto';
import { DIGITS_MAX } from './amounts.ts';
import type { Json } from './values.ts';

/** ECMAScript's JSON.parse source text access: in Node 24, not yet in TypeScript's library. */
interface SourceTextJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
}
const exact = JSON as unknown as SourceTextJson;

export type { Json } from './values.ts';

/** @throws SyntaxError for text that is not JSON or is nested too deeply for the stack */
export function parseJson(text: string): Json {
  try {
    // The reviver is seven times slower than a plain parse, and only numbers of 16 or more digits
    // or with an exponent can exceed 2^53.
    if (!/\d{16}|(?:^|[:[,\s])-?\d[\d.]*e/i.test(text)) return JSON.parse(text);
    return exact.parse(text, (_key, value, { source = '' }) =>
      typeof value === 'number' && !Number.isSafeInteger(value)
        ? (exactWhole(source) ?? value)
        : value,
    ) as Json;
  } catch (error) {
    if (error instanceof RangeError) throw new SyntaxError('JSON is nested too deeply');
    throw error;
  }
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,6}))?$/i;

/** The value of a JSON number that is whole, also with an exponent; digits without end are not. */
function exactWhole(source: string): bigint | undefined {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(source) ?? [];
  const digits = whole + fraction.replace(/0+$/, '');
  const zeros = Number(exponent) - (digits.length - whole.length);
  if (whole === '' || digits.length + zeros > Math.max(DIGITS_MAX, whole.length)) return undefined;
  if (zeros >= 0) return BigInt(`${sign}${digits}${'0'.repeat(zeros)}`);
  return /[^0]/.test(digits.slice(zeros)) ? undefined : BigInt(sign + digits.slice(0, zeros));
}

/** As `parseJson`, but undefined for text that is not JSON. */
export function tryParseJson(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

export function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The members of an object; none of any other value. */
export function membersOf(value: Json | undefined): { [name: string]: Json } {
  return isObject(value) ? value : {};
}

/** JSON text, with a bigint as digits. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, item) =>
    typeof item === 'bigint' ? exact.rawJSON(item.toString()) : item,
  );
}

/** True when both are equal, both are null or empty, or both are equal JSON objects or arrays. */
export function sameJsonText(a: string | null, b: string | null): boolean {
  if ((a ?? '') === (b ?? '')) return true;
  if (!a || !b) return false;
  const [x, y] = [tryParseJson(a), tryParseJson(b)];
  if (x === undefined || y === undefined || typeof x !== 'object' || typeof y !== 'object')
    return false;
  return canonicalJson(x) === canonicalJson(y);
}

/**
 * The canonical form of RFC 8785, with exact integers: keys sorted by code unit, no spaces. Equal
 * values have the same bytes.
 * @throws RangeError for a value that is nested too deeply for the stack
 */
export function canonicalJson(value: unknown): string {
  return canonical(value) ?? 'null';
}

/** Writes the members itself: a rebuilt object would order keys such as "10" first. */
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

/** SHA-256 as lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
