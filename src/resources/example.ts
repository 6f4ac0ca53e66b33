/** An example of what fields show, from the examples and kinds of the fields. Pure. */
import type { Field, Fields, ShownOf } from './fields.ts';

export const UUID = '0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
export const ADDR = '0x00112233445566778899aabbccddeeff00112233';
export const HASH = `0x${'1f'.repeat(32)}`;
export const AT = '2026-01-31T09:00:00.000Z';

export function exampleOf<F extends Fields>(fields: F): ShownOf<F> {
  const members = Object.entries(fields).map(([name, field]) => [name, exampleOfField(field)]);
  return Object.fromEntries(members);
}

function exampleOfField({
  kind,
  example,
  isNullable,
  prefix,
  values,
  items,
  fields,
}: Field): unknown {
  if (example !== undefined) return example;
  if (isNullable) return null;
  switch (kind) {
    case 'address':
      return ADDR;
    case 'amount':
    case 'digits':
      return '1200';
    case 'count':
    case 'number':
      return 1;
    case 'flag':
      return false;
    case 'hash':
      return HASH;
    case 'id':
      return `${prefix}_${UUID}`;
    case 'instant':
      return AT;
    case 'list':
      return items ? [exampleOfField(items)] : [];
    case 'one-of':
      return values?.[0];
    case 'text':
      return 'text';
    default:
      return exampleOf(fields ?? {});
  }
}
