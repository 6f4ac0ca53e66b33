/**
 * Pages of lists. A list reads one row more than its limit: that row says whether a further page
 * exists. A cursor is the position of the last row of a page, in base64url.
 */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../kernel/errors.ts';
import { type IdPrefix, isId } from '../../kernel/ids.ts';

const LIMIT_MAX = 500;
const LIMIT_DEFAULT = 50;

/** The query parameters of every list. */
export const paging = {
  limit: z
    .string()
    .regex(/^\d{1,3}$/, `must be a whole number from 1 to ${LIMIT_MAX}`)
    .transform(Number)
    .pipe(z.number().min(1).max(LIMIT_MAX))
    .default(LIMIT_DEFAULT)
    .openapi({ type: 'integer', minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT }),
  cursor: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .openapi({ description: 'The next_cursor of the previous page' }),
};

export function pageOf<S extends z.ZodType>(item: S) {
  return z.object({
    data: z.array(item),
    next_cursor: z
      .string()
      .nullable()
      .openapi({ description: 'The cursor of the next page; null on the last page' }),
  });
}

/** @param position of a row, as text; becomes the cursor */
export function page<T, U>(
  rows: readonly T[],
  limit: number,
  output: (row: T) => U,
  position: (row: T) => string | bigint,
): { data: U[]; next_cursor: string | null } {
  const listed = rows.slice(0, limit);
  const last = listed.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { data: listed.map(output), next_cursor: more ? encode(`${position(last)}`) : null };
}

function encode(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** Reads the position in a cursor; undefined for a text that is not a position of the list. */
export type ParsePosition<T> = (text: string) => T | undefined;

export function idPosition(prefix: IdPrefix): ParsePosition<string> {
  return (text) => (isId(prefix, text) ? text : undefined);
}

/** A row number: fits a `bigint` of Postgres. */
export const numberPosition: ParsePosition<bigint> = (text) =>
  /^\d{1,18}$/.test(text) ? BigInt(text) : undefined;

/** @throws Failure `invalid_cursor` for a cursor that this list did not issue */
export function readCursor<T>(cursor: string | undefined, parse: ParsePosition<T>): T | undefined {
  if (cursor === undefined) return undefined;
  const text = Buffer.from(cursor, 'base64url').toString();
  const position = encode(text) === cursor ? parse(text) : undefined;
  if (position === undefined)
    throw new Failure('invalid_cursor', 'use the next_cursor of the previous page');
  return position;
}
