/** For what cannot be: a broken assertion is our own bug, ends the work at hand and is logged. */

/** Throws when the condition does not hold. */
export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`);
}

/** The end of a switch that names every case; the compiler proves that it is never reached. */
export function unreachable(value: never): never {
  throw new Error(`assertion failed: unexpected ${JSON.stringify(value)}`);
}

/** The value, which must be there. */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`assertion failed: no ${what}`);
  return value;
}
