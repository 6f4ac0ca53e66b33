/**
 * Schemas of the fields of our JSON: numbers, instants, texts, addresses, ids. Every text input is
 * bounded and has no NUL, which Postgres refuses.
 */
import { z } from '@hono/zod-openapi';
import { isAddress, isTxHash } from '../../kernel/addresses.ts';
import { DIGITS_MAX } from '../../kernel/amounts.ts';
import { type Instant, parseInstant } from '../../kernel/clock.ts';
import { type IdPrefix, isId } from '../../kernel/ids.ts';

export const decimal = z
  .string()
  .regex(/^-?\d+$/)
  .meta({ description: 'A whole number of any size in decimal digits', example: '1200' });

/** A number of the service: decimal digits, not negative; read as bigint. */
export const decimalInput = z
  .string()
  .max(DIGITS_MAX)
  .regex(/^(0|[1-9]\d*)$/, 'must be a whole number as a decimal string')
  .transform((text) => BigInt(text));

export const positiveDecimalInput = decimalInput.refine(
  (value) => value > 0n,
  'must be more than zero',
);

export const instant = z
  .string()
  .meta({ format: 'date-time', example: '2026-01-31T09:00:00.000Z' });

/** An instant as epoch milliseconds; Postgres has no year 0, RFC 3339 no year 10000. */
export const instantInput = z
  .string()
  .openapi({ format: 'date-time' })
  .refine((text) => isUsable(parseInstant(text)), 'must be an RFC 3339 instant from 1970 on')
  .transform((text) => parseInstant(text) ?? 0);

const INSTANT_MAX = Date.UTC(10_000, 0, 1) - 1;

function isUsable(at: Instant | undefined): boolean {
  return at !== undefined && at >= 0 && at <= INSTANT_MAX;
}

export function textInput(max: number) {
  return z
    .string()
    .min(1)
    .max(max)
    .refine((text) => !text.includes('\0'), 'must not contain NUL');
}

export const addressInput = z
  .string()
  .refine(isAddress, 'must be 42 printable characters')
  .openapi({ minLength: 42, maxLength: 42 });
export const txHashInput = z
  .string()
  .refine(isTxHash, 'must be 66 printable characters')
  .openapi({ minLength: 66, maxLength: 66 });

export function idInput(prefix: IdPrefix) {
  return z
    .string()
    .refine((text) => isId(prefix, text), `must be an id that starts with ${prefix}_`)
    .openapi({ example: `${prefix}_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b` });
}

/** The origin of a URL, whose path and query may be secret; empty for what is no URL. */
export function originOf(url: unknown): string {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : '';
}
