/**
 * How values are converted between the program and Postgres. The driver can convert arrays only of
 * types that it reads from the server, so those that we use are here.
 */
import { type Instant, isoText } from '../../kernel/clock.ts';
import { type Json, jsonText, parseJson } from '../../kernel/json.ts';

/** Conversions by type oid, in the form of the driver. */
export const VALUE_TYPES = {
  numeric: {
    to: 1700,
    from: [1700],
    serialize: (value: unknown) => String(value),
    parse: (text: string): bigint | string => (/^-?\d+$/.test(text) ? BigInt(text) : text),
  },
  bigint: {
    to: 20,
    from: [20],
    serialize: (value: unknown) => String(value),
    parse: (text: string) => BigInt(text),
  },
  date: {
    to: 1184,
    from: [1184],
    serialize: (value: Instant | string) => (typeof value === 'number' ? isoText(value) : value),
    parse: (text: string): Instant => Date.parse(`${text.replace(' ', 'T').replace(/\+00$/, '')}Z`),
  },
  json: {
    to: 3802,
    from: [114, 3802],
    serialize: (value: unknown) => storable(jsonText(value)),
    parse: (text: string): Json => parseJson(text),
  },
};

/**
 * jsonb refuses NUL and unpaired surrogates, which callers and the service may send; they become
 * the replacement character.
 */
function storable(text: string): string {
  if (!/\\u(?:0000|d[89a-f])/.test(text)) return text;
  return text.replace(/\\(?:u[0-9a-f]{4}|.)/g, (written) =>
    /^\\u(?:0000|d[89a-f])/.test(written) ? '\ufffd' : written,
  );
}

interface Element {
  /** The oid of the array type. */
  array: number;
  serialize?: (value: never) => string;
  parse?: (text: string) => unknown;
}

const ELEMENTS: Record<string, Element> = {
  text: { array: 1009 },
  name: { array: 1003 },
  uuid: { array: 2951 },
  boolean: { array: 1000, parse: (text) => text === 't' },
  smallint: { array: 1005, parse: Number },
  integer: { array: 1007, parse: Number },
  bigint: { array: 1016, ...VALUE_TYPES.bigint },
  numeric: { array: 1231, ...VALUE_TYPES.numeric },
  timestamptz: { array: 1185, ...VALUE_TYPES.date },
};

export const ARRAY_TYPES = Object.fromEntries(
  Object.entries(ELEMENTS).map(([name, { array, serialize = String, parse = String }]) => [
    `${name}[]`,
    {
      to: array,
      from: [array],
      serialize: (values: unknown) =>
        Array.isArray(values) ? arrayText(values, serialize as never) : String(values),
      parse: (text: string) => parseArray(text, parse),
    },
  ]),
);

/** In one string: batches of rows have thousands of elements. */
function arrayText(values: readonly unknown[], serialize: (value: unknown) => string): string {
  let elements = '';
  for (const value of values) {
    if (elements !== '') elements += ',';
    if (value === null) elements += 'null';
    else {
      const text = serialize(value);
      elements += `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;
    }
  }
  return `{${elements}}`;
}

/** Of one dimension. */
function parseArray(text: string, parse: (text: string) => unknown): unknown[] {
  const elements = text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|[^,]+/gs);
  return [...elements].map(([plain, quoted]) => {
    if (quoted !== undefined) return parse(quoted.replace(/\\(.)/gs, '$1'));
    return plain === 'NULL' ? null : parse(plain);
  });
}
