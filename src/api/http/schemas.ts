/**
 * The schemas of our JSON: of inputs, and of what `resources/` defines, its answers and the filters
 * of its lists. Every text input is bounded and has no NUL, which Postgres refuses.
 */
import { z } from '@hono/zod-openapi';
import { isAddress, isTxHash } from '../../kernel/addresses.ts';
import { DIGITS_MAX } from '../../kernel/amounts.ts';
import { must } from '../../kernel/errors.ts';
import { originOf as originOfUrl } from '../../kernel/http/origin.ts';
import { type IdPrefix, isId } from '../../kernel/ids.ts';
import type { Field, Fields, ShownOf } from '../../resources/fields.ts';
import { MOMENT_WORDS, SPAN_WORDS } from '../../resources/ledger/period.ts';
import { parseInstantSince1970, parseMoment, parseSpan } from '../../resources/moments.ts';

const decimal = z
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

const instant = z.string().meta({ format: 'date-time', example: '2026-01-31T09:00:00.000Z' });

const PARSED_MAX = 40;

/** A text that is parsed. @param words what it must be */
function parsedInput<T>(parse: (text: string) => T | undefined, words: string) {
  return z
    .string()
    .max(PARSED_MAX)
    .refine((text) => parse(text) !== undefined, `must be ${words}`)
    .transform((text) => must(parse(text), words));
}

/** An instant as epoch milliseconds. */
export const instantInput = parsedInput(
  parseInstantSince1970,
  'an RFC 3339 instant from 1970 on',
).openapi({ format: 'date-time' });

/** An instant of the books, or the begin of a day, month, quarter or year of the reports. */
export const momentInput = parsedInput(parseMoment, MOMENT_WORDS).openapi({
  example: '2026-12-01',
  description: MOMENT_WORDS,
});

/** A day, month, quarter or year of the reports. */
export const spanInput = parsedInput(parseSpan, SPAN_WORDS).openapi({
  example: '2026-11',
  description: `Instead of from and to: ${SPAN_WORDS}`,
});

export function textInput(max: number) {
  return z
    .string()
    .min(1)
    .max(max)
    .refine((text) => !text.includes('\0'), 'must not contain NUL');
}

/** A secret, whose place is the body of a request only. */
export const secretInput = textInput(4_096).openapi({
  description: 'Stored encrypted, never shown',
});

/** Certificates or a key. */
export const pemInput = textInput(65_536);

export const reasonInput = textInput(2_000).openapi({
  description: 'Why, in words of a person; kept in the audit trail',
});

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
  return typeof url === 'string' && URL.canParse(url) ? originOfUrl(url) : '';
}

const schemas = new Map<Fields, z.ZodObject>();

/** The schema of a resource; the same one each time, so that the document names it once. */
export function schemaOf<F extends Fields>(resource: {
  name?: string | undefined;
  fields: F;
  isOpen?: boolean | undefined;
  columns?: readonly string[] | undefined;
}): z.ZodType<ShownOf<F>, ShownOf<F>> & z.ZodObject {
  const { name, fields, isOpen, columns } = resource;
  let schema = schemas.get(fields);
  if (!schema) {
    const shape = Object.entries(fields).map(([key, field]) => [key, fieldSchema(field)]);
    schema = (isOpen ? z.looseObject : z.object)(Object.fromEntries(shape));
    if (name) schema = schema.openapi(name, columns ? { 'x-columns': columns } : {});
    schemas.set(fields, schema);
  }
  return schema as z.ZodType<ShownOf<F>, ShownOf<F>> & z.ZodObject;
}

function fieldSchema(field: Field): z.ZodType {
  const { description, isNullable, isOptional } = field;
  let schema = valueSchema(field);
  if (isNullable && field.kind !== 'json') schema = schema.nullable();
  if (isOptional) schema = schema.optional();
  return description === undefined ? schema : schema.describe(description);
}

function valueSchema({ kind, values, min, items, fields = {}, name, isOpen }: Field): z.ZodType {
  switch (kind) {
    case 'amount':
    case 'digits':
      return decimal;
    case 'count':
      return min === undefined ? z.int() : z.int().min(min);
    case 'flag':
      return z.boolean();
    case 'instant':
      return instant;
    case 'json':
      return z.unknown();
    case 'list':
      return z.array(items ? fieldSchema(items) : z.unknown());
    case 'number':
      return z.number();
    case 'object':
      return items ? z.record(z.string(), fieldSchema(items)) : schemaOf({ fields, name, isOpen });
    case 'one-of':
      return values?.length === 1 ? z.literal(values[0]) : z.enum(values as [string, ...string[]]);
    default:
      return z.string();
  }
}

const TEXT_MAX = 200;

/** The filters of a list as parameters of its query; each may be left out. */
export function filtersOf<F extends Fields>(
  filters: F,
): { [K in keyof F]: z.ZodOptional<InputOf<F[K]>> } {
  return Object.fromEntries(
    Object.entries(filters).map(([name, field]) => {
      const schema = inputOf(field).optional();
      const { description } = field;
      return [name, description === undefined ? schema : schema.openapi({ description })];
    }),
  ) as never;
}

type InputOf<F> = F extends Field<infer Row, unknown> ? z.ZodType<Row, string> : never;

function inputOf({ kind, values, prefix, max = TEXT_MAX }: Field): z.ZodType {
  switch (kind) {
    case 'address':
      return addressInput;
    case 'amount':
    case 'digits':
      return decimalInput;
    case 'flag':
      return z.literal('true').transform(() => true);
    case 'hash':
      return txHashInput;
    case 'id':
      return prefix ? idInput(prefix) : textInput(max);
    case 'instant':
      return instantInput;
    case 'one-of':
      return z.enum(values as [string, ...string[]]);
    default:
      return textInput(max);
  }
}
