/** What people and programs see: its fields, the columns of its lists, and their filters. */
import { type Fields, type RowOf, type ShownOf, titleOf } from './fields.ts';

export interface Resource<F extends Fields = Fields, Filters extends Fields = Fields> {
  /** In the API's document. */
  readonly name: string;
  readonly fields: F;
  /** What a table shows of each, in this order; all of them by default. */
  readonly columns: readonly string[];
  /** By what a list is narrowed: parameters of its query, options of its command. */
  readonly filters: Filters;
  /** It is shown as it is, and may have further members. */
  readonly isOpen?: boolean;
}

/** A row as the database's driver gives it, and what is shown of it. */
export type Row<R extends Resource> = RowOf<R['fields']>;
export type Shown<R extends Resource> = ShownOf<R['fields']>;

export function resource<F extends Fields, Filters extends Fields = Record<never, never>>(
  name: string,
  fields: F,
  more: { columns?: readonly (keyof F & string)[]; filters?: Filters; isOpen?: boolean } = {},
): Resource<F, Filters> {
  const { columns = Object.keys(fields), filters = {} as Filters, ...rest } = more;
  return { name, fields, columns, filters, ...rest };
}

interface Column {
  name: string;
  title: string;
  kind: Fields[string]['kind'];
}

/** The columns of a table of such things. */
export function columnsOf({ fields, columns }: Resource): Column[] {
  return columns.flatMap((name) => {
    const field = fields[name];
    return field ? [{ name, title: titleOf(name, field), kind: field.kind }] : [];
  });
}
