/**
 * Exact integers. Amounts, balances and every number of the service are `bigint` inside, decimal
 * text in our JSON, and `numeric` in SQL; a JavaScript number never holds one.
 */

/** A whole count of service tokens, or any whole number of the service's. May be negative. */
export type Amount = bigint;

/** The longest number that is read, in digits: a bound, not an assumption about the service. */
export const DIGITS_MAX = 1000;

const LIMIT = 10n ** BigInt(DIGITS_MAX);
const WHOLE = /^-?(0|[1-9]\d*)$/;

/**
 * The whole number that a decimal text writes, or undefined: no signs but '-', no spaces, no
 * leading zeros.
 */
export function parseWhole(text: string): bigint | undefined {
  return text.length <= DIGITS_MAX && WHOLE.test(text) ? BigInt(text) : undefined;
}

/** The whole number in a value read from JSON (number, bigint or decimal text), or undefined. */
export function wholeOf(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value < LIMIT && value > -LIMIT ? value : undefined;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  return typeof value === 'string' ? parseWhole(value) : undefined;
}

/** Decimal text, or null for an absent value: the form in which every amount leaves us. */
export function decimalText(value: bigint): string;
export function decimalText(value: bigint | null | undefined): string | null;
export function decimalText(value: bigint | null | undefined): string | null {
  return value === null || value === undefined ? null : value.toString();
}

/** The sum of whole numbers. */
export function sumOf(values: Iterable<bigint>): bigint {
  let sum = 0n;
  for (const value of values) sum += value;
  return sum;
}
