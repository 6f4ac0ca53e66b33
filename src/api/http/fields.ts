/**
 * The words of our own JSON: how numbers, instants, ids, pages and cursors are written and read.
 * Every text from outside is bounded and holds no NUL, because Postgres refuses that and would
 * make it ours.
 */
import { z } from '@hono/zod-openapi';
import type { JSONValue } from 'hono/utils/types';
import { isAddress, isTxHash } from '../../kernel/addresses.ts';
import { DIGITS_MAX } from '../../kernel/amounts.ts';
import { type Instant, isoText, parseInstant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { type IdPrefix, isId } from '../../kernel/ids.ts';
import type { Json } from '../../kernel/json.ts';

/** A whole number of any size on its way out. */
export const digits = z
  .string()
  .regex(/^-?\d+$/)
  .openapi({ description: 'A whole number of any size, as decimal text', example: '1200' });

/** A number of the service on its way in: decimal text, not negative. Read as bigint. */
export const numberIn = z
  .string()
  .max(DIGITS_MAX)
  .regex(/^(0|[1-9]\d*)$/, 'must be a whole number as decimal text')
  .transform((text) => BigInt(text));

/** An amount on its way in: as `numberIn`, and more than zero. */
export const decimalPositive = numberIn.refine((value) => value > 0n, 'must be more than zero');

/** A document of any form on its way out, such as evidence. */
export const anyJson = z.unknown() as z.ZodType<JSONValue, JSONValue>;

/** A document that we keep, for an answer; `reply` writes its whole numbers as digits. */
export function asJson(document: Json): JSONValue {
  return document as JSONValue;
}

/** An instant on its way out. */
export const instantOut = z
  .string()
  .openapi({ format: 'date-time', example: '2026-01-31T09:00:00.000Z' });

/**
 * An instant on its way in, as epoch milliseconds. Postgres knows no year 0 and JSON no year
 * 10000.
 */
export const instantIn = z
  .string()
  .openapi({ format: 'date-time' })
  .refine((text) => isUsable(parseInstant(text)), 'must be an RFC 3339 instant from 1970 on')
  .transform((text) => parseInstant(text) ?? 0);

const INSTANT_MAX = Date.UTC(10_000, 0, 1) - 1;

function isUsable(at: Instant | undefined): boolean {
  return at !== undefined && at >= 0 && at <= INSTANT_MAX;
}

/** A text from outside. */
export function textIn(max: number) {
  return z
    .string()
    .min(1)
    .max(max)
    .refine((text) => !text.includes('\0'), 'must not hold NUL');
}

export const addressIn = z
  .string()
  .refine(isAddress, 'must be 42 printable characters')
  .openapi({ minLength: 42, maxLength: 42 });
export const txHashIn = z
  .string()
  .refine(isTxHash, 'must be 66 printable characters')
  .openapi({ minLength: 66, maxLength: 66 });

/** An id of ours. In a path, another shape means that there is nothing here. */
export function idIn(prefix: IdPrefix) {
  return z
    .string()
    .refine((text) => isId(prefix, text), `must be an id that starts with ${prefix}_`)
    .openapi({ example: `${prefix}_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b` });
}

export const LIMIT_MAX = 500;
const LIMIT_DEFAULT = 50;

/** The members that every list takes. */
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
    .openapi({ description: 'The next_cursor of the page before' }),
};

/** A list as it is answered. */
export function pageOf<S extends z.ZodType>(item: S) {
  return z.object({
    data: z.array(item),
    next_cursor: z
      .string()
      .nullable()
      .openapi({ description: 'Give it as cursor for what follows; null at the end' }),
  });
}

/**
 * The page of rows, asked for with one row more than the limit: that one says whether anything
 * follows.
 * @param placeOf where a row stands, as text; hidden in the cursor
 */
export function page<T, U>(
  rows: readonly T[],
  limit: number,
  show: (row: T) => U,
  placeOf: (row: T) => string,
): { data: U[]; next_cursor: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { data: shown.map(show), next_cursor: more ? cursorAt(placeOf(last)) : null };
}

function cursorAt(place: string): string {
  return Buffer.from(place).toString('base64url');
}

/**
 * The place that a cursor hides, or undefined for none.
 * @throws Failure `invalid_cursor` when it is not one that this list gave
 */
export function placeIn(cursor: string | undefined, isPlace: (place: string) => boolean) {
  if (cursor === undefined) return undefined;
  const place = Buffer.from(cursor, 'base64url').toString();
  if (!isPlace(place) || cursorAt(place) !== cursor)
    throw new Failure('invalid_cursor', 'use the next_cursor of the page before');
  return place;
}

/** True for a number that fits a `bigint` of Postgres. */
export function isRowNumber(place: string): boolean {
  return /^\d{1,18}$/.test(place);
}

/** An instant as text; null stays null. */
export function timeText(at: Instant): string;
export function timeText(at: Instant | null): string | null;
export function timeText(at: Instant | null): string | null {
  return at === null ? null : isoText(at);
}
