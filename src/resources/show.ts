/** Rows of the database as they are shown. */
import { decimalText } from '../kernel/amounts.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { camelOf, type Field, type Fields, type RowOf, type ShownOf } from './fields.ts';

type Show = (value: unknown) => unknown;

/** Makes the function once: lists show thousands of rows. */
export function shower<F extends Fields>({ fields }: { fields: F }) {
  return showObject(fields) as (row: RowOf<F>) => ShownOf<F>;
}

function showObject(fields: Fields): Show {
  const members = Object.entries(fields).map(
    ([name, field]) => [name, camelOf(name), showOf(field), field.isOptional === true] as const,
  );
  return (row) => {
    const shown: Record<string, unknown> = {};
    for (const [name, key, show, isOptional] of members) {
      const value = (row as Record<string, unknown>)[key];
      if (value !== undefined || !isOptional) shown[name] = show(value);
    }
    return shown;
  };
}

function showOf(field: Field): Show {
  const show = showValue(field);
  return (value) => (value === null || value === undefined ? null : show(value));
}

const asItIs: Show = (value) => value;

function showValue({ kind, items, fields, isDocument }: Field): Show {
  if (isDocument) return asItIs;
  if (kind === 'amount' || kind === 'digits') return (value) => decimalText(value as bigint);
  if (kind === 'instant') return (value) => isoText(value as Instant);
  if (kind === 'object' && fields) return showObject(fields);
  if (kind === 'list' && items) {
    const show = showOf(items);
    return (value) => (value as unknown[]).map(show);
  }
  return asItIs;
}
