/**
 * Exact integers. Amounts, balances and all other numbers of the service are `bigint` in memory,
 * decimal text in our JSON and `numeric` in SQL, never a JavaScript number.
 */

/** A number of service tokens. May be negative. */
export type Amount = bigint;

/** Longer numbers are not parsed, to bound the work. */
export const DIGITS_MAX = 1000;

const LIMIT = 10n ** BigInt(DIGITS_MAX);
const WHOLE = /^-?(0|[1-9]\d*)$/;

/** Parses decimal digits with an optional '-'; undefined for a '+', spaces or leading zeros. */
export function parseWhole(text: string): bigint | undefined {
  return text.length <= DIGITS_MAX && WHOLE.test(text) ? BigInt(text) : undefined;
}

/** The integer in a parsed JSON value (number, bigint or decimal text), or undefined. */
export function wholeOf(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value < LIMIT && value > -LIMIT ? value : undefined;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  return typeof value === 'string' ? parseWhole(value) : undefined;
}

/** Decimal text, as in our JSON; null for an absent value. */
export function decimalText(value: bigint): string;
export function decimalText(value: bigint | null | undefined): string | null;
export function decimalText(value: bigint | null | undefined): string | null {
  return value === null || value === undefined ? null : value.toString();
}

export function sumOf(values: Iterable<bigint>): bigint {
  let sum = 0n;
  for (const value of values) sum += value;
  return sum;
}
