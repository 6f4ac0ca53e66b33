/** The schemas of what `resources/` defines: of answers, and of the filters of lists. */
import { z } from '@hono/zod-openapi';
import type { Field, Fields, ShownOf } from '../../resources/fields.ts';
import {
  addressInput,
  decimal,
  decimalInput,
  idInput,
  instant,
  instantInput,
  textInput,
  txHashInput,
} from './fields.ts';

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
