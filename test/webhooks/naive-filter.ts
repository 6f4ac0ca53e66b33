/**
 * Filters once more, without SQL: an evaluator to compare with, written after the documentation
 * and not after the function `matches_filter`.
 */
import type { Json } from '../../src/kernel/json.ts';

type Document = { [name: string]: Json };

export function matchesNaively(body: Json, filter: Document): boolean {
  return Object.entries(filter).every(([name, condition]) => {
    if (name === '$and') return (condition as Document[]).every((f) => matchesNaively(body, f));
    if (name === '$or') return (condition as Document[]).some((f) => matchesNaively(body, f));
    if (name === '$not') return !matchesNaively(body, condition as Document);
    return meets(valuesAt(body, name.split('.')), condition);
  });
}

function valuesAt(value: Json | undefined, path: string[]): Json[] {
  const [name, ...rest] = path;
  if (value === undefined) return [];
  // Of a list, the first hundred.
  const first = Array.isArray(value) ? value.slice(0, 100) : [];
  if (name === undefined) return [...first, value];
  if (Array.isArray(value))
    return first
      .filter(isPlainObject)
      .flatMap((v) => valuesAt(v, path))
      .slice(0, 100);
  return isPlainObject(value) ? valuesAt(value[name], rest) : [];
}

function meets(values: Json[], condition: Json): boolean {
  if (!isPlainObject(condition)) return values.some((v) => compare(v, condition) === 0);
  const some = (fits: (order: number) => boolean, plain: Json) =>
    values.some((v) => {
      const order = compare(v, plain);
      return order !== undefined && fits(order);
    });
  return Object.entries(condition).every(([operator, operand]) => {
    const among = () => (operand as Json[]).some((one) => meets(values, one));
    const tests: Record<string, () => boolean> = {
      $eq: () => meets(values, operand),
      $ne: () => !meets(values, operand),
      $in: among,
      $nin: () => !among(),
      $gt: () => some((order) => order > 0, operand),
      $gte: () => some((order) => order >= 0, operand),
      $lt: () => some((order) => order < 0, operand),
      $lte: () => some((order) => order <= 0, operand),
      $exists: () => values.length > 0 === operand,
      $not: () => !meets(values, operand),
    };
    return tests[operator]?.() ?? false;
  });
}

/** Undefined for values that cannot be compared. */
function compare(a: Json, b: Json): number | undefined {
  const [x, y] = [decimalOf(a), decimalOf(b)];
  if (x !== undefined && y !== undefined) return Number(x > y) - Number(x < y);
  if (x !== undefined || y !== undefined || typeof a !== typeof b) return undefined;
  if (typeof a !== 'string' || typeof b !== 'string') return a === b ? 0 : undefined;
  const isFolded = [42, 66].includes([...a].length) && [...a].length === [...b].length;
  const [s, t] = isFolded ? [a.toLowerCase(), b.toLowerCase()] : [a, b];
  return Buffer.compare(Buffer.from(s), Buffer.from(t));
}

/** Scaled, so that both sides are whole. */
function decimalOf(value: Json): bigint | undefined {
  if (value === null || !['number', 'bigint', 'string'].includes(typeof value)) return undefined;
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(value)) ?? [];
  if (whole === undefined) return undefined;
  return BigInt(`${sign}${whole}${fraction.padEnd(30, '0')}`);
}

function isPlainObject(value: Json): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
