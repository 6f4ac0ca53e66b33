/** Assertions. A failed one is a bug in this program: it throws an Error that is not a Failure. */

export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`);
}

/** The default of an exhaustive switch; the compiler proves that it is not reached. */
export function unreachable(value: never): never {
  throw new Error(`assertion failed: unexpected ${JSON.stringify(value)}`);
}

/** @throws Error when the value is null or undefined */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`assertion failed: no ${what}`);
  return value;
}
